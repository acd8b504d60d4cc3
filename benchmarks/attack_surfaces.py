"""Translate the steps of an attack (read, write, run, ...) to calls of each dialect, and perform them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mcp  # noqa: F401  # before the processes of the cases are forked: importing it takes a second

from adapter.agent.agent import Agent
from adapter.agent.answer_reader import AgentEvent
from adapter.agent.subagents import SubagentRunner
from adapter.backends.chat_client import ChatClient, Chunk, Endpoint
from adapter.backends.native_tools_chat import NativeToolsChat
from adapter.cli.agent_console import Console
from adapter.cli.run_settings import RunSettings
from adapter.cli.run_task import run_task
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import SessionLimits
from adapter.core.errors import AdapterError
from adapter.core.events import ReasoningDelta, TextDelta, ToolCall, ToolResult
from adapter.dialects import get_dialect
from adapter.integrations.mcp import server_connection
from adapter.integrations.mcp.client import McpTools
from adapter.integrations.mcp.server_config import McpServer
from adapter.recording.file_replay import replay_file
from adapter.recording.replay import rerun_session
from adapter.recording.transcript import Transcript
from adapter.tools.function_tools import tool
from adapter.tools.operations import Effect
from adapter.tools.operations.permissions import ApprovalRequest, PermissionRule
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host, WebAccess
from adapter.workspace.changes.journal import ChangeJournal
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.resolver import WorkspaceRoot
from benchmarks import naive

AFAR = "0.0.0.0"
"""An address of this machine that does not look local, so a server there gets the API key."""

Call = tuple[str, dict[str, Any]]
Verbs = dict[str, Callable[..., Call]]


def _call(tool: str, *names: str, **fixed: Any) -> Callable[..., Call]:
    return lambda *values: (tool, {**dict(zip(names, values, strict=False)), **fixed})


SURFACES: dict[str, Verbs] = {
    "blade": {
        "read": _call("read_file", "path"),
        "write": _call("write_file", "path", "content"),
        "edit": _call("apply_edit", "path", "old_text", "new_text"),
        "delete": _call("delete_file", "path", recursive=True),
        "move": _call("move_file", "source", "destination"),
        "copy": _call("copy_file", "source", "destination"),
        "mkdir": _call("create_directory", "path"),
        "list": _call("list_directory", "path"),
        "tree": _call("get_workspace_structure", "path"),
        "info": _call("get_file_info", "path"),
        "find": _call("find_files_glob", "pattern", "path"),
        "grep": _call("grep_search", "pattern", "path"),
        "run": _call("run_command", "command", cwd="."),
        "run-in": _call("run_command", "command", "cwd"),
    },
    "maki": {
        "read": _call("read", "path"),
        "write": _call("write", "path", "content"),
        "edit": _call("edit", "path", "old_string", "new_string"),
        "find": _call("glob", "pattern", "path"),
        "grep": _call("grep", "pattern", "path"),
        "index": _call("index", "path"),
        "run": _call("bash", "command"),
        "run-in": _call("bash", "command", "workdir"),
        "fetch": _call("webfetch", "url", format="text", timeout=4),
        "code": _call("code_execution", "code", timeout=3),
        "memory": _call("memory", "command", "path", "content"),
        "skill": _call("skill", "name"),
        "batch": lambda *inner: (
            "batch",
            {"tool_calls": [{"tool": tool, "parameters": arguments} for tool, arguments in inner]},
        ),
    },
    "promptly": {
        "read": _call("ShowFileContents", "file"),
        "write": _call("WriteToFile", "file", "content"),
        "edit": _call("SearchAndReplace", "file", "search", "replace"),
        "delete": _call("RemoveFiles", "target"),
        "move": _call("MoveFiles", "source", "destination"),
        "copy": _call("CopyFiles", "source", "destination"),
        "mkdir": _call("MakeDirectory", "dir"),
        "list": _call("ListFiles", "path"),
        "find": _call("FindFiles", "pattern", "path"),
        "grep": _call("SearchText", "pattern", "path"),
        "touch": _call("TouchFile", "file"),
    },
    "proto": {
        "read": _call("read_file", "path"),
        "write": _call("write_file", "file_path", "content"),
        "edit": _call("edit", "file_path", "old_string", "new_string"),
        "list": _call("list_directory", "path"),
        "find": _call("glob", "pattern", "path"),
        "grep": _call("grep_search", "pattern", "path"),
    },
    "proxyai": {
        "read": _call("Read", "file_path"),
        "write": _call("Write", "file_path", "content"),
        "edit": _call("Edit", "file_path", "old_string", "new_string", short_description="x"),
        "run": _call("Bash", "command"),
        "skill": _call("LoadSkill", "skill_name"),
    },
}


class Scripted:
    """A model with scripted answers. ``{ECHO}`` in an answer becomes the last message, and ``{INNER}`` the same without
    its first and last line. ``whole``: whether `shown` includes the system prompt."""

    def __init__(self, answers: Sequence[str], *, whole: bool = False) -> None:
        self._answers = iter(answers)
        self._whole = whole
        self.shown: list[str] = []

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        last = str(messages[-1]["content"])
        if self._whole and not self.shown:
            self.shown += [str(message["content"]) for message in messages[:-1]]
        self.shown.append(last)
        text = next(self._answers, "Done.").replace("{ECHO}", last)
        text = text.replace("{INNER}", "\n".join(last.split("\n")[1:-1]))
        for start in range(0, len(text), 4_096):
            yield Chunk(text=text[start : start + 4_096])
        yield Chunk("", finish_reason="stop")


def workspace(
    ws: Path, dialect: str, case: dict[str, Any], below: Scripted | None = None, tools: Sequence[Tool] = ()
) -> Workspace:
    agents = SubagentRunner(below, limits=SessionLimits(turns=6)) if below is not None and "below" in case else None
    host = Host(state=str(ws.parent / "state"), web=WebAccess(upgrade=False), agents=agents)
    rules = [PermissionRule.from_text(rule) for rule in case.get("rules", ())]
    mode = case.get("mode", "ask" if "meanwhile" in case else "yolo")
    tools = [*tools, _remote(**case["server"])] if "server" in case else tools

    def approve(_: ApprovalRequest) -> bool:
        _change(ws, case["meanwhile"])
        return True

    ask = approve if "meanwhile" in case else None
    return Workspace(ws, dialect, mode, ask, state=ws.parent / "state", host=host, rules=rules, tools=tools)


def _change(ws: Path, files: dict[str, str]) -> None:
    """Write workspace files, like another program. A text that begins with ``link:`` creates a link."""
    for name, text in files.items():
        place = ws / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("link:"):
            place.unlink(missing_ok=True)
            place.symlink_to(text[5:])
        else:
            place.write_text(text, encoding="utf-8")


def _remote(
    description: str = "Ask.", gives: str = "", effect: Effect = "read", schema: dict[str, Any] | None = None
) -> Tool:
    definition = {"name": "remote", "description": description, "inputSchema": {"type": "object", **(schema or {})}}
    return tool(definition, lambda **_: gives, effect=effect)


def perform(case: dict[str, Any], surface: str, ws: Path) -> list[str]:
    if "path" in case:
        os.environ["PATH"] = case["path"].replace("{PATH}", os.environ["PATH"])
    if "replays" in case:
        return _replayed(case["replays"], surface, ws)
    if "shows" in case:
        return _on_the_console(case["shows"], surface)
    if "says" in case:
        return _with_a_server(case, surface, ws)
    if "native" in case:
        return _with_native_calls(case["native"], surface, ws)
    if "mcp" in case:
        return _with_an_mcp_server(case, surface, ws)
    if "records" in case:
        return _with_records(case, surface, ws)
    if "answers" in case:
        if surface == "naive":
            return naive.agent(case["answers"], case.get("task", "task"), case.get("below", ()), case.get("server", {}))
        chat, below = Scripted(case["answers"], whole="server" in case), Scripted(case.get("below", ()))
        dialect = "maki" if "below" in case else case.get("dialect", "blade")
        with workspace(ws, dialect, case, below) as opened:
            agent = Agent(opened, chat, format=case.get("format", "hermes"), limits=SessionLimits(turns=6))
            agent.run(case.get("task", "task"))
        return [*chat.shown, *below.shown]
    with _network(case) if "url" in case else _nothing():
        if surface == "naive":
            _change(ws, case.get("meanwhile", {}))
            return [_naively(call, case) for call in case["do"]]
        with workspace(ws, surface, case) as opened:
            results = []
            for verb, *values in case["do"]:
                name, arguments = SURFACES[surface][verb](*values)
                result = opened.run(name, arguments)
                verdict = "ok" if result.ok else "refused"
                results.append(f"{verdict}: {result.content}\n{result.data or ''}\n{result.user_message}")
            return results


def _replayed(case: dict[str, Any], surface: str, ws: Path) -> list[str]:
    if surface == "naive":
        return naive.agent(case["answers"], "task")
    header = {"task": "task", "system": "", "dialect": "blade", "format": "hermes", "tools": ["run_command"]}
    lines: list[dict[str, Any]] = [{"kind": "header", **header, "approve": "yolo", **case.get("header", {})}]
    for number, text in enumerate([*case["answers"], "Done."], 1):
        lines += [{"kind": "request", "number": number, "messages": []}, {"kind": "chunk", "text": text}]
        lines += case.get("lines", []) if number == 1 else []
    file = ws.parent / "state" / "talk.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    outcome = replay_file(file)
    again = rerun_session(Transcript.from_text(file.read_text("utf-8"))).to_text() if case.get("again", True) else ""
    return [outcome.difference, again]


def _with_a_server(case: dict[str, Any], surface: str, ws: Path) -> list[str]:
    """Return the transcript and the error, or ""."""
    status, *answers = case["says"]
    port, said = os.environ["ATTACK_PORT"], quote(json.dumps(answers), safe="")
    url = f"http://{case.get('user', '')}{AFAR}:{port}/says/{status}/{said}/v1"
    record = ws.parent / "state" / "record.jsonl"
    error = ""
    if surface == "naive":
        error = naive.chat(url, case.get("task", "task"), str(record))
    else:
        settings = RunSettings(
            ws, url, "m", "yolo", format="hermes", record=record, state=ws.parent / "state", **case.get("settings", {})
        )
        try:
            with Path(os.devnull).open("w", encoding="utf-8") as user, redirect_stdout(user), redirect_stderr(user):
                run_task(case.get("task", "task"), settings)
        except AdapterError as raised:
            error = str(raised)
    return [record.read_text(encoding="utf-8") if record.exists() else "", error]


def _with_native_calls(spec: dict[str, Any], surface: str, ws: Path) -> list[str]:
    file = ws.parent / "state" / "native.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    url = f"http://127.0.0.1:{os.environ['ATTACK_PORT']}/native{file}/v1"
    if surface == "naive":
        return naive.native(url)
    shown: list[str] = []

    def observe(event: AgentEvent) -> None:
        if isinstance(event, ToolResult):
            shown.append(event.content)

    with ChatClient(Endpoint(url), "m") as client, workspace(ws, "blade", {}) as opened:
        chat = NativeToolsChat(client, opened.tools, "hermes")
        agent = Agent(opened, chat, format="hermes", limits=SessionLimits(turns=2), observe=observe)
        try:
            shown.append(str(agent.run("task")))
        except AdapterError as error:
            shown.append(str(error))
    return shown


def _with_an_mcp_server(case: dict[str, Any], surface: str, ws: Path) -> list[str]:
    """Return the notes, definitions and results of sessions with an MCP server, which changes in ``later`` sessions."""
    server_connection.START_S = 8.0
    shown: list[str] = []
    calls = case.get("calls", [["remote", {}]])
    for number, script in enumerate([case["mcp"], *case.get("later", ())]):
        file = ws.parent / "state" / "script.json"
        file.write_text(json.dumps(script), encoding="utf-8")
        url = f"http://127.0.0.1:{os.environ['ATTACK_PORT']}/mcp{file}{case.get('query', '')}"
        if surface == "naive":
            shown += naive.mcp(url, calls)
            continue
        server = McpServer("there", url=url, trusted=case.get("trusted", False))
        session = {**case, "meanwhile": {}} if number < case.get("granted", 0) else case
        try:
            known = get_dialect("blade").tools
            with McpTools([server], known, state=str(ws.parent / "state"), call_s=3) as there:
                shown += [*there.notes, *(f"{tool.name}: {tool.description}" for tool in there.tools)]
                with workspace(ws, "blade", session, tools=there.tools) as opened:
                    results = [opened.run(name, arguments) for name, arguments in calls]
                    shown += [f"{result.content}\n{result.data or ''}" for result in results]
        except AdapterError as error:
            shown.append(str(error))
    return shown


def _with_records(case: dict[str, Any], surface: str, ws: Path) -> list[str]:
    state = ws.parent / "state"
    folder = Path(state, "records") if surface == "naive" else _journal(ws, state)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in case["records"].items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("link:"):
            place.symlink_to(content[5:])
        else:
            place.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    if surface == "naive":
        return [naive.undo(folder)]
    shown: list[str] = []
    with workspace(ws, "blade", case) as opened:
        shown += opened.recovered
        history, review = opened.history, opened._approvals.review_undo
        methods: dict[str, Callable[[], object]] = {
            "changes": history.list_undoable_changes,
            "diff": history.render_diff,
            "undo": lambda: history.undo(None, review),
            "redo": lambda: history.redo(None, review),
        }
        for asked in case.get("asked", ("changes", "diff", "undo")):
            try:
                with convert_os_errors("nothing was done"):
                    shown.append(str(methods[asked]()))
            except AdapterError as error:
                shown.append(str(error))
    return shown


def _journal(ws: Path, state: Path) -> Path:
    with WorkspaceRoot(ws) as root:
        return Path(ChangeJournal(root.path, root.inode, str(state)).directory)


def _naively(call: Sequence[Any], case: dict[str, Any]) -> str:
    verb, *values = call
    if verb == "batch":
        calls = ([{"bash": "run"}.get(tool, tool), *arguments.values()] for tool, arguments in values)
        return "\n".join(_naively(each, case) for each in calls)
    rules = [rule[rule.index("(") + 1 : -1] for rule in case.get("rules", ()) if rule.startswith("allow")]
    if verb == "run" and rules:
        return naive.run(values[0]) if naive.allowed(values[0], rules) else "not allowed"
    if verb == "run-in":
        return naive.run(f"cd {values[1]} && {values[0]}")
    return "ok: " + naive.VERBS[{"index": "read", "info": "read", "touch": "read"}.get(verb, verb)](*values)


def _on_the_console(text: str, surface: str) -> list[str]:
    if surface == "naive":
        naive.show(text)
        return []
    console = Console()
    call = ToolCall("call_1", text, {text: text}, "")
    for event in (TextDelta(text, text), ReasoningDelta(text, text)):
        console(event)
    console(call)
    console(ToolResult("x", True, text, diff=f"+{text}"))
    console(ToolResult("x", False, text, error=text))
    console.echo(text)
    console.note(text)
    return []


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _network(case: dict[str, Any]) -> Iterator[None]:
    """Resolve the host names of ``case`` to its addresses, and route every connection to the attack server."""
    names = {name: iter(addresses) for name, addresses in case.get("names", {}).items()}
    real_lookup, real_connect, port = socket.getaddrinfo, socket.socket.connect, int(os.environ["ATTACK_PORT"])
    last: dict[str, str] = {}

    def lookup(host: Any, service: Any, *more: Any, **options: Any) -> Any:
        if host in names:
            last[host] = next(names[host], last.get(host, ""))
            host = last[host]
        if "," in str(host):
            return [row for each in host.split(",") for row in real_lookup(each, service, *more, **options)]
        return real_lookup(host, service, *more, **options)

    def connect(self: socket.socket, address: Any) -> None:
        there = ("::1", port) if self.family == socket.AF_INET6 else ("127.0.0.1", port)
        real_connect(self, there if isinstance(address, tuple) else address)

    socket.getaddrinfo, socket.socket.connect = lookup, connect  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        socket.getaddrinfo, socket.socket.connect = real_lookup, real_connect  # type: ignore[method-assign]


def run_case(case: dict[str, Any], surface: str, ws: Path, output: Path) -> str:
    opened = output.open("w", encoding="utf-8", errors="surrogatepass")
    with opened as file, redirect_stdout(file), redirect_stderr(file):
        try:
            shown = perform(case, surface, ws)
        except BaseException as error:  # noqa: BLE001  # what crashes is judged like all else
            return f"CRASH {type(error).__name__}: {error}"
    return "\n".join(shown)
