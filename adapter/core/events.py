"""Events that a parser emits, and the results of tool calls.

An event's ``raw`` field is the exact part of the model's text that it covers. Joined in order, the ``raw`` fields of
all events are the whole text.
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
    """A chunk of the answer to the user."""

    __slots__ = ()


class ReasoningDelta(_Delta):
    """A chunk of the model's reasoning (``<think>...</think>``)."""

    __slots__ = ()


class _WithoutText:
    """An event that covers no text, because the text belongs to another event, such as the one for the whole call."""

    __slots__ = ()

    @property
    def raw(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class MarkupDelta:
    """Text that is not content, reasoning or a call: markers, the whitespace that templates put around them,
    end-of-turn tokens, and tool results that the model invented."""

    raw: str


@dataclass(frozen=True, slots=True)
class ContentReclassified:
    """All content so far is reasoning: a closing marker shows that the prompt opened a reasoning block.

    A display may move the text that it has already shown, as `Turn` does.
    """

    raw: str


@dataclass(frozen=True, slots=True)
class ReasoningReclassified(_WithoutText):
    """All reasoning so far is content: the format assumes that an answer begins in a reasoning block, but no closing
    marker arrived.

    A display may move the text that it has already shown, as `Turn` does.
    """


@dataclass(frozen=True, slots=True)
class ToolCallProgress(_WithoutText):
    """Progress of a call that the model is still writing, for display only. ``raw`` is empty."""

    text: str
    """The characters that this chunk added to the call."""
    name: str | None = None
    """Name of the tool; None until it is known."""
    size: int = 0
    """Length of the call so far, in characters."""


@dataclass(frozen=True, slots=True)
class ToolCallDelta(_WithoutText):
    """A chunk of a call's arguments as JSON text, from a parser that streams arguments. Join the chunks by ``id``.

    The `ToolCall` with the same ``id`` completes the call. If it never arrives, discard the chunks. ``raw`` is empty.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RejectedCall(_WithoutText):
    """Text that looks like a call but was not accepted as one: characters ``start`` to ``end`` of the model's text.

    ``reason`` is a key of `adapter.core.rejection_codes.REJECTION_REASONS`. ``raw`` is empty.
    """

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete, decoded tool call, not yet validated against a tool.

    ``fixes`` are the codes of the repairs that decoding needed; empty if the text was valid.
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
    TextDelta | ReasoningDelta | MarkupDelta | ContentReclassified | ReasoningReclassified | ToolCallProgress
    | ToolCallDelta | RejectedCall | ToolCall | InvalidToolCall
)  # fmt: skip
ERROR_LABEL = "tool_error:"
"""Label before a failed call's error message, as the model sees it."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one tool call.

    ``content`` is the text for the model, already truncated. If ``ok`` is false, it states the error and the next step.
    ``error``: only the error message.
    """

    name: str
    ok: bool
    content: str
    error: str | None = None
    call_id: str = ""
    data: Json = None
    """The result's fields as JSON, if the tool documents any, or None."""
    diff: str = ""
    """Unified diff of the tool's changes."""
    notes: tuple[str, ...] = ()
    """Sentences for the model, one for each detail of the call that was tolerated or corrected."""
    user_message: str = ""
    """A user message to send after the results, such as a skill's instructions."""
    images: tuple[str, ...] = ()
    """Data URLs of images to show the model after the results."""
    ends: bool = False
    """True if the model asked to end the run."""
    sandbox: str = ""
    """Description of the sandbox in which a program, a user's function or an MCP tool ran, or a statement that there
    was none. A batch has one line for each distinct description. A sub-agent's result has none, because its calls'
    results have them."""
    denied: bool = False
    """True if a rule, the approval mode or the user denied the call."""

    @classmethod
    def from_error(cls, name: str, error: object, call_id: str = "") -> ToolResult:
        """Return the result of a failed call to the tool ``name``."""
        return cls(name, False, f"{ERROR_LABEL} {error}", str(error), call_id)
