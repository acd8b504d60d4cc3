"""Transcripts: a conversation as JSON lines, one object per event.

::

    {"kind": "header", "version": 1, "time": ..., "task": ..., "system": ..., "dialect": ..., "files": {...}, ...}
    {"kind": "request", "number": 1, "messages": [...], "at_s": 0.2}
    {"kind": "chunk", "text": "<tool", ...}             as received, with the exact boundaries
    {"kind": "call", "name": ..., "arguments": ..., "fixes": [...]} | {"kind": "invalid", ...}
    {"kind": "inner", "name": ..., "arguments": ..., "content": ...}      inside a batch or code
    {"kind": "result", "call_id": ..., "ok": true, "content": ...}
    {"kind": "end", "reason": "answered", "content": ..., "workspace": "sha256:..."}
    {"kind": "told", "text": ...} {"kind": "said", "text": ...}           the chat continues with a note and a message

The header contains the initial files of the workspace, so that a transcript can be replayed anywhere, offline. The
header of a chat does not contain files. Each line is written immediately, so that a crash loses no earlier line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from adapter.conversation.guardrails.engine import MAX_CALLS, RETRIES
from adapter.conversation.session import AskModel, Finished, SessionLimits
from adapter.core.arguments import check_types
from adapter.core.callbacks import wrap_observer
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject, ToolResult
from adapter.core.text.redaction import Redactor
from adapter.core.turn import Turn
from adapter.core.validation import explain
from adapter.protocols.usage import Usage
from adapter.tools.operations import Edits, Effect, MediaKind
from adapter.tools.operations.permissions import ApprovalDecision

VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class StoredFile(_Line):
    """A file of the workspace. Its content is text, or base64 if it is not valid UTF-8."""

    text: str | None = None
    base64: str | None = None
    mode: int = 0o644


class UserTool(_Line):
    """A custom function or program that the recorded session could use."""

    name: str
    description: str = ""
    parameters: JsonObject
    effect: Effect = "execute"
    aliases: tuple[str, ...] = ()
    argument_aliases: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Header(_Line):
    kind: Literal["header"] = "header"
    version: int = VERSION
    time: str = ""
    """Start time in ISO 8601 format."""
    task: str
    system: str
    dialect: str
    format: str
    """Format in which earlier calls are shown to the model. The model's text may contain calls in any format."""
    tools: tuple[str, ...]
    model: str = ""
    server: str = ""
    max_turns: int = SessionLimits().turns
    call_turns: int | None = None
    context_tokens: int | None = None
    guardrails: tuple[str, ...] = ("repeated_call",)
    """Active guardrails. Older transcripts do not list them; their only guardrail was the default."""
    retries: int = RETRIES
    max_calls: int = MAX_CALLS
    steps: JsonObject = Field(default_factory=dict)
    approve: str = "yolo"
    edits: Edits | None = None
    encoding: str | None = None
    rules: tuple[str, ...] = ()
    """Permission rules as text, for example ``allow run_command(git status)``."""
    known: tuple[str, ...] = ()
    """Names of all tools of the session, including tools that were not available."""
    own_tools: tuple[UserTool, ...] = ()
    """Tools that are not part of the dialect. A replay uses their recorded results."""
    read_only: bool = False
    above: tuple[str, ...] = ()
    """Path of a sub-agent's folder, relative to the workspace."""
    granted: tuple[tuple[str, ...], ...] = ()
    """Approvals for the whole session that were given before the recording began."""
    media: tuple[MediaKind, ...] = ()
    """Kinds of media that the model accepts in addition to text."""
    is_chat: bool = False
    """True for a chat with several user messages. The initial files of a chat are not recorded."""
    files: dict[str, StoredFile] = Field(default_factory=dict)
    workspace: str = ""
    """Hash of the workspace at the start; "" if the files are not recorded."""


class RequestLine(_Line):
    kind: Literal["request"] = "request"
    number: int
    messages: tuple[JsonObject, ...]
    kept: int = 0
    """Number of leading messages that are the same as in the previous request. They are not repeated in this line."""
    at_s: float | None = None
    """Seconds since the conversation began; None if there was no clock, as in a replay."""


class ChunkLine(_Line):
    kind: Literal["chunk"] = "chunk"
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    """Number of tokens in the prompt, as counted by the server."""
    written_tokens: int | None = None
    """Number of tokens in the response, as counted by the server."""
    at_s: float | None = None
    """Seconds since the conversation began; see `RequestLine`."""


class CallLine(_Line):
    kind: Literal["call"] = "call"
    id: str
    name: str
    arguments: JsonObject
    fixes: tuple[str, ...] = ()


class InvalidLine(_Line):
    kind: Literal["invalid"] = "invalid"
    raw: str
    error: str


class _ResultFields(_Line):
    """Fields of lines that contain the result of a call."""

    name: str
    ok: bool
    content: str
    user_message: str = ""
    changed: dict[str, StoredFile | None] = Field(default_factory=dict)
    """Files that a sub-agent or a custom tool changed. None means that the file was deleted."""
    unrecorded: str = ""
    """Reason why ``changed`` is incomplete; "" if it is complete."""


class ResultLine(_ResultFields):
    kind: Literal["result"] = "result"
    call_id: str


class NestedCallLine(_ResultFields):
    """A call inside a batch or code whose result may change in a replay."""

    kind: Literal["inner"] = "inner"
    arguments: JsonObject
    asked: tuple[str, ...] = ()
    """Names of the tools for which the call needed the user's approval."""


class ApprovalLine(_Line):
    """The user's decision on an approval request."""

    kind: Literal["approval"] = "approval"
    tool: str
    granted: bool
    remembered: bool = False
    """True if the decision applies to the rest of the session."""
    reason: str = ""
    content: str | None = None
    """The user's replacement for the proposed text."""

    @property
    def decision(self) -> ApprovalDecision:
        return ApprovalDecision(self.granted, self.remembered, self.reason, self.content)


class UserMessageLine(_Line):
    """A user message after the first one. The first message is the task in the header."""

    kind: Literal["said"] = "said"
    text: str


class NoteLine(_Line):
    """A note for the model, which the user's next message includes."""

    kind: Literal["told"] = "told"
    text: str


class EndLine(_Line):
    kind: Literal["end"] = "end"
    reason: str
    content: str = ""
    workspace: str = ""
    """Hash of the workspace at the end of the conversation."""


Line: TypeAlias = (
    RequestLine
    | ChunkLine
    | CallLine
    | InvalidLine
    | ApprovalLine
    | NestedCallLine
    | ResultLine
    | EndLine
    | UserMessageLine
    | NoteLine
)
_LINE: TypeAdapter[Header | Line] = TypeAdapter(Annotated[Header | Line, Field(discriminator="kind")])


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recorded agent run or chat: every request, response, tool call and result."""

    header: Header
    lines: tuple[Line, ...]

    @classmethod
    def from_text(cls, text: str, name: str = "transcript") -> Transcript:
        """Parse JSON lines. Raises UsageError, which names the first invalid line."""
        check_types("Transcript.from_text", text=(text, str), name=(name, str))
        parsed: list[Header | Line] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                parsed.append(_LINE.validate_json(line))
            except ValidationError as error:
                raise UsageError(f"{name}, line {number}, is not a valid transcript line ({explain(error)})") from error
        if not parsed or not isinstance(parsed[0], Header):
            raise UsageError(f"{name}: the first line must be the header, as `adapter run --record` writes it")
        if parsed[0].version > VERSION:
            raise UsageError(
                f"{name}: version {parsed[0].version} is not supported (up to {VERSION}); upgrade this program"
            )
        return cls(parsed[0], tuple(_restore_messages(line for line in parsed[1:] if not isinstance(line, Header))))

    def to_text(self) -> str:
        return "".join(map(dump_line, (self.header, *self.lines)))

    @property
    def answers(self) -> tuple[tuple[ChunkLine, ...], ...]:
        """The chunks of each response, in order. A request without a response has no chunks."""
        groups = group_by_request(self.lines)
        return tuple(tuple(line for line in lines if isinstance(line, ChunkLine)) for _, lines in groups)


def group_by_request(lines: Iterable[Line]) -> list[tuple[RequestLine, list[Line]]]:
    """Return each request with the lines between it and the next request."""
    groups: list[tuple[RequestLine, list[Line]]] = []
    for line in lines:
        if isinstance(line, RequestLine):
            groups.append((line, []))
        elif groups:
            groups[-1][1].append(line)
    return groups


def _restore_messages(lines: Iterable[Line]) -> Iterator[Line]:
    """Add to each request the messages that it shares with the previous request."""
    messages: tuple[JsonObject, ...] = ()
    for line in lines:
        if isinstance(line, RequestLine):
            messages = (*messages[: line.kept], *line.messages)
            line = line.model_copy(update={"messages": messages, "kept": 0})
        yield line


def dump_line(line: Header | Line) -> str:
    return _dump_row(line.model_dump(mode="json"))


def _dump_row(row: Json) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


Changed: TypeAlias = tuple[dict[str, StoredFile | None], str]
"""The files that a call changed, and the reason why some are missing; "" if none are missing."""


class TranscriptWriter:
    """Converts the events of a conversation to lines, and passes each line to ``write`` immediately.

    ``secrets``: redacts credentials. By default, only credentials with a recognizable form are redacted; None redacts
    nothing. If the end of a chunk may be the start of a credential, the chunk is written together with the next one.
    ``clock``: returns seconds since 1970; without it, lines have no times.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        secrets: Redactor | None = Redactor({}),  # noqa: B008
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._write = wrap_observer(write, "write")
        self.secrets = secrets
        self._clock = clock
        self._began = 0.0
        self._buffered: list[ChunkLine] = []

    def write_header(self, header: Header) -> None:
        if self._clock is not None:
            self._began = self._clock()
            time = datetime.fromtimestamp(self._began, UTC).isoformat(timespec="milliseconds")
            header = header.model_copy(update={"time": time})
        self._write_line(header)

    def write_request(self, query: AskModel, kept: int = 0) -> None:
        messages = tuple(dict(message) for message in query.messages[kept:])
        self._write_line(RequestLine(number=query.number, messages=messages, kept=kept, at_s=self._measure_time_s()))

    def write_user_message(self, text: str) -> None:
        self._write_line(UserMessageLine(text=text))

    def note(self, text: str) -> None:
        self._write_line(NoteLine(text=text))

    def write_chunk(self, text: str, reasoning: str, finish_reason: str | None, usage: Usage | None = None) -> None:
        self._buffered.append(
            ChunkLine(
                text=text,
                reasoning=reasoning,
                finish_reason=finish_reason,
                prompt_tokens=usage.prompt if usage else None,
                written_tokens=usage.written if usage else None,
                at_s=self._measure_time_s(),
            )
        )
        self._release(is_end=False)

    def _measure_time_s(self) -> float | None:
        return None if self._clock is None else round(self._clock() - self._began, 3)

    def write_turn(self, turn: Turn) -> None:
        for call in turn.calls:
            self._write_line(CallLine(id=call.id, name=call.name, arguments=call.arguments, fixes=call.fixes))
        for invalid in turn.invalid:
            self._write_line(InvalidLine(raw=invalid.raw, error=invalid.error))

    def write_approval(self, tool: str, decision: ApprovalDecision) -> None:
        self._write_line(
            ApprovalLine(
                tool=tool,
                granted=decision.allowed,
                remembered=decision.remember,
                reason=decision.reason,
                content=decision.content,
            )
        )

    def write_result(self, result: ToolResult, changed: Changed = ({}, "")) -> None:
        self._write_line(ResultLine(call_id=result.call_id, **_build_result_fields(result, changed)))

    def write_nested_call(
        self, arguments: JsonObject, result: ToolResult, changed: Changed, asked: Sequence[str]
    ) -> None:
        self._write_line(
            NestedCallLine(arguments=arguments, asked=tuple(asked), **_build_result_fields(result, changed))
        )

    def write_end(self, done: Finished, workspace_hash: str) -> None:
        self._write_line(EndLine(reason=done.reason, content=done.content, workspace=workspace_hash))

    def _release(self, *, is_end: bool) -> None:
        """Write the buffered chunks whose redaction cannot depend on later text. ``is_end``: whether the text has
        ended."""
        texts, reasonings = [line.text for line in self._buffered], [line.reasoning for line in self._buffered]
        count = len(self._buffered)
        if self.secrets is not None:
            if not is_end:
                count = max(self.secrets.find_safe_prefix(texts) & self.secrets.find_safe_prefix(reasonings), default=0)
            texts, reasonings = self.secrets.redact_pieces(texts), self.secrets.redact_pieces(reasonings)
        for line, text, reasoning in zip(self._buffered[:count], texts, reasonings, strict=False):
            self._write(dump_line(line.model_copy(update={"text": text, "reasoning": reasoning})))
        self._buffered = self._buffered[count:]

    def _write_line(self, line: Header | Line) -> None:
        self._release(is_end=True)
        row = line.model_dump(mode="json")
        self._write(_dump_row(self.secrets.redact(row) if self.secrets else row))


def _build_result_fields(result: ToolResult, changed: Changed) -> dict[str, Json]:
    files, unrecorded = changed
    note = {"name": result.name, "ok": result.ok, "content": result.content, "user_message": result.user_message}
    return {**note, "changed": files, "unrecorded": unrecorded}
