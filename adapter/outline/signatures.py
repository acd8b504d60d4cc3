"""Signatures made short: the ends of values and lists are left out, names and types of results stay."""

from __future__ import annotations

import re

LONG_SIGNATURE = 100
"""Characters above which the lists in the head of a function or class are shortened."""
MAX_VALUE = 60
"""Characters of a constant's value that are shown."""
_ASSIGNS = re.compile(r"(?<![=!<>:])=(?![=>])")


def with_short_value(text: str) -> str:
    assigns = _ASSIGNS.search(text)
    if assigns is None or len(text) - assigns.end() <= MAX_VALUE:
        return text
    return text[: assigns.end() + MAX_VALUE].rstrip() + "..."


def with_short_lists(text: str, name: str) -> str:
    """A long signature with the ends of its lists left out: first of the parameters, then of what
    stands before the name (type parameters, as a rule). The name and the type of the result stay."""
    start = text.find("(", text.find(name) + len(name))
    end = _closing(text, start)
    if end < 0:
        return text
    room = LONG_SIGNATURE - (len(text) - (end - start))
    cut = text.rfind(",", start, start + max(room, 0) + 1)
    text = f"{text[:cut]}, ...{text[end:]}" if cut > start else f"{text[: start + 1]}...{text[end:]}"
    start = text.find("<", 0, text.find(name) + 1)
    end = _closing(text, start)
    if len(text) > LONG_SIGNATURE and 0 <= start < end < text.find(name):
        text = f"{text[: start + 1]}...{text[end:]}"
    return text


def _closing(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed, -1 when it is not."""
    if start < 0:
        return -1
    opening, closing = text[start], {"(": ")", "<": ">"}[text[start]]
    level = 0
    for position in range(start, len(text)):
        if text[position] == opening:
            level += 1
        elif text[position] == closing and text[position - 1] not in "-=":
            level -= 1
            if level == 0:
                return position
    return -1
