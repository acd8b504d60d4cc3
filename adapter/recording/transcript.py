"""Transcripts: everything that happened in a conversation, one JSON object a line.

::

    {"kind": "header", "version": 1, "time": ..., "task": ..., "system": ..., "dialect": ..., "files": {...}, ...}
    {"kind": "request", "number": 1, "messages": [...], "at_s": 0.2}
    {"kind": "chunk", "text": "<tool", ...}             as it came, with its exact boundaries
    {"kind": "call", "name": ..., "arguments": ..., "fixes": [...]} | {"kind": "invalid", ...}
    {"kind": "inner", "name": ..., "arguments": ..., "content": ...}      inside a batch or code, where it is needed
    {"kind": "result", "call_id": ..., "ok": true, "content": ...}
    {"kind": "end", "reason": "answered", "content": ..., "workspace": "sha256:..."}
    {"kind": "told", "text": ...} {"kind": "said", "text": ...}           a chat goes on: what the user did, and says

The header holds the workspace as it was, so that a transcript can be run again
anywhere, offline; that of a chat holds none. Lines are written as things happen: a crash loses nothing
that came before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from adapter.conversation.guardrails.engine import RETRIES
from adapter.conversation.session import AskModel, Finished, SessionLimits
from adapter.core.arguments import check_types
from adapter.core.callbacks import observer
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
    """A file of the workspace: its text, or base64 of its bytes when they are not UTF-8."""

    text: str | None = None
    base64: str | None = None
    mode: int = 0o644


class UserTool(_Line):
    """A function, or a program, that the user gave to the session."""

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
    """When it began, as ISO 8601."""
    task: str
    system: str
    dialect: str
    format: str
    """How history was written for the model; its text is read in any format."""
    tools: tuple[str, ...]
    model: str = ""
    server: str = ""
    max_turns: int = SessionLimits().turns
    call_turns: int | None = None
    context_tokens: int | None = None
    guardrails: tuple[str, ...] = ("repeated_call",)
    """Those that were on; before there were others it was this one."""
    retries: int = RETRIES
    steps: JsonObject = Field(default_factory=dict)
    approve: str = "yolo"
    edits: Edits | None = None
    encoding: str | None = None
    rules: tuple[str, ...] = ()
    """Standing decisions, as `PermissionRule` writes them: ``allow run_command(git status)``."""
    known: tuple[str, ...] = ()
    """All tools of the session, also those that it could not offer."""
    own_tools: tuple[UserTool, ...] = ()
    """Those that the dialect has not by itself; what they gave is in the record."""
    read_only: bool = False
    above: tuple[str, ...] = ()
    """For a sub-agent in a folder: where that is in the workspace."""
    granted: tuple[tuple[str, ...], ...] = ()
    """What had been allowed for the session before it began."""
    media: tuple[MediaKind, ...] = ()
    """What the model took beside text."""
    is_chat: bool = False
    """It went on from message to message, and the files that it began with are not kept."""
    files: dict[str, StoredFile] = Field(default_factory=dict)
    workspace: str = ""
    """Hash of the workspace at the start; "" where it is not recorded."""


class RequestLine(_Line):
    kind: Literal["request"] = "request"
    number: int
    messages: tuple[JsonObject, ...]
    kept: int = 0
    """Of the messages of the request before, those that come first in this one and are not written again."""
    at_s: float | None = None
    """Seconds since the conversation began; None where nobody looked at a clock, as in a replay."""


class ChunkLine(_Line):
    kind: Literal["chunk"] = "chunk"
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    """How many the server counted in the request."""
    written_tokens: int | None = None
    """And in the answer."""
    at_s: float | None = None
    """As of `RequestLine`."""


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


class _Given(_Line):
    """What a call gave."""

    name: str
    ok: bool
    content: str
    user_message: str = ""
    changed: dict[str, StoredFile | None] = Field(default_factory=dict)
    """The files that a sub-agent or a tool of the user's changed; None for one that it deleted."""
    unrecorded: str = ""
    """Why these are not all."""


class ResultLine(_Given):
    kind: Literal["result"] = "result"
    call_id: str


class NestedCallLine(_Given):
    """A call inside a batch or code, of a tool that would answer differently another day."""

    kind: Literal["inner"] = "inner"
    arguments: JsonObject
    asked: tuple[str, ...] = ()
    """The tools that the user was asked about on the way."""


class ApprovalLine(_Line):
    """What the user decided when asked."""

    kind: Literal["approval"] = "approval"
    tool: str
    granted: bool
    remembered: bool = False
    """For the rest of the session."""
    reason: str = ""
    content: str | None = None
    """What the user put in the place of the text that was asked about."""

    @property
    def decision(self) -> ApprovalDecision:
        return ApprovalDecision(self.granted, self.remembered, self.reason, self.content)


class UserMessageLine(_Line):
    """A further message of the user; the first one is the task."""

    kind: Literal["said"] = "said"
    text: str


class NoteLine(_Line):
    """What the model is told with the user's next message."""

    kind: Literal["told"] = "told"
    text: str


class EndLine(_Line):
    kind: Literal["end"] = "end"
    reason: str
    content: str = ""
    workspace: str = ""
    """Hash of the workspace at the end."""


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
    """A recorded conversation of the agent, with its workspace."""

    header: Header
    lines: tuple[Line, ...]

    @classmethod
    def from_text(cls, text: str, name: str = "transcript") -> Transcript:
        """Read JSON lines. Raises UsageError naming the line that cannot be read."""
        check_types("Transcript.from_text", text=(text, str), name=(name, str))
        parsed: list[Header | Line] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                parsed.append(_LINE.validate_json(line))
            except ValidationError as error:
                raise UsageError(f"{name}, line {number}: not a transcript line ({explain(error)})") from error
        if not parsed or not isinstance(parsed[0], Header):
            raise UsageError(f"{name}: the first line must be the header, as `adapter run --record` writes it")
        if parsed[0].version > VERSION:
            raise UsageError(f"{name}: version {parsed[0].version}, but this program reads up to {VERSION}; upgrade it")
        return cls(parsed[0], tuple(_whole(line for line in parsed[1:] if not isinstance(line, Header))))

    def to_text(self) -> str:
        return "".join(map(dump_line, (self.header, *self.lines)))

    @property
    def answers(self) -> tuple[tuple[ChunkLine, ...], ...]:
        """The chunks of each answer, in order; of a request that was not answered none."""
        answers: list[list[ChunkLine]] = []
        for line in self.lines:
            if isinstance(line, RequestLine):
                answers.append([])
            elif isinstance(line, ChunkLine) and answers:
                answers[-1].append(line)
        return tuple(map(tuple, answers))


def _whole(lines: Iterable[Line]) -> Iterator[Line]:
    """With all messages in each request."""
    shown: tuple[JsonObject, ...] = ()
    for line in lines:
        if isinstance(line, RequestLine):
            shown = (*shown[: line.kept], *line.messages)
            line = line.model_copy(update={"messages": shown, "kept": 0})
        yield line


def dump_line(line: Header | Line) -> str:
    return _dumped(line.model_dump(mode="json"))


def _dumped(row: Json) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


Changed: TypeAlias = tuple[dict[str, StoredFile | None], str]
"""The files that a call changed, and why they are not all of them; "" when they are."""


class TranscriptWriter:
    """Turns what happens in a conversation into lines, and hands each to ``write`` at once.

    ``secrets`` are left out; without any told, what has the shape of one. A chunk whose end may be
    the beginning of one waits for the next. None leaves everything in. ``clock``: seconds since 1970; without one no
    line says when it was.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        secrets: Redactor | None = Redactor({}),  # noqa: B008
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._write = observer(write, "write")
        self.secrets = secrets
        self._clock = clock
        self._began = 0.0
        self._held: list[ChunkLine] = []

    def header(self, header: Header) -> None:
        if self._clock is not None:
            self._began = self._clock()
            time = datetime.fromtimestamp(self._began, UTC).isoformat(timespec="milliseconds")
            header = header.model_copy(update={"time": time})
        self._line(header)

    def request(self, query: AskModel, kept: int = 0) -> None:
        messages = tuple(dict(message) for message in query.messages[kept:])
        self._line(RequestLine(number=query.number, messages=messages, kept=kept, at_s=self._at_s()))

    def said(self, text: str) -> None:
        self._line(UserMessageLine(text=text))

    def told(self, text: str) -> None:
        self._line(NoteLine(text=text))

    def chunk(self, text: str, reasoning: str, finish_reason: str | None, usage: Usage | None = None) -> None:
        self._held.append(
            ChunkLine(
                text=text,
                reasoning=reasoning,
                finish_reason=finish_reason,
                prompt_tokens=usage.prompt if usage else None,
                written_tokens=usage.written if usage else None,
                at_s=self._at_s(),
            )
        )
        self._release(is_end=False)

    def _at_s(self) -> float | None:
        return None if self._clock is None else round(self._clock() - self._began, 3)

    def turn(self, turn: Turn) -> None:
        for call in turn.calls:
            self._line(CallLine(id=call.id, name=call.name, arguments=call.arguments, fixes=call.fixes))
        for wrong in turn.invalid:
            self._line(InvalidLine(raw=wrong.raw, error=wrong.error))

    def approval(self, tool: str, decision: ApprovalDecision) -> None:
        self._line(
            ApprovalLine(
                tool=tool,
                granted=decision.allowed,
                remembered=decision.remember,
                reason=decision.reason,
                content=decision.content,
            )
        )

    def result(self, result: ToolResult, changed: Changed = ({}, "")) -> None:
        self._line(ResultLine(call_id=result.call_id, **_given(result, changed)))

    def inner(self, arguments: JsonObject, result: ToolResult, changed: Changed, asked: Sequence[str]) -> None:
        self._line(NestedCallLine(arguments=arguments, asked=tuple(asked), **_given(result, changed)))

    def end(self, done: Finished, workspace_hash: str) -> None:
        self._line(EndLine(reason=done.reason, content=done.content, workspace=workspace_hash))

    def _release(self, *, is_end: bool) -> None:
        """Write the chunks that are settled."""
        texts, reasonings = [line.text for line in self._held], [line.reasoning for line in self._held]
        count = len(self._held)
        if self.secrets is not None:
            if not is_end:
                count = max(self.secrets.safe_prefix(texts) & self.secrets.safe_prefix(reasonings), default=0)
            texts, reasonings = self.secrets.redact_pieces(texts), self.secrets.redact_pieces(reasonings)
        for line, text, reasoning in zip(self._held[:count], texts, reasonings, strict=False):
            self._write(dump_line(line.model_copy(update={"text": text, "reasoning": reasoning})))
        self._held = self._held[count:]

    def _line(self, line: Header | Line) -> None:
        self._release(is_end=True)
        row = line.model_dump(mode="json")
        self._write(_dumped(self.secrets.redact(row) if self.secrets else row))


def _given(result: ToolResult, changed: Changed) -> dict[str, Json]:
    files, unrecorded = changed
    told = {"name": result.name, "ok": result.ok, "content": result.content, "user_message": result.user_message}
    return {**told, "changed": files, "unrecorded": unrecorded}
