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
    """A chunk of the content that is meant for the user."""

    __slots__ = ()


class ReasoningDelta(_Delta):
    """A chunk of the model's reasoning (``<think>`` and similar)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MarkupDelta:
    """Text that is neither content, reasoning nor a call: markers, the white space that templates put around them,
    end-of-turn tokens, invented tool results."""

    raw: str


@dataclass(frozen=True, slots=True)
class ContentReclassified:
    """All content so far was reasoning: its opening marker was in the prompt, and here is the closing one.

    A display may move what it has shown; `Turn` does.
    """

    raw: str


@dataclass(frozen=True, slots=True)
class ReasoningReclassified:
    """All reasoning so far was content: the format usually begins with reasoning, and no marker closed it.

    It carries no text. A display may move what it has shown; `Turn` does.
    """

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """The state of a call that is still being written, for display only.

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
    """A chunk of a call's arguments as JSON text, to be joined by ``id``; only with ``stream_arguments``.

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
    """Text that looks like a call but is not one, at characters ``start`` to ``end``, with the reason.

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
    """A complete, decoded call, not yet validated against a tool.

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
    """Text that was meant as a call and is invalid. ``error`` is written for the model."""

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
    """The result of one tool call.

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
