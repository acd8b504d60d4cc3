"""The values that travel: what a parser says about a text, and what a tool answers.

Every event carries ``raw``, the exact piece of the model's text it stands for.
Joining the ``raw`` of all events gives the text back, whatever the text was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from adapter.explanation import Span

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list of Json or dict of str to Json."""

JsonObject: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer that is meant for the user."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning (``<think>`` and its relatives)."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is neither answer, reasoning nor call: markers, the white space
    that templates put around them, end-of-turn tokens, invented tool results."""

    raw: str


@dataclass(frozen=True, slots=True)
class ContentWasReasoning:
    """All text so far was reasoning: its opening marker stood in the prompt, and here is the closing one.

    A display may move what it has shown; `Turn` does.
    """

    raw: str


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """A call is being written. For displays only: it is never executable.

    ``text`` is what this piece of the stream added to it, ``size`` how many characters
    it has so far, ``name`` what it calls, None until that is written. It carries no
    ``raw``: the call's own event will.
    """

    text: str
    name: str | None = None
    size: int = 0

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call's arguments, for a parser that streams them: JSON text, to be joined by ``id``.

    The `ToolCall` with that ``id`` says that the call is whole; without it what came is to be thrown away.
    It carries no ``raw``: the call's own event will.
    """

    id: str
    name: str
    arguments: str

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """Characters ``start`` to ``end`` of the model's text look like a call and were not taken as one.

    ``reason`` is a key of `adapter.rejections.REJECTIONS`. It carries no ``raw``: the text has its own event.
    """

    start: int
    end: int
    reason: str

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that is closed and decoded. Nobody has checked it against a tool yet.

    ``fixes`` names each repair that was needed to read it; empty means that the
    text was valid as written.
    """

    id: str
    name: str
    arguments: JsonObject
    raw: str
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidToolCall:
    """Something meant as a call that cannot be one. ``error`` is written for the model."""

    raw: str
    error: str
    name: str | None = None


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | Markup
    | ContentWasReasoning
    | ToolCallProgress
    | ToolCallDelta
    | RejectedCall
    | ToolCall
    | InvalidToolCall
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One whole answer of a model, read. ``rejected`` is in the order of the text."""

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    invalid: tuple[InvalidToolCall, ...]
    events: tuple[Event, ...]
    rejected: tuple[RejectedCall, ...] = ()

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> Turn:
        """Fold a stream of events; adjacent deltas of one kind become one."""
        events = tuple(events)
        merged = merge(events)
        content: list[str] = []
        reasoning: list[str] = []
        for event in merged:
            if isinstance(event, TextDelta):
                content.append(event.text)
            elif isinstance(event, ReasoningDelta):
                reasoning.append(event.text)
            elif isinstance(event, ContentWasReasoning):
                reasoning, content = reasoning + content, []
        return cls(
            content="".join(content),
            reasoning="".join(reasoning),
            calls=tuple(event for event in merged if isinstance(event, ToolCall)),
            invalid=tuple(event for event in merged if isinstance(event, InvalidToolCall)),
            events=merged,
            rejected=tuple(sorted((each for each in events if isinstance(each, RejectedCall)), key=_start_of)),
        )

    def explain(self) -> tuple[Span, ...]:
        """The model's text in pieces, in order: what each was taken for, and what looks like a call and is none."""
        from adapter.explanation import explain

        return explain(self)


class HasCalls(Protocol):
    """A turn, or a part of one, whose calls are to be run."""

    @property
    def calls(self) -> Sequence[ToolCall]: ...


def merge(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events that hold text: adjacent deltas joined, so that they do not depend on how the text was split."""
    merged: list[Event] = []
    run: list[TextDelta] | list[ReasoningDelta] | list[Markup] = []
    for event in events:
        if isinstance(event, ToolCallProgress | ToolCallDelta | RejectedCall):
            continue
        if run and type(event) is type(run[0]):
            run.append(event)  # type: ignore[arg-type]
            continue
        merged.extend(_joined(run))
        run = []
        if isinstance(event, TextDelta | ReasoningDelta | Markup):
            run = [event]  # type: ignore[assignment]
        else:
            merged.append(event)
    merged.extend(_joined(run))
    return tuple(merged)


def _start_of(rejected: RejectedCall) -> tuple[int, int]:
    return rejected.start, rejected.end


def _joined(run: Sequence[TextDelta] | Sequence[ReasoningDelta] | Sequence[Markup]) -> Iterable[Event]:
    if len(run) < 2:
        return run
    raw = "".join(event.raw for event in run)
    match run[0]:
        case TextDelta():
            return [TextDelta("".join(event.text for event in run), raw)]  # type: ignore[union-attr]
        case ReasoningDelta():
            return [ReasoningDelta("".join(event.text for event in run), raw)]  # type: ignore[union-attr]
        case Markup():
            return [Markup(raw)]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to one call.

    ``content`` is the text the model gets, already truncated; when ``ok`` is
    false it states the error and the next step. ``error`` is the bare message.
    """

    name: str
    ok: bool
    content: str
    error: str | None = None
    call_id: str = ""
    data: Json = None
    """The documented result fields as JSON, where the tool has any."""
    diff: str = ""
    """Unified diff of what a writing tool changed."""
    notes: tuple[str, ...] = field(default=())
    """What was tolerated or corrected on the way, one sentence each."""
    user_message: str = ""
    """What is to follow the results as a new user message: a skill's instructions."""
    images: tuple[str, ...] = ()
    """Data URLs of what the model is to see, after the results."""
    ends: bool = False
    """The model asked to end the run."""
    sandbox: str = ""
    """Of what ran programs: what confined them, or that nothing did."""
