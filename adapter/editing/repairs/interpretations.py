"""What a model may have meant by its texts, apart from what it wrote.

Models wrap old and new text in a code fence, copy the line numbers or diff
markers they were shown, or escape a text twice. Each reading takes one such
habit off both texts alike. The text as written always comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from adapter.editing.repairs.diff_markers import strip_diff_markers, strip_line_numbers_from_pair
from adapter.editing.repairs.unescape import undo_double_escaping


@dataclass(frozen=True, slots=True)
class Interpretation:
    """Old and new text, both with line feeds; ``notes`` say what was taken off.

    ``line`` is the 1-based line that the text itself names, if any.
    ``is_whole_lines``: the texts stand for lines, never for a part of one.
    """

    old: str
    new: str
    notes: tuple[str, ...] = ()
    line: int | None = None
    is_whole_lines: bool = False


MAX_READINGS = 24
"""Of one patch; each is a search of the document."""


def interpretations(written: Interpretation) -> list[Interpretation]:
    """The texts as written, then with each habit that they show taken off, then with all of them."""
    single = [taken for habit in _HABITS for taken in _without(habit, written)]
    found = [written, *single]
    if single and any(next(_without(habit, single[-1]), None) for habit in _HABITS):
        every = [written]
        for habit in _HABITS:
            every = [taken for reading in every for taken in (list(_without(habit, reading)) or [reading])]
        found += every[:MAX_READINGS]
    unique: dict[str, Interpretation] = {}
    for reading in found:
        if reading.old:
            unique.setdefault(reading.old, reading)
    return list(unique.values())[:MAX_READINGS]


class _Habit(NamedTuple):
    """``take`` gives both texts without the habit, the likeliest way first, and the line that the old one names, if
    any; nothing for texts without the habit. ``is_of_lines``: only whole lines have it."""

    note: str
    take: Callable[[str, str], Iterator[tuple[str, str] | tuple[str, str, int]]]
    is_of_lines: bool


def _without(habit: _Habit, reading: Interpretation) -> Iterator[Interpretation]:
    notes, is_whole_lines = (*reading.notes, habit.note), reading.is_whole_lines or habit.is_of_lines
    for old, new, *line in habit.take(reading.old, reading.new):
        yield Interpretation(old, new, notes, reading.line or next(iter(line), None), is_whole_lines)


_FENCE = re.compile(r"\s*(```+|~~~+)[^\n`]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)


def _without_fences(old: str, new: str) -> Iterator[tuple[str, str]]:
    if match := _FENCE.fullmatch(old):
        inner = _FENCE.fullmatch(new)
        yield match[2], inner[2] if inner else new


_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d+|#x[0-9a-fA-F]+);")


def _without_entities(old: str, new: str) -> Iterator[tuple[str, str]]:
    if _ENTITY.search(old):
        import html

        yield html.unescape(old), html.unescape(new)


_HABITS = (
    _Habit("the code fence around the old text was left off", _without_fences, is_of_lines=True),
    _Habit("HTML entities in both texts were undone", _without_entities, is_of_lines=False),
    _Habit("backslash escapes in both texts were undone", undo_double_escaping, is_of_lines=False),
    _Habit("line numbers in the old text were left off", strip_line_numbers_from_pair, is_of_lines=True),
    _Habit("diff markers in the old text were left off", strip_diff_markers, is_of_lines=True),
)
"""In the order in which they are taken off when a text shows several."""


# ---------------------------------------------------------------------- omissions

_COMMENT = r"(?:#|//|/\*|--|;|%|<!--|\{/\*)"
_DOTS = r"(?:\.{3,}|\u2026)"
_LEFT_OUT = r"rest|remaining|remainder|existing|unchanged|same|previous|other|omitted|elided|snip|skip\w*"
_SUBJECTS = (
    r"code|file|lines?|content\w*|method\w*|function\w*|implementation|body|class|block|logic|above|below|before|"
    r"unchanged|omitted"
)
_WORDS = re.compile(rf"\b(?:{_LEFT_OUT})\b", re.IGNORECASE)
_SUBJECT = re.compile(rf"\b(?:{_SUBJECTS})\b", re.IGNORECASE)
_ELISION = re.compile(
    rf"\s*{_COMMENT}?\s*[\[(<]?\s*{_DOTS}(?P<words>[^.\u2026]{{0,60}}?){_DOTS}?\s*[\])>]?\s*(?:\*/|-->)?\}}?\s*"
)
_REST = re.compile(
    rf"\s*(?:{_COMMENT}|[\[(<])\s*(?P<words>(?:the\s+)?(?:rest|remaining|remainder)\b[^\n]{{0,60}})", re.IGNORECASE
)


def is_elision(line: str) -> bool:
    """A line that stands for lines left out: ``...``, ``# ...``, ``// ... existing code ...``."""
    match = _ELISION.fullmatch(line)
    return (match is not None and not match["words"].strip()) or is_omission_comment(line)


def is_omission_comment(line: str) -> bool:
    """A line that promises code instead of being code; a bare ``...`` is Python and is none."""
    match = _ELISION.fullmatch(line)
    if match is not None:
        words = match["words"].strip()
        return bool(_WORDS.search(words)) if words else line.strip() not in ("...", "\u2026")
    rest = _REST.match(line)
    return rest is not None and _SUBJECT.search(rest["words"]) is not None


def find_omission_comments(new: str, old: str, view: str) -> Iterator[str]:
    """The lines of ``new`` that promise code which neither ``old`` nor the document has."""
    known = {line.strip() for line in old.split("\n")}
    for line in new.split("\n"):
        if line.strip() and line.strip() not in known and is_omission_comment(line) and line.strip() not in view:
            yield line.strip()
