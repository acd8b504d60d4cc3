"""Writes transcripts of real conversations, with the workspace they began in."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path

from adapter.agent.agent import Agent
from adapter.agent.response_reader import AgentEvent
from adapter.backends.stream_chunks import Chunk
from adapter.conversation.guardrails.required_steps import as_json
from adapter.conversation.message_rendering import Message
from adapter.conversation.session import AskModel, Finished, RunTools
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import ToolResult
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn
from adapter.dialects import get_dialect
from adapter.recording.transcript import Changed, Header, StoredFile, TranscriptWriter, UserTool
from adapter.tools.operations.capabilities import Capability
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest, Approver, ask_approver
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host import HostEvent, NestedCall
from adapter.workspace.paths.name_rules import check_path

MAX_FILES = 500
"""Of the workspace that a transcript holds."""
MAX_BYTES = 1_000_000
"""A transcript holds its workspace; a larger one belongs in a copy made for the recording."""


def snapshot(root: Path, cleaned: Callable[[bytes], bytes] = bytes, blank: Path | None = None) -> dict[str, StoredFile]:
    """The files below ``root``, ``cleaned``, by relative path and without `.git` and links; ``blank`` as if empty.

    Raises UsageError for too many.
    """
    files: dict[str, StoredFile] = {}
    size = 0
    for path in _files(root):
        content = b"" if path == blank else path.read_bytes()
        size += len(content)
        if len(files) >= MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"{root} is too large to record: a transcript holds the whole workspace, "
                f"at most {MAX_FILES} files and {MAX_BYTES:,} bytes. Record in a smaller copy, or leave out --record."
            )
        files[path.relative_to(root).as_posix()] = _stored(cleaned(content), path.stat().st_mode & 0o777)
    return files


def restore(files: dict[str, StoredFile], root: Path) -> None:
    """Write the files of a snapshot below ``root``. Raises UsageError for a name or a content that none can have."""
    for name, stored in files.items():
        path = resolve_in_root(root, name)
        try:
            content = _content(stored)
        except ValueError as error:
            raise UsageError(f"the transcript's file {escape_for_display(name)!r} is no base64: {error}") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(stored.mode & 0o777)


def resolve_in_root(root: Path, name: str) -> Path:
    """Where the file ``name`` of a transcript is. Raises UsageError for what is no name, or outside of ``root``."""
    try:
        check_path(name)
    except ToolError as error:
        raise UsageError(f"the transcript names a file {escape_for_display(name)!r}: {error}") from error
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"the transcript's file {escape_for_display(name)!r} lies outside its workspace; it was not written"
        )
    return path


def workspace_hash(root: Path, cleaned: Callable[[bytes], bytes] = bytes, blank: Path | None = None) -> str:
    """One hash over the names and the ``cleaned`` contents of all files below ``root``; ``blank`` as if empty."""
    digest = hashlib.sha256()
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        content = b"" if path == blank else cleaned(path.read_bytes())
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{digest.hexdigest()}"


def _files(root: Path) -> Iterable[Path]:
    found = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if ".git" not in path.relative_to(root).parts)


def _stored(content: bytes, mode: int) -> StoredFile:
    try:
        return StoredFile(text=content.decode(), mode=mode)
    except UnicodeDecodeError:
        return StoredFile(base64=base64.b64encode(content).decode(), mode=mode)


def _content(stored: StoredFile) -> bytes:
    return base64.b64decode(stored.base64) if stored.base64 is not None else (stored.text or "").encode()


OUTSIDE: frozenset[Capability | None] = frozenset({"questions", "agents", "search", "docs", "web", "skills", "memory"})
"""What answers differently another day, or elsewhere."""


def is_external_tool(tool: Tool | None, own: Container[str]) -> bool:
    """Whether what a tool gave is taken from the record: of others it is made anew."""
    return tool is not None and (tool.needs in OUTSIDE or tool.name in own)


def own_tools(workspace: Workspace) -> list[Tool]:
    """Tools that a dialect of this name has not by itself: functions of the user's, programs in a tools file."""
    try:
        shipped = get_dialect(workspace.dialect.name).tools
    except UsageError:
        shipped = ToolSet()
    return [
        tool
        for tool in workspace.known_tools.values()
        if tool.name not in shipped or shipped[tool.name].parameters != tool.parameters
    ]


def _changes_unseen(tool: Tool, own: Container[str]) -> bool:
    """Whether files that it changes have to be recorded: a replay does not make it change them again."""
    return tool.needs == "agents" or tool.name in own or tool.effect == "execute"


class SessionRecorder:
    """Observes an agent and records it; `begin` must be called before the agent runs.

    What happens inside a batch or code is recorded when the session has ``Host(events=recording.inner)``.
    ``file``: what ``recorder`` writes to; in the workspace it counts as an empty file, as it was at first. A chat is
    recorded without its workspace, however large that is, and each message once, however long it goes on: it can be
    gone on with and looked at, but not run again.
    """

    def __init__(
        self, recorder: TranscriptWriter, root: Path, file: Path | None = None, *, is_chat: bool = False
    ) -> None:
        self._recorder, self._root, self._is_chat = recorder, root, is_chat
        self._written: Sequence[Message] = ()
        self._file = file.resolve() if file is not None else None
        self._cleaned = recorder.secrets.redact_bytes if recorder.secrets is not None else bytes
        self._tools, self._own = ToolSet(), frozenset[str]()
        self._watches = False
        self._files: dict[str, StoredFile] = {}
        self._writing = threading.RLock()
        self._asked = _Asked()

    def begin(self, agent: Agent, task: str, *, approve: str, model: str = "", server: str = "") -> None:
        """Write the header: the settings and the workspace as they are now."""
        workspace = agent.workspace
        own = own_tools(workspace)
        self._tools, self._own = workspace.known_tools, frozenset(tool.name for tool in own)
        self._files = {} if self._is_chat else snapshot(self._root, self._cleaned, self._file)
        self._watches = not self._is_chat and any(_changes_unseen(tool, self._own) for tool in workspace.tools.values())
        self._recorder.header(
            Header(
                task=task,
                system=agent.system,
                dialect=agent.workspace.dialect.name,
                format=agent.format.name,
                tools=tuple(agent.workspace.tools),
                model=model,
                server=server,
                approve=approve,
                edits=workspace.edits,
                encoding=workspace.encoding,
                rules=tuple(map(str, agent.workspace.rules)),
                known=tuple(workspace.known_tools),
                own_tools=tuple(map(_definition, own)),
                read_only=workspace.is_read_only,
                above=workspace.above,
                granted=tuple(sorted(workspace.granted)),
                media=tuple(sorted(workspace.host.media)),
                is_chat=self._is_chat,
                max_turns=agent.limits.turns,
                call_turns=agent.limits.tool_turns,
                context_tokens=agent.limits.context_tokens,
                guardrails=tuple(sorted(agent.guardrails.on)),
                retries=agent.guardrails.retries,
                steps=as_json(agent.guardrails.steps),
                files=self._files,
                workspace=self._hash(),
            )
        )

    def user_message(self, message: str) -> None:
        """A further message of the user, before the agent is given it."""
        self._recorder.said(message)

    def note(self, text: str) -> None:
        """What the agent's model is told with the next message."""
        self._recorder.told(text)

    def asking(self, ask: Approver) -> Approver:
        """``ask``, its decisions recorded."""

        def recorded(approval: ApprovalRequest) -> ApprovalDecision:
            decision = ask_approver(ask, approval)
            with self._writing:
                self._asked.tools.append(approval.tool)
                self._recorder.approval(approval.tool, decision)
            return decision

        return recorded

    def inner(self, event: HostEvent) -> None:
        """What the session tells of a batch or of code."""
        if isinstance(event, NestedCall):
            with self._writing:
                changed, asked = self._changed(), self._asked.taken()
                tool = self._tools.match(event.result.name)
                # Another call of a batch may be writing meanwhile, and writes again when it is replayed.
                is_its = tool is not None and not event.result.denied and _changes_unseen(tool, self._own)
                if is_external_tool(tool, self._own) or (tool is not None and tool.effect == "execute"):
                    self._recorder.inner(event.arguments, event.result, changed if is_its else ({}, ""), asked)

    def _changed(self) -> Changed:
        """The files that are not as they were when this was asked last."""
        if not self._watches:
            return {}, ""
        before = self._files
        try:
            self._files = snapshot(self._root, self._cleaned, self._file)
        except (UsageError, OSError) as error:
            return {}, f"what it changed could not be recorded: {error}"
        now = self._files
        gone: dict[str, StoredFile | None] = dict.fromkeys(before.keys() - now.keys())
        return gone | {name: file for name, file in now.items() if before.get(name) != file}, ""

    def __call__(self, happening: AgentEvent) -> None:
        match happening:
            case AskModel():
                self._recorder.request(happening, self._kept(happening) if self._is_chat else 0)
            case Chunk():
                self._recorder.chunk(happening.text, happening.reasoning, happening.finish_reason, happening.usage)
            case Turn():
                self._recorder.turn(happening)
            case RunTools():
                self._changed()
            case ToolResult():
                changed = self._changed()
                tool = self._tools.match(happening.name)
                # What changes while a tool only reads, a command in the background has changed.
                is_kept = tool is not None and (_changes_unseen(tool, self._own) or tool.effect == "read")
                self._asked.taken()
                self._recorder.result(happening, changed if is_kept else ({}, ""))
            case Finished():
                self._recorder.end(happening, self._hash())
            case _:
                pass

    def _hash(self) -> str:
        return "" if self._is_chat else workspace_hash(self._root, self._cleaned, self._file)

    def _kept(self, query: AskModel) -> int:
        """How many messages are those of the request before."""
        pairs = enumerate(zip(self._written, query.messages, strict=False))
        self._written, before = query.messages, len(self._written)
        return next((index for index, (one, other) in pairs if one != other), min(before, len(query.messages)))


class _Asked(threading.local):
    """The tools that the user was asked about since the last result, in each thread."""

    def __init__(self) -> None:
        self.tools: list[str] = []

    def taken(self) -> list[str]:
        tools, self.tools = self.tools, []
        return tools


def _definition(tool: Tool) -> UserTool:
    return UserTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        effect=tool.effect,
        aliases=tool.aliases,
        argument_aliases=dict(tool.argument_aliases),
    )
