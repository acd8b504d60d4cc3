"""Recognize an incomplete call at the end of an answer that was cut off."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from adapter.core.events import Event, InvalidToolCall, MarkupDelta, RejectedCall, TextDelta, ToolCallProgress
from adapter.parsing.format import Format

CUT_REASONS = ("length", "content_filter")
"""Finish reasons of incomplete answers. Servers' other reasons, such as ``eos``, mean that the model stopped."""

_HELD = TextDelta | MarkupDelta | RejectedCall | ToolCallProgress

_MIN_START = 2
"""Minimum length of text that can be the start of a call, in characters. A single ``<`` is text."""


def separate_cut_call(
    events: Sequence[Event], format: Format, names: Collection[str]
) -> tuple[Sequence[Event], str | None]:
    """Separate a call that was cut off from ``events``, which the parser reports at the end of the answer.

    Return the other events and the text of the call, or None if no call was cut off. If the parser is sure that a call
    has begun, it reports an `InvalidToolCall`, and all later text belongs to that call. Otherwise, the text is compared
    to the beginning of calls to the tools ``names`` in ``format``.
    """
    invalid = next((index for index, event in enumerate(events) if isinstance(event, InvalidToolCall)), None)
    if invalid is not None:
        return events[:invalid], "".join(event.raw for event in events[invalid:])
    text = "".join(event.raw for event in events)
    start = text.lstrip()
    is_call = all(isinstance(event, _HELD) for event in events) and len(start) >= _MIN_START
    if is_call and any(_begins_call(start, format, name) for name in names):
        return (), text
    return events, None


def find_tool(text: str, names: Collection[str]) -> str:
    """Return the longest of ``names`` that ``text`` contains, or ""."""
    return max((name for name in names if name in text), key=len, default="")


def _begins_call(start: str, format: Format, name: str) -> bool:
    call = format.encode_calls([(name, {})]).lstrip()
    head = call[: call.find(name) + len(name)]
    return start.startswith(head) or (start in call and start not in name)
