"""Shorten signatures: truncate long values and lists, but keep names and return types."""

from __future__ import annotations

import re

LONG_SIGNATURE = 100
"""Maximum length of a signature, in characters. In a longer signature of a function or class, the lists are
shortened."""
MAX_VALUE = 60
"""Maximum length of a constant's value, in characters."""
_ASSIGNS = re.compile(r"(?<![=!<>:])=(?![=>])")


def shorten_value(text: str) -> str:
    assigns = _ASSIGNS.search(text)
    if assigns is None or len(text) - assigns.end() <= MAX_VALUE:
        return text
    return text[: assigns.end() + MAX_VALUE].rstrip() + "..."


def shorten_lists(text: str, name: str) -> str:
    """Shorten the parameter list of a long signature. If it is still too long, also shorten the list before the name,
    which usually contains type parameters. The name and the return type are kept."""
    words = [*re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)(\s*[(<\[])?", text)]
    at, end = max(words, key=lambda word: bool(word[1])).span() if words else (0, 1)
    start = text.find("(", end - 1)
    end = _find_closing_bracket(text, start)
    if end < 0:
        return text
    available = LONG_SIGNATURE - (len(text) - (end - start))
    cut = text.rfind(",", start, start + max(available, 0) + 1)
    text = f"{text[:cut]}, ...{text[end:]}" if cut > start else f"{text[: start + 1]}...{text[end:]}"
    start = text.find("<", 0, at + 1)
    end = _find_closing_bracket(text, start)
    if len(text) > LONG_SIGNATURE and 0 <= start < end < at:
        text = f"{text[: start + 1]}...{text[end:]}"
    return text


def _find_closing_bracket(text: str, start: int) -> int:
    """Return the position of the bracket that closes the bracket at ``start``, or -1."""
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
