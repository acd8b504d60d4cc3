"""Read and write transcripts, which store a conversation as JSON lines, one object per event.

::

    {"kind": "header", "version": 1, "time": ..., "task": ..., "system": ..., "dialect": ..., "files": {...}, ...}
    {"kind": "request", "number": 1, "messages": [...], "at_s": 0.2}
    {"kind": "chunk", "text": "<tool", ...}             as received, with the exact boundaries
    {"kind": "call", "name": ..., "arguments": ..., "fixes": [...]} | {"kind": "invalid", ...}
    {"kind": "inner", "name": ..., "arguments": ..., "content": ...}      inside a batch or code
    {"kind": "result", "call_id": ..., "ok": true, "content": ...}
    {"kind": "end", "reason": "answered", "content": ..., "workspace": "sha256:..."}
    {"kind": "told", "text": ...}                       a chat continues: a note for the model
    {"kind": "said", "text": ...}                       and the user's next message

The header contains the initial files of the workspace, so that a transcript can be replayed anywhere, offline. The
header of a chat does not contain files. Each line is written immediately, so that a crash loses no earlier line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from adapter.conversation.session_steps import AskModel
from adapter.core.argument_checks import check_types
from adapter.core.callback_checks import wrap_observer
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.core.turn import Turn
from adapter.core.validation_errors import explain_validation_error
from adapter.protocols.usage import Usage
from adapter.recording import transcript_lines


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recorded agent run or chat: every request, answer, tool call and result."""

    header: transcript_lines.Header
    lines: tuple[transcript_lines.Line, ...]

    @classmethod
    def from_text(cls, text: str, name: str = "transcript") -> Transcript:
        """Parse JSON lines. Raises UsageError for invalid text, and names the first invalid line."""
        check_types("Transcript.from_text", text=(text, str), name=(name, str))
        parsed: list[transcript_lines.Header | transcript_lines.Line] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                parsed.append(transcript_lines.LINE_ADAPTER.validate_json(line))
            except ValidationError as error:
                raise UsageError(
                    f"{name}, line {number}, is not a valid transcript line ({explain_validation_error(error)})"
                ) from error
        if not parsed or not isinstance(parsed[0], transcript_lines.Header):
            raise UsageError(f"{name} is not a transcript: the header that `adapter run --record` writes is missing")
        if (version := parsed[0].version) > transcript_lines.VERSION:
            known = transcript_lines.VERSION
            raise UsageError(
                f"{name}: transcript version {version} is not supported; this program reads versions up to {known}. "
                "Upgrade this program"
            )
        return cls(
            parsed[0],
            tuple(_restore_messages(line for line in parsed[1:] if not isinstance(line, transcript_lines.Header))),
        )

    def to_text(self) -> str:
        return "".join(map(dump_line, (self.header, *self.lines)))

    @property
    def answers(self) -> tuple[tuple[transcript_lines.ChunkLine, ...], ...]:
        """The chunks of each answer, in order. A request without an answer has no chunks."""
        groups = group_by_request(self.lines)
        return tuple(
            tuple(line for line in lines if isinstance(line, transcript_lines.ChunkLine)) for _, lines in groups
        )


def group_by_request(
    lines: Iterable[transcript_lines.Line],
) -> list[tuple[transcript_lines.RequestLine, list[transcript_lines.Line]]]:
    """Return each request with the lines between it and the next request."""
    groups: list[tuple[transcript_lines.RequestLine, list[transcript_lines.Line]]] = []
    for line in lines:
        if isinstance(line, transcript_lines.RequestLine):
            groups.append((line, []))
        elif groups:
            groups[-1][1].append(line)
    return groups


def _restore_messages(lines: Iterable[transcript_lines.Line]) -> Iterator[transcript_lines.Line]:
    """Yield the lines, with complete messages in each request. A stored request omits the leading messages that are the
    same as in the previous request."""
    messages: tuple[JsonObject, ...] = ()
    for line in lines:
        if isinstance(line, transcript_lines.RequestLine):
            messages = (*messages[: line.kept], *line.messages)
            line = line.model_copy(update={"messages": messages, "kept": 0})
        yield line


def dump_line(line: transcript_lines.Header | transcript_lines.Line) -> str:
    """Return a line as JSON, with its line ending."""
    return _dump_row(line.model_dump(mode="json"))


def _dump_row(row: Json) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


class TranscriptWriter:
    """Converts the events of a conversation to lines, and passes each line to ``write`` immediately.

    ``secrets`` redacts credentials. By default, only credentials with a recognizable form are redacted; None redacts
    nothing. If a chunk may end with the start of a credential, it is written together with the next chunk. ``clock``
    returns seconds since 1970; without it, lines have no times.
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
        self._buffered: list[transcript_lines.ChunkLine] = []

    def write_header(self, header: transcript_lines.Header) -> None:
        """Write the header with the current time. Times in later lines are relative to it."""
        if self._clock is not None:
            self._began = self._clock()
            time = datetime.fromtimestamp(self._began, UTC).isoformat(timespec="milliseconds")
            header = header.model_copy(update={"time": time})
        self.write_line(header)

    def write_request(self, query: AskModel, kept: int = 0) -> None:
        """Write a request, without its first ``kept`` messages, which are the same as in the previous request."""
        messages = tuple(dict(message) for message in query.messages[kept:])
        self.write_line(
            transcript_lines.RequestLine(
                number=query.number,
                messages=messages,
                kept=kept,
                classified=query.classified,
                at_s=self._measure_time_s(),
            )
        )

    def write_chunk(self, text: str, reasoning: str, finish_reason: str | None, usage: Usage | None = None) -> None:
        self._buffered.append(
            transcript_lines.ChunkLine(
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
        """Write the calls and invalid calls of an answer."""
        for call in turn.calls:
            self.write_line(
                transcript_lines.CallLine(id=call.id, name=call.name, arguments=call.arguments, fixes=call.fixes)
            )
        for invalid in turn.invalid:
            self.write_line(transcript_lines.InvalidLine(raw=invalid.raw, error=invalid.error))

    def _release(self, *, is_end: bool) -> None:
        """Write the buffered chunks whose redaction is final. If ``is_end`` is true, write all of them."""
        texts, reasonings = [line.text for line in self._buffered], [line.reasoning for line in self._buffered]
        count = len(self._buffered)
        if self.secrets is not None:
            if not is_end:
                count = max(self.secrets.find_safe_prefix(texts) & self.secrets.find_safe_prefix(reasonings), default=0)
            texts, reasonings = self.secrets.redact_pieces(texts), self.secrets.redact_pieces(reasonings)
        for line, text, reasoning in zip(self._buffered[:count], texts, reasonings, strict=False):
            self._write(dump_line(line.model_copy(update={"text": text, "reasoning": reasoning})))
        self._buffered = self._buffered[count:]

    def write_line(self, line: transcript_lines.Header | transcript_lines.Line) -> None:
        """Write a line, after the buffered chunks."""
        self._release(is_end=True)
        row = line.model_dump(mode="json")
        self._write(_dump_row(self.secrets.redact(row) if self.secrets else row))
