"""Record an agent's conversation as a transcript, including the initial files of the workspace."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from adapter.agent.agent import Agent
from adapter.agent.answer_reader import AgentEvent
from adapter.backends.stream_chunks import Chunk
from adapter.conversation.guardrails.required_steps import to_json
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, ToolResult
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn
from adapter.dialects import get_dialect
from adapter.recording import transcript_lines
from adapter.recording.transcript import TranscriptWriter
from adapter.tools.operations.capabilities import Capability
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest, Approver, ask_approver
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import HostEvent, NestedCall
from adapter.workspace.paths.path_validation import check_path

MAX_FILES = 500
"""Maximum number of files in a recorded workspace."""
MAX_BYTES = 1_000_000
"""Maximum total size of a recorded workspace, in bytes. To record work in a larger one, use a smaller copy."""


def take_snapshot(
    root: Path, clean: Callable[[bytes], bytes] = bytes, blank: Path | None = None
) -> dict[str, transcript_lines.StoredFile]:
    """Return the files in ``root`` and its subfolders by relative path, except links and `.git`.

    ``clean`` redacts the content of a file. The file ``blank`` is stored as empty. Raises UsageError if the workspace
    is too large.
    """
    files: dict[str, transcript_lines.StoredFile] = {}
    size = 0
    for path in _list_files(root):
        content = b"" if path == blank else path.read_bytes()
        size += len(content)
        if len(files) >= MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"{root} is too large to record: a transcript includes all files of the workspace, and the limit is "
                f"{MAX_FILES} files and {MAX_BYTES:,} bytes. Work in a smaller copy, or omit --record."
            )
        stored = _encode_file(clean(content), path.stat().st_mode & 0o777)
        raw_name = os.fsencode(path.relative_to(root).as_posix())
        try:
            files[raw_name.decode()] = stored
        except UnicodeDecodeError:
            encoded = base64.b64encode(raw_name).decode()
            files[f"base64:{encoded}"] = stored.model_copy(update={"raw_name": encoded})
    return files


def restore_snapshot(files: dict[str, transcript_lines.StoredFile], root: Path) -> None:
    """Write the files of a snapshot to ``root``. Raises UsageError for an invalid name or invalid content."""
    for name, stored in files.items():
        try:
            real_name = name if stored.raw_name is None else os.fsdecode(base64.b64decode(stored.raw_name))
            content = _decode_file(stored)
        except ValueError as error:
            raise UsageError(
                f"the transcript's file {escape_for_display(name)!r} is not valid base64: {error}"
            ) from error
        path = resolve_in_root(root, real_name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(stored.mode & 0o777)


def resolve_in_root(root: Path, name: str) -> Path:
    """Return the path below ``root`` for a file name in a transcript. Raises UsageError if the name is invalid, or
    leads outside of ``root``."""
    try:
        check_path(re.sub("[\udc80-\udcff]", "?", name))  # a recorded name need not be UTF-8
    except ToolError as error:
        raise UsageError(f"the transcript has an invalid file name {escape_for_display(name)!r}: {error}") from error
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"the transcript's file {escape_for_display(name)!r} is outside the workspace, so it was not written"
        )
    return path


def hash_workspace(root: Path, clean: Callable[[bytes], bytes] = bytes, blank: Path | None = None) -> str:
    """Hash the names and redacted contents of all files in ``root``. The file ``blank`` counts as empty."""
    digest = hashlib.sha256()
    for path in _list_files(root):
        name = path.relative_to(root).as_posix()
        content = b"" if path == blank else clean(path.read_bytes())
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{digest.hexdigest()}"


def _list_files(root: Path) -> Iterable[Path]:
    found = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if ".git" not in path.relative_to(root).parts)


def _encode_file(content: bytes, mode: int) -> transcript_lines.StoredFile:
    try:
        return transcript_lines.StoredFile(text=content.decode(), mode=mode)
    except UnicodeDecodeError:
        return transcript_lines.StoredFile(base64=base64.b64encode(content).decode(), mode=mode)


def _decode_file(stored: transcript_lines.StoredFile) -> bytes:
    return base64.b64decode(stored.base64) if stored.base64 is not None else (stored.text or "").encode()


EXTERNAL_CAPABILITIES: frozenset[Capability | None] = frozenset(
    {"questions", "agents", "search", "docs", "web", "skills", "memory"}
)
"""Capabilities whose results can change between runs."""


def is_external_tool(tool: Tool | None, own_names: Container[str]) -> bool:
    """Return whether a replay uses a tool's recorded result instead of running the tool. ``own_names`` has the names of
    the custom tools."""
    return tool is not None and (tool.needs in EXTERNAL_CAPABILITIES or tool.name in own_names)


def list_custom_tools(workspace: Workspace) -> list[Tool]:
    """Return the tools that are not part of the shipped dialect: custom functions, and programs from a tools file."""
    try:
        shipped = get_dialect(workspace.dialect.name).tools
    except UsageError:
        shipped = ToolSet()
    return [
        tool
        for tool in workspace.known_tools.values()
        if tool.name not in shipped or shipped[tool.name].parameters != tool.parameters
    ]


def _needs_file_record(tool: Tool, own_names: Container[str]) -> bool:
    """Return whether to record a tool's file changes, because a replay does not run the tool again."""
    return tool.needs == "agents" or tool.name in own_names or tool.effect == "execute"


Changed: TypeAlias = tuple[dict[str, transcript_lines.StoredFile | None], str]
"""The files that a call changed, and the reason why some could not be recorded, or "" if all were."""


class SessionRecorder:
    """Records the events of an agent. Call `begin` before the agent runs.

    Calls inside a batch or code are recorded if the session has ``Host(events=recording.record_host_event)``. ``file``
    is the file that ``recorder`` writes. If it is inside the workspace, it is recorded as empty. A chat is recorded
    without the workspace's files, so it can be resumed and viewed, but not replayed.
    """

    def __init__(
        self, recorder: TranscriptWriter, root: Path, file: Path | None = None, *, is_chat: bool = False
    ) -> None:
        self._recorder, self._root, self._is_chat = recorder, root, is_chat
        self._written: Sequence[Message] = ()
        self._file = file.resolve() if file is not None else None
        self._clean = recorder.secrets.redact_bytes if recorder.secrets is not None else bytes
        self._tools, self._own = ToolSet(), frozenset[str]()
        self._records_files = False
        self._files: dict[str, transcript_lines.StoredFile] = {}
        self._write_lock = threading.RLock()
        self._approvals = _ApprovalTracker()

    def begin(self, agent: Agent, task: str, *, approve: str, model: str = "", server: str = "") -> None:
        """Write the header, with the settings and the current files of the workspace."""
        workspace = agent.workspace
        custom_tools = list_custom_tools(workspace)
        self._tools, self._own = workspace.known_tools, frozenset(tool.name for tool in custom_tools)
        self._files = {} if self._is_chat else take_snapshot(self._root, self._clean, self._file)
        self._records_files = not self._is_chat and any(
            _needs_file_record(tool, self._own) for tool in workspace.tools.values()
        )
        self._recorder.write_header(
            transcript_lines.Header(
                task=task,
                system=agent.system,
                dialect=agent.workspace.dialect.name,
                format=agent.format.name,
                tools=tuple(agent.workspace.tools),
                offered=tuple(agent.tools) if len(agent.tools) < len(agent.workspace.tools) else (),
                max_tools=agent.max_tools,
                shows_calls=agent.shows_calls,
                model=model,
                server=server,
                approve=approve,
                edits=workspace.edits,
                encoding=workspace.encoding,
                rules=tuple(map(str, agent.workspace.rules)),
                known=tuple(workspace.known_tools),
                own_tools=tuple(map(_to_user_tool, custom_tools)),
                read_only=workspace.is_read_only,
                above=workspace.parent_path,
                granted=tuple(sorted(workspace.granted)),
                media=tuple(sorted(workspace.host.media)),
                is_chat=self._is_chat,
                max_turns=agent.limits.turns,
                call_turns=agent.limits.tool_turns,
                context_tokens=agent.limits.context_tokens,
                guardrails=tuple(sorted(agent.guardrails.on)),
                retries=agent.guardrails.retries,
                max_calls=agent.limits.calls,
                steps=to_json(agent.guardrails.steps),
                files=self._files,
                workspace=self._hash(),
            )
        )

    def record_user_message(self, message: str) -> None:
        """Record a user message after the first one. Call this before passing the message to the agent."""
        self._recorder.write_line(transcript_lines.UserMessageLine(text=message))

    def note(self, text: str) -> None:
        """Record a note for the model. The note is part of the next message."""
        self._recorder.write_line(transcript_lines.NoteLine(text=text))

    def wrap_approver(self, ask: Approver) -> Approver:
        """Wrap ``ask`` so that its decisions are recorded."""

        def ask_and_record(approval: ApprovalRequest) -> ApprovalDecision:
            decision = ask_approver(ask, approval)
            with self._write_lock:
                self._approvals.tools.append(approval.tool)
                self._recorder.write_line(transcript_lines.ApprovalLine.from_decision(approval.tool, decision))
            return decision

        return ask_and_record

    def record_host_event(self, event: HostEvent) -> None:
        """Record a call inside a batch or code, which the session's host reports as an event."""
        if isinstance(event, NestedCall):
            with self._write_lock:
                changed, asked = self._list_changes(), self._approvals.pop()
                tool = self._tools.match(event.result.name)
                # Another call in the batch may make other changes. A replay runs that call again.
                is_own_change = tool is not None and not event.result.denied and _needs_file_record(tool, self._own)
                if is_external_tool(tool, self._own) or (tool is not None and tool.effect == "execute"):
                    fields = _build_result_fields(event.result, changed if is_own_change else ({}, ""))
                    self._recorder.write_line(
                        transcript_lines.NestedCallLine(arguments=event.arguments, asked=tuple(asked), **fields)
                    )

    def _list_changes(self) -> Changed:
        """Return the files changed since the last call, and the reason if changes could not be recorded."""
        if not self._records_files:
            return {}, ""
        before = self._files
        try:
            self._files = take_snapshot(self._root, self._clean, self._file)
        except (UsageError, OSError) as error:
            return {}, f"the call's file changes could not be recorded: {error}"
        now = self._files
        deleted: dict[str, transcript_lines.StoredFile | None] = dict.fromkeys(before.keys() - now.keys())
        return deleted | {name: file for name, file in now.items() if before.get(name) != file}, ""

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case AskModel():
                self._recorder.write_request(event, self._count_unchanged(event) if self._is_chat else 0)
            case Chunk():
                self._recorder.write_chunk(event.text, event.reasoning, event.finish_reason, event.usage)
            case Turn():
                self._recorder.write_turn(event)
            case RunTools():
                self._list_changes()
            case ToolResult():
                changed = self._list_changes()
                tool = self._tools.match(event.name)
                # If a tool only reads, changes meanwhile come from a command in the background.
                is_kept = tool is not None and (_needs_file_record(tool, self._own) or tool.effect == "read")
                self._approvals.pop()
                fields = _build_result_fields(event, changed if is_kept else ({}, ""))
                self._recorder.write_line(transcript_lines.ResultLine(call_id=event.call_id, **fields))
            case Finished():
                self._recorder.write_line(
                    transcript_lines.EndLine(reason=event.reason, content=event.content, workspace=self._hash())
                )

    def _hash(self) -> str:
        return "" if self._is_chat else hash_workspace(self._root, self._clean, self._file)

    def _count_unchanged(self, query: AskModel) -> int:
        """Count the leading messages that are the same as in the previous request."""
        pairs = enumerate(zip(self._written, query.messages, strict=False))
        self._written, before = query.messages, len(self._written)
        return next((index for index, (one, other) in pairs if one != other), min(before, len(query.messages)))


class _ApprovalTracker(threading.local):
    """Stores, separately for each thread, the names of the tools that needed approval since the last result."""

    def __init__(self) -> None:
        self.tools: list[str] = []

    def pop(self) -> list[str]:
        tools, self.tools = self.tools, []
        return tools


def _build_result_fields(result: ToolResult, changed: Changed) -> dict[str, Json]:
    files, unrecorded = changed
    note = {"name": result.name, "ok": result.ok, "content": result.content, "user_message": result.user_message}
    return {**note, "changed": files, "unrecorded": unrecorded}


def _to_user_tool(tool: Tool) -> transcript_lines.UserTool:
    return transcript_lines.UserTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        effect=tool.effect,
        aliases=tool.aliases,
        argument_aliases=dict(tool.argument_aliases),
    )
