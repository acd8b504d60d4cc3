"""The values that travel: what a parser says about a text, and what a tool answers.

Every event carries ``raw``, the exact piece of the model's text it stands for.
Joining the ``raw`` of all events gives the text back, whatever the text was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list of Json or dict of str to Json."""

JsonObject: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class _Delta:
    text: str
    raw: str


class TextDelta(_Delta):
    """A piece of the answer that is meant for the user."""

    __slots__ = ()


class ReasoningDelta(_Delta):
    """A piece of the model's reasoning (``<think>`` and its relatives)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MarkupDelta:
    """Text that is neither answer, reasoning nor call: markers, the white space
    that templates put around them, end-of-turn tokens, invented tool results."""

    raw: str


@dataclass(frozen=True, slots=True)
class ContentReclassified:
    """All text so far was reasoning: its opening marker stood in the prompt, and here is the closing one.

    A display may move what it has shown; `Turn` does.
    """

    raw: str


@dataclass(frozen=True, slots=True)
class ReasoningReclassified:
    """All text so far was the answer: it was taken for reasoning by the format's habit, and nothing ever closed that.

    It carries no text. A display may move what it has shown; `Turn` does.
    """

    @property
    def raw(self) -> str:
        return ""


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

    ``reason`` is a key of `adapter.core.rejection_codes.REJECTION_REASONS`. It carries no ``raw``: the text has its own event.
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
    | MarkupDelta
    | ContentReclassified
    | ReasoningReclassified
    | ToolCallProgress
    | ToolCallDelta
    | RejectedCall
    | ToolCall
    | InvalidToolCall
)


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
    notes: tuple[str, ...] = ()
    """What was tolerated or corrected on the way, one sentence each."""
    user_message: str = ""
    """What is to follow the results as a new user message: a skill's instructions."""
    images: tuple[str, ...] = ()
    """Data URLs of what the model is to see, after the results."""
    ends: bool = False
    """The model asked to end the run."""
    sandbox: str = ""
    """Of what ran a program, a function of the user's or an MCP tool: what confined it, or that nothing did.
    Of a batch a line for each that its calls say; of a sub-agent nothing, its own results say it."""
    denied: bool = False
    """A rule, the approve mode or the user was against it."""
