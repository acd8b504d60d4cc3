"""Events that a parser emits, and the results of tool calls.

The field ``raw`` of an event is the exact part of the model's text that it covers. Joined, these parts are the whole
text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list of Json or dict of str to Json."""

JsonObject: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True, init=False)
class _Delta:
    text: str
    raw: str

    def __init__(self, text: str, raw: str) -> None:
        _set_text(self, text)
        _set_raw(self, raw)


# One delta is built per token: the slots' setters take half the time of a frozen dataclass's own __init__.
_set_text, _set_raw = (vars(_Delta)[name].__set__ for name in ("text", "raw"))


class TextDelta(_Delta):
    """A piece of the answer to the user."""

    __slots__ = ()


class ReasoningDelta(_Delta):
    """A piece of the model's reasoning (``<think>...</think>``)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MarkupDelta:
    """Text that is not content, reasoning or a call: markers, whitespace that templates put around them, end-of-turn
    tokens, invented tool results."""

    raw: str


@dataclass(frozen=True, slots=True)
class ContentReclassified:
    """Reclassify all text so far as reasoning: the prompt held its opening marker, and the closing one follows now.

    A display may move the text that it has shown, as `Turn` does.
    """

    raw: str


@dataclass(frozen=True, slots=True)
class ReasoningReclassified:
    """Reclassify all reasoning so far as content: the format assumes reasoning at the start, but it was never closed.

    The event has no text. A display may move the text that it has shown, as `Turn` does.
    """

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """Progress of a call that is still being written. For displays only: it is never executable.

    ``text``: the characters that this chunk added to the call. ``size``: number of characters of the call so far.
    ``name``: name of the tool; None until it is known. The event has no ``raw``, because the event of the call will
    contain it.
    """

    text: str
    name: str | None = None
    size: int = 0

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call's arguments as JSON text, for parsers that stream them. Join the pieces by ``id``.

    The `ToolCall` with the same ``id`` completes the call. If it never arrives, discard the pieces. The event has no
    ``raw``, because the event of the call will contain it.
    """

    id: str
    name: str
    arguments: str

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """Text that looks like a call but was not accepted as one: characters ``start`` to ``end`` of the model's text.

    ``reason``: a key of `adapter.core.rejection_codes.REJECTION_REASONS`. The event has no ``raw``, because the event
    of the text contains it.
    """

    start: int
    end: int
    reason: str

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete, decoded tool call. It has not been validated against a tool yet.

    ``fixes``: the name of each repair that decoding needed; empty if the text was valid.
    """

    id: str
    name: str
    arguments: JsonObject
    raw: str
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidToolCall:
    """A tool call that could not be decoded. ``error`` is written for the model."""

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

    ``content``: text for the model, already truncated. If ``ok`` is false, it states the error and the next step.
    ``error``: only the error message.
    """

    name: str
    ok: bool
    content: str
    error: str | None = None
    call_id: str = ""
    data: Json = None
    """The result fields as JSON, if the tool documents any; otherwise None."""
    diff: str = ""
    """Unified diff of the tool's changes."""
    notes: tuple[str, ...] = ()
    """Details of the call that were tolerated or corrected, one sentence each."""
    user_message: str = ""
    """A user message to send after the results, such as a skill's instructions."""
    images: tuple[str, ...] = ()
    """Data URLs of images to show the model after the results."""
    ends: bool = False
    """True if the model asked to end the run."""
    sandbox: str = ""
    """Description of the sandbox in which a program, a user's function or an MCP tool ran, or the statement that there
    was none. A batch has one line for each distinct description. A sub-agent has none, because the results of its own
    calls contain theirs."""
    denied: bool = False
    """True if a rule, the approve mode or the user denied the call."""
