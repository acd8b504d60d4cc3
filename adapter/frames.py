"""How a format puts a call whose arguments are JSON, found by looking at what its own encoder writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from adapter.formats import get_format

_NAME, _ARGUMENTS = "tool_name", {"key": "value"}
_BODIES = (('{"key": "value"}', ": ", ", "), ('{"key":"value"}', ":", ","))


@dataclass(frozen=True, slots=True)
class Frame:
    """``head`` name ``middle`` arguments ``tail``, and ``between`` two calls: None where they cannot just follow.

    ``colon`` and ``comma`` are those of the JSON.
    """

    head: str
    middle: str
    tail: str
    between: str | None
    colon: str = ": "
    comma: str = ", "


_OPENS_TEXT = frozenset({"functionary", "functionary_v2"})
"""Formats that name who is spoken to before plain text as well."""


def opening_of(format: str) -> str | None:
    """The text by which a model that writes this format begins a call of its frame, and nothing else."""
    frame = None if format in _OPENS_TEXT else _frame(format)
    return (frame.head.partition("\n")[0].rstrip() or None) if frame else None


@lru_cache
def frame_of(format: str) -> Frame:
    """The frame of a format; Hermes' for one whose arguments are no JSON. Our parser reads both from any model."""
    frame = _frame(format)
    if frame is None:
        frame = _frame("hermes")
        assert frame is not None
    return frame


def _frame(format: str) -> Frame | None:
    encode = get_format(format).encode_calls
    one = encode([(_NAME, _ARGUMENTS)])
    for body, colon, comma in _BODIES:
        head, _, rest = one.partition(_NAME)
        middle, found, tail = rest.partition(body)
        if found and _NAME not in middle + tail:
            return Frame(head, middle, tail, _between(one, encode([(_NAME, _ARGUMENTS)] * 2)), colon, comma)
    return None


def _between(one: str, two: str) -> str | None:
    """What stands between two calls that are written one after the other."""
    if two.startswith(one) and two.endswith(one) and len(two) >= 2 * len(one):
        return two[len(one) : len(two) - len(one)]
    return None
