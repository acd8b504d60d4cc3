"""A model's answer as a `Turn`, built from events, and the classification of its text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Literal, Protocol, TypeAlias

from adapter.core.argument_checks import check_types
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
    ToolCallProgress,
)

Kind: TypeAlias = Literal["content", "reasoning", "markup", "call", "invalid"]


@dataclass(frozen=True, slots=True)
class Span:
    """A span of the model's text, from ``start`` to ``end``, and its classification."""

    kind: Kind
    start: int
    end: int
    text: str
    call: ToolCall | None = None
    """The call, if the span is a call."""
    error: str | None = None
    """The error message, if the span is an invalid call."""
    rejected: tuple[RejectedCall, ...] = ()
    """The rejected calls that begin in the span."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One complete answer from a model: its content, reasoning and tool calls. ``rejected`` is sorted by position."""

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    invalid: tuple[InvalidToolCall, ...]
    events: tuple[Event, ...]
    rejected: tuple[RejectedCall, ...] = ()

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> Turn:
        """Build a turn from a stream of events. Adjacent deltas of the same kind are joined."""
        check_types("Turn.from_events", events=(events, Iterable))
        events = tuple(events)
        merged = merge_deltas(events)
        content: list[str] = []
        reasoning: list[str] = []
        calls: list[ToolCall] = []
        invalid: list[InvalidToolCall] = []
        for event in merged:
            match event:
                case ToolCall():
                    calls.append(event)
                case TextDelta():
                    content.append(event.text)
                case ReasoningDelta():
                    reasoning.append(event.text)
                case InvalidToolCall():
                    invalid.append(event)
                case ContentReclassified():
                    reasoning, content = reasoning + content, []
                case ReasoningReclassified():
                    reasoning, content = [], reasoning + content
        rejected = [event for event in events if type(event) is RejectedCall]
        rejected.sort(key=lambda event: (event.start, event.end))
        return cls("".join(content), "".join(reasoning), tuple(calls), tuple(invalid), merged, tuple(rejected))

    def explain(self) -> tuple[Span, ...]:
        """Return the classified spans of the model's text, in order, with their rejected calls. Joined, the spans'
        ``text`` is the model's output."""
        unopened = next((at for at, event in enumerate(self.events) if isinstance(event, ContentReclassified)), -1)
        was_content = any(isinstance(event, ReasoningReclassified) for event in self.events)
        waiting = deque(self.rejected)
        spans: list[Span] = []
        start = 0
        for number, event in enumerate(self.events):
            end = start + len(event.raw)
            kind: Kind = "markup"
            call = event if isinstance(event, ToolCall) else None
            error = event.error if isinstance(event, InvalidToolCall) else None
            if call is not None:
                kind = "call"
            elif error is not None:
                kind = "invalid"
            elif isinstance(event, ReasoningDelta) or (isinstance(event, TextDelta) and number < unopened):
                kind = "content" if was_content else "reasoning"
            elif isinstance(event, TextDelta):
                kind = "content"
            rejected = []
            while waiting and waiting[0].start < end:
                rejected.append(waiting.popleft())
            spans.append(Span(kind, start, end, event.raw, call, error, tuple(rejected)))
            start = end
        return tuple(spans)

    def _repr_html_(self) -> str:
        """Return a small table for notebooks. All text is escaped, because a model wrote it."""
        import json
        from html import escape

        rows = [("content", self.content), ("reasoning", self.reasoning)]
        rows += [(f"call {call.name}", json.dumps(call.arguments, ensure_ascii=False)) for call in self.calls]
        rows += [(f"invalid {each.name or ''}", each.error) for each in self.invalid]
        cells = "".join(
            f"<tr><th>{escape(title)}</th><td><pre>{escape(text)}</pre></td></tr>"
            for title, text in rows
            if text.strip()
        )
        return f"<table>{cells}</table>"


class HasCalls(Protocol):
    """Protocol for a turn, or part of a turn, with tool calls to run."""

    @property
    def calls(self) -> Sequence[ToolCall]: ...


_PLAIN_TEXT = frozenset({TextDelta, ReasoningDelta, MarkupDelta})
_WITHOUT_TEXT = frozenset({ToolCallProgress, ToolCallDelta, RejectedCall})


def merge_deltas(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop events without text, and join adjacent deltas of the same kind. The result does not depend on the chunks in
    which the text arrived."""
    merged: list[Event] = []
    run: list[TextDelta] | list[ReasoningDelta] | list[MarkupDelta] = []
    for event in events:
        kind = type(event)
        if kind in _WITHOUT_TEXT:
            continue
        if run and kind is type(run[0]):
            run.append(event)  # type: ignore[arg-type]
            continue
        if run:
            merged.extend(_join_run(run))
            run = []
        if kind in _PLAIN_TEXT:
            run = [event]  # type: ignore[assignment]
        else:
            merged.append(event)
    merged.extend(_join_run(run))
    return tuple(merged)


def _join_run(run: Sequence[TextDelta] | Sequence[ReasoningDelta] | Sequence[MarkupDelta]) -> Iterable[Event]:
    if len(run) < 2:
        return run
    raws = [event.raw for event in run]
    raw = "".join(raws)
    if isinstance(run[0], MarkupDelta):
        return [MarkupDelta(raw)]
    texts = [event.text for event in run]  # type: ignore[union-attr]
    # Text and raw text are usually the same objects. Reusing them saves a copy of a long answer.
    text = raw if all(map(is_, texts, raws)) else "".join(texts)
    return [TextDelta(text, raw) if isinstance(run[0], TextDelta) else ReasoningDelta(text, raw)]
