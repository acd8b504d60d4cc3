"""Shorten old tool results, for `session_trimming` and `client_conversation_trimming`."""

from __future__ import annotations

import re

from adapter.core.text.plurals import pluralize

CUT_TO = 0.6
"""Share of the usable tokens to which a conversation is cut, so that the next dozen turns fit without another cut."""
SHORT = 240
"""Length of a shortened result without its note, in characters. Shorter results are unchanged."""
TAIL, COMMANDS_TAIL = 1 / 3, 2 / 3
"""Share of a shortened result that is taken from its end. Commands have a larger share, because they report their
outcome at the end.
"""
_COMMANDS = re.compile(r"(?i)run|exec|bash|shell|command|terminal|test|build|output")


def compute_share(excess: float, total: int) -> float:
    """Return the share (0 to 1) of ``total`` tokens that remains after ``excess`` tokens are removed."""
    return max(0.0, 1 - excess / max(total, 1))


def shorten_result(content: str, size: int, call: str, tool: str) -> str:
    """Return the start and end of a tool result with a note between them that names its ``call``; see `keep_ends`."""
    size_note = f"{len(content)} characters in {pluralize(content.count(chr(10)) + 1, 'line')}"
    note = f"\n[shortened: {call} returned {size_note}; call it again to see all]\n"
    return keep_ends(content, size, note, COMMANDS_TAIL if _COMMANDS.search(tool) else TAIL)


def keep_ends(text: str, size: int, note: str, tail_share: float = TAIL) -> str:
    """Return the first and last lines of ``text`` with ``note`` between them. If the lines are too long, keep
    characters instead. If ``text`` has at most ``size`` characters more than the note, return it unchanged.
    """
    if len(text) <= size + len(note):
        return text
    tail = int(size * tail_share)
    first, last = text[: size - tail], text[len(text) - tail :]
    return first[: first.rfind("\n") if "\n" in first else None] + note + last[last.find("\n") + 1 :]
