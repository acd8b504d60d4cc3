"""Parse the text of one response inside an inference engine, and return its content, reasoning and calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

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
from adapter.parsing.marker_tables import REASONING, map_reasoning_markers
from adapter.parsing.parser import Parser
from adapter.tools.tool_set import ToolSet

TAIL = 64
"""Number of characters at the end of a stream that are compared to tell it from other streams of the same length."""


@dataclass(frozen=True, slots=True)
class EngineCallDelta:
    """A delta of the arguments (JSON text) of call ``index``. The first delta of a call has ``id`` and ``name``."""

    index: int
    arguments: str
    id: str | None = None
    name: str | None = None


@dataclass(slots=True)
class EngineDelta:
    """The parsed content, reasoning and call deltas of a chunk. ``completed`` has the calls that end in this chunk."""

    content: str = ""
    reasoning: str = ""
    calls: list[EngineCallDelta] = field(default_factory=list)
    completed: list[ToolCall] = field(default_factory=list)


class StreamAdapter:
    """Parses one response, complete or streamed.

    Args:
        generation_prompt: The end of the prompt, as in `Parser`. None: the prompt opens reasoning if the format's
            responses always start inside a reasoning block.
        turn: Text that makes call ids unique.
        splits_reasoning: False to keep reasoning in the content, verbatim.
        follows_reasoning: True if another parser has already parsed the reasoning and its closing marker.
    """

    def __init__(
        self,
        format: Format | None,
        tools: ToolSet,
        *,
        generation_prompt: str | None,
        turn: str,
        splits_reasoning: bool = True,
        stream_arguments: bool = False,
        follows_reasoning: bool = False,
    ) -> None:
        if generation_prompt is None:
            is_opened = format is not None and format.starts_in_reasoning
            generation_prompt = next(iter(format.reasoning)) if format is not None and is_opened else ""
        self._parser = Parser(
            format, tools, generation_prompt=generation_prompt, turn=turn, stream_arguments=stream_arguments
        )
        self._reasoning_markers, self._closing = _list_reasoning_markers(format)
        if follows_reasoning:
            self._parser.feed(next(iter(REASONING.values())))  # accepted by every format
        self._splits_reasoning, self._is_closed = splits_reasoning, False
        self._reasoning_chunks: list[str] = []
        self._indices: dict[str, int] = {}
        self.position = 0
        """Number of characters parsed so far."""
        self._tail = ""

    def feed(self, text: str) -> list[Event]:
        self.position += len(text)
        self._tail = (self._tail + text)[-TAIL:]
        if self._is_closed:  # the response continues after its apparent end
            return [TextDelta(text, text)] if text else []
        return self._parser.feed(text)

    def close(self) -> list[Event]:
        """Return the last events. Without a finish reason, a call without its closing marker counts as complete."""
        self._is_closed = True
        return self._parser.close()

    def has_read(self, text: str) -> bool:
        """Return whether ``text`` is the text parsed so far. Only the length and the end of the texts are compared."""
        return len(text) == self.position and text.endswith(self._tail)

    def find_end_of_reasoning(self, events: Sequence[Event]) -> int | None:
        """Return the index of the first event after reasoning and its closing marker, or None if there is none yet."""
        for at, event in enumerate(events):
            if self._closes_reasoning(event):
                return at + isinstance(event, MarkupDelta)
        return None

    def _closes_reasoning(self, event: Event) -> bool:
        """Return whether ``event`` shows that reasoning has ended or that there is none."""
        match event:
            case MarkupDelta(raw=raw):
                return any(marker in raw.lower() for marker in self._closing)
            case TextDelta(text=text):
                return not text.isspace()
            case ReasoningDelta() | ContentReclassified() | ReasoningReclassified() | RejectedCall():
                return False
            case _:
                return True

    def emit_calls(self, events: Iterable[Event]) -> EngineDelta:
        """Convert events for the engine's client. Truncated calls are dropped; other invalid calls become content."""
        delta = EngineDelta()
        for event in events:
            match event:
                case ToolCallDelta(id=id, name=name, arguments=arguments):
                    delta.calls.append(self._build_call_delta(id, name, arguments))
                case ToolCall():
                    if event.id not in self._indices:
                        arguments = json.dumps(event.arguments, ensure_ascii=False)
                        delta.calls.append(self._build_call_delta(event.id, event.name, arguments))
                    delta.completed.append(event)
                case InvalidToolCall(raw=raw, error=error):
                    delta.content += raw if error != CUT_OFF else ""
                case _:
                    self._add_event(event, delta)
        return delta

    def emit_text(self, events: Iterable[Event], *, with_cut_off: bool) -> EngineDelta:
        """Convert events, with calls as raw text. Truncated calls are included only if ``with_cut_off`` is True."""
        delta = EngineDelta()
        for event in events:
            match event:
                case ToolCall(raw=raw):
                    delta.content += raw
                case InvalidToolCall(raw=raw, error=error):
                    delta.content += raw if with_cut_off or error != CUT_OFF else ""
                case _:
                    self._add_event(event, delta)
        return delta

    def record_calls(self, delta: EngineDelta, calls: list[dict[str, Any]], arguments: list[str]) -> None:
        """Update the lists of calls and streamed arguments that engines read from their tool parsers."""
        for call in delta.calls:
            if call.name is not None:
                calls.append({"name": call.name, "arguments": {}})
                arguments.append("")
            arguments[call.index] += call.arguments
        for completed in delta.completed:
            calls[self._indices[completed.id]]["arguments"] = completed.arguments

    def _add_event(self, event: Event, delta: EngineDelta) -> None:
        match event:
            case TextDelta(text=text):
                delta.content += text
            case ReasoningDelta(text=text, raw=raw):
                self._reasoning_chunks.append(text)
                if self._splits_reasoning:
                    delta.reasoning += text
                else:
                    delta.content += raw
            case MarkupDelta(raw=raw) if not self._splits_reasoning and any(
                marker in raw.lower() for marker in self._reasoning_markers
            ):
                delta.content += raw
            case ContentReclassified() if self._splits_reasoning:
                delta.reasoning, delta.content = delta.reasoning + delta.content, ""
            case ReasoningReclassified() if self._splits_reasoning:
                delta.reasoning, delta.content = "", "".join(self._reasoning_chunks) + delta.content

    def _build_call_delta(self, id: str, name: str, arguments: str) -> EngineCallDelta:
        if id in self._indices:
            return EngineCallDelta(self._indices[id], arguments)
        index = self._indices[id] = len(self._indices)
        return EngineCallDelta(index, arguments, id, name)


@lru_cache(maxsize=128)
def _list_reasoning_markers(format: Format | None) -> tuple[frozenset[str], frozenset[str]]:
    """Return all reasoning markers of a format, and its closing markers."""
    markers = map_reasoning_markers(FORMATS.all if format is None else (format,))
    return frozenset((*markers, *markers.values())), frozenset(markers.values())


class ReasoningRemainder(str):
    """The text after the reasoning, which also carries ``delta``, a parsed result, for the tool parser.

    The engine passes it from the reasoning parser to the tool parser as a string. ``delta`` is the result of a complete
    response or, in a stream, the result before this text. The string is truthy if the text or ``delta`` is not empty.
    """

    __slots__ = ("delta",)
    delta: EngineDelta

    @classmethod
    def from_text(cls, text: str, delta: EngineDelta) -> ReasoningRemainder:
        rest = cls(text)
        rest.delta = delta
        return rest

    def __bool__(self) -> bool:
        return len(self) > 0 or self.delta != EngineDelta()
