"""One answer as an engine hands it to its parsers: pieces of text in, content, reasoning and calls out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    MarkupDelta,
    ReasoningDelta,
    ReasoningReclassified,
    RejectedCall,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from adapter.parsing.format import CUT_OFF, Format
from adapter.parsing.formats import FORMATS
from adapter.parsing.marker_tables import REASONING, reasoning_markers
from adapter.parsing.parser import Parser
from adapter.tools.tool import ToolSet

TAIL = 64
"""Characters by which a stream is told from another one of the same length."""


@dataclass(frozen=True, slots=True)
class EngineCallDelta:
    """More of the arguments, JSON text, of the call ``index``; its first piece has ``id`` and ``name``."""

    index: int
    arguments: str
    id: str | None = None
    name: str | None = None


@dataclass(slots=True)
class EngineDelta:
    """What some text of an answer was taken for. ``made``: the calls that it completed."""

    content: str = ""
    reasoning: str = ""
    calls: list[EngineCallDelta] = field(default_factory=list)
    made: list[ToolCall] = field(default_factory=list)


class StreamAdapter:
    """Reads one answer, whole or as it streams.

    ``generation_prompt``: as of `Parser`; None where nobody knows it, and then formats that always have reasoning
    opened there are taken to have done so, and the others not. ``splits``: reasoning is apart; else it is content, as
    it was written. ``turn`` tells the ids of this answer's calls from all others. ``follows_reasoning``: its reasoning,
    with what closes that, was read elsewhere.
    """

    def __init__(
        self,
        format: Format | None,
        tools: ToolSet,
        *,
        generation_prompt: str | None,
        turn: str,
        splits: bool = True,
        stream_arguments: bool = False,
        follows_reasoning: bool = False,
    ) -> None:
        if generation_prompt is None:
            is_opened = format is not None and format.starts_in_reasoning
            generation_prompt = next(iter(format.reasoning)) if format is not None and is_opened else ""
        self._parser = Parser(
            format, tools, generation_prompt=generation_prompt, turn=turn, stream_arguments=stream_arguments
        )
        self._marks, self._closing = _marks_of(format)
        if follows_reasoning:
            self._parser.feed(next(iter(REASONING.values())))  # which every format takes for its own
        self._splits, self._is_closed = splits, False
        self._reasoned: list[str] = []
        self._indices: dict[str, int] = {}
        self.read = 0
        """Characters of the answer so far."""
        self._tail = ""

    def feed(self, text: str) -> list[Event]:
        self.read += len(text)
        self._tail = (self._tail + text)[-TAIL:]
        if self._is_closed:  # what was taken for its end was none
            return [TextDelta(text, text)] if text else []
        return self._parser.feed(text)

    def close(self) -> list[Event]:
        """The last events. Engines do not say why an answer ended, so that a call without its last marker is whole."""
        self._is_closed = True
        return self._parser.close()

    def has_read(self, text: str) -> bool:
        """Whether ``text`` is what was read so far, judged by its length and end."""
        return len(text) == self.read and text.endswith(self._tail)

    def end_of_reasoning(self, events: Sequence[Event]) -> int | None:
        """The place of the event before which reasoning is over, behind what closes it; None where it is not."""
        for at, event in enumerate(events):
            if self._closes_reasoning(event):
                return at + isinstance(event, MarkupDelta)
        return None

    def _closes_reasoning(self, event: Event) -> bool:
        """Whether the answer has left its reasoning, or has none, once ``event`` has come."""
        match event:
            case MarkupDelta(raw=raw):
                return any(marker in raw.lower() for marker in self._closing)
            case TextDelta(text=text):
                return not text.isspace()
            case ReasoningDelta() | ContentReclassified() | ReasoningReclassified() | RejectedCall():
                return False
            case _:
                return True

    def emitted_calls(self, events: Iterable[Event]) -> EngineDelta:
        """The events as an engine's client gets them. Calls that were cut off are left out; others that can be none
        are content, so that nothing is lost."""
        piece = EngineDelta()
        for event in events:
            match event:
                case ToolCallDelta(id=id, name=name, arguments=arguments):
                    piece.calls.append(self._piece(id, name, arguments))
                case ToolCall():
                    if event.id not in self._indices:
                        arguments = json.dumps(event.arguments, ensure_ascii=False)
                        piece.calls.append(self._piece(event.id, event.name, arguments))
                    piece.made.append(event)
                case InvalidToolCall(raw=raw, error=error):
                    piece.content += raw if error != CUT_OFF else ""
                case _:
                    self._tell(event, piece)
        return piece

    def told_as_text(self, events: Iterable[Event], *, with_cut_off: bool) -> EngineDelta:
        """The same, with all calls as they were written."""
        piece = EngineDelta()
        for event in events:
            match event:
                case ToolCall(raw=raw):
                    piece.content += raw
                case InvalidToolCall(raw=raw, error=error):
                    piece.content += raw if with_cut_off or error != CUT_OFF else ""
                case _:
                    self._tell(event, piece)
        return piece

    def index_of(self, call: ToolCall) -> int:
        """The place of a call that was told among all of the answer."""
        return self._indices[call.id]

    def _tell(self, event: Event, piece: EngineDelta) -> None:
        match event:
            case TextDelta(text=text):
                piece.content += text
            case ReasoningDelta(text=text, raw=raw):
                self._reasoned.append(text)
                if self._splits:
                    piece.reasoning += text
                else:
                    piece.content += raw
            case MarkupDelta(raw=raw) if not self._splits and any(marker in raw.lower() for marker in self._marks):
                piece.content += raw
            case ContentReclassified() if self._splits:
                piece.reasoning, piece.content = piece.reasoning + piece.content, ""
            case ReasoningReclassified() if self._splits:
                piece.reasoning, piece.content = "", "".join(self._reasoned) + piece.content

    def _piece(self, id: str, name: str, arguments: str) -> EngineCallDelta:
        if id in self._indices:
            return EngineCallDelta(self._indices[id], arguments)
        index = self._indices[id] = len(self._indices)
        return EngineCallDelta(index, arguments, id, name)


@lru_cache(maxsize=128)
def _marks_of(format: Format | None) -> tuple[frozenset[str], frozenset[str]]:
    """All markers of reasoning, and those that close it."""
    marks = reasoning_markers(FORMATS.all if format is None else (format,))
    return frozenset((*marks, *marks.values())), frozenset(marks.values())


class ReasoningRemainder(str):
    """What follows, or stands around, an answer's reasoning: a text for the engine, which carries it from our reasoning
    parser to our tool parser.

    ``piece``: of a whole answer all that is to be told, of a stream what came before the text. An engine that asks
    whether there is a text is told so where either is.
    """

    __slots__ = ("piece",)
    piece: EngineDelta

    @classmethod
    def of(cls, text: str, piece: EngineDelta) -> ReasoningRemainder:
        rest = cls(text)
        rest.piece = piece
        return rest

    def __bool__(self) -> bool:
        return len(self) > 0 or self.piece != EngineDelta()
