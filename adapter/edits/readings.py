"""What a model may have meant by its texts, apart from what it wrote.

Models wrap old and new text in a code fence, copy the line numbers or diff
markers they were shown, or escape a text twice. Each reading takes one such
habit off both texts alike. The text as written always comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from adapter.edits.escapes import unescaped
from adapter.edits.marks import unmarked, without_numbers
from adapter.values.fields import frozen, replace
from adapter.values.lazy_pattern import lazy_pattern


@frozen
class Reading:
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


def readings(written: Reading) -> list[Reading]:
    """The texts as written, then with each habit that they show taken off, then with all of them."""
    single = [taken for take in _HABITS for taken in take(written)]
    found = [written, *single]
    if single and any(next(take(single[-1]), None) for take in _HABITS):
        found += _without_all(written)
    unique: dict[str, Reading] = {}
    for reading in found:
        if reading.old:
            unique.setdefault(reading.old, reading)
    return list(unique.values())[:MAX_READINGS]


def _without_all(written: Reading) -> list[Reading]:
    """With every habit taken off, one after the other."""
    found = [written]
    for take in _HABITS:
        found = [taken for reading in found for taken in (list(take(reading)) or [reading])]
    return found[:MAX_READINGS]


# ------------------------------------------------------------------------- fences

_FENCE = lazy_pattern(r"\s*(```+|~~~+)[^\n`]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)


def _without_fences(reading: Reading) -> Iterator[Reading]:
    match = _FENCE.fullmatch(reading.old)
    if match is None:
        return
    inner = _FENCE.fullmatch(reading.new)
    new = inner[2] if inner else reading.new
    yield _taken(reading, match[2], new, "the code fence around the old text was left off")


# ------------------------------------------------- line numbers, diff marks, escapes


def _without_numbers(reading: Reading) -> Iterator[Reading]:
    for old, new, first in without_numbers(reading.old, reading.new):
        numbered = replace(reading, line=reading.line or first)
        yield _taken(numbered, old, new, "line numbers in the old text were left off")


def _without_markers(reading: Reading) -> Iterator[Reading]:
    for old, new in unmarked(reading.old, reading.new):
        yield _taken(reading, old, new, "diff markers in the old text were left off")


def _unescaped(reading: Reading) -> Iterator[Reading]:
    note = "backslash escapes in both texts were undone"
    for old, new in unescaped(reading.old, reading.new):
        yield replace(reading, old=old, new=new, notes=(*reading.notes, note))


_ENTITY = lazy_pattern(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d+|#x[0-9a-fA-F]+);")


def _without_entities(reading: Reading) -> Iterator[Reading]:
    if not _ENTITY.search(reading.old):
        return
    import html

    note = "HTML entities in both texts were undone"
    old, new = html.unescape(reading.old), html.unescape(reading.new)
    yield replace(reading, old=old, new=new, notes=(*reading.notes, note))


def _taken(reading: Reading, old: str, new: str, note: str) -> Reading:
    return replace(reading, old=old, new=new, notes=(*reading.notes, note), is_whole_lines=True)


Habit: TypeAlias = Callable[[Reading], Iterator[Reading]]

_HABITS: tuple[Habit, ...] = (
    _without_fences,
    _without_entities,
    _unescaped,
    _without_numbers,
    _without_markers,
)
"""In the order in which they are taken off when a text shows several. To add one, write a
function that gives nothing for a text without the habit, and the likeliest reading first."""


# ---------------------------------------------------------------------- omissions

_COMMENT = r"(?:#|//|/\*|--|;|%|<!--|\{/\*)"
_DOTS = r"(?:\.{3,}|\u2026)"
_LEFT_OUT = r"rest|remaining|remainder|existing|unchanged|same|previous|other|omitted|elided|snip|skip\w*"
_SUBJECTS = (
    r"code|file|lines?|content\w*|method\w*|function\w*|implementation|body|class|block|logic|above|below|before|"
    r"unchanged|omitted"
)
_WORDS = lazy_pattern(rf"\b(?:{_LEFT_OUT})\b", re.IGNORECASE)
_SUBJECT = lazy_pattern(rf"\b(?:{_SUBJECTS})\b", re.IGNORECASE)
_ELISION = lazy_pattern(
    rf"\s*{_COMMENT}?\s*[\[(<]?\s*{_DOTS}(?P<words>[^.\u2026]{{0,60}}?){_DOTS}?\s*[\])>]?\s*(?:\*/|-->)?\}}?\s*"
)
_REST = lazy_pattern(
    rf"\s*(?:{_COMMENT}|[\[(<])\s*(?P<words>(?:the\s+)?(?:rest|remaining|remainder)\b[^\n]{{0,60}})", re.IGNORECASE
)


def is_elision(line: str) -> bool:
    """A line that stands for lines left out: ``...``, ``# ...``, ``// ... existing code ...``."""
    match = _ELISION.fullmatch(line)
    return (match is not None and not match["words"].strip()) or is_placeholder(line)


def is_placeholder(line: str) -> bool:
    """A line that promises code instead of being code; a bare ``...`` is Python and is none."""
    match = _ELISION.fullmatch(line)
    if match is not None:
        words = match["words"].strip()
        return bool(_WORDS.search(words)) if words else line.strip() not in ("...", "\u2026")
    rest = _REST.match(line)
    return rest is not None and _SUBJECT.search(rest["words"]) is not None


def placeholders(new: str, old: str, view: str) -> Iterator[str]:
    """The lines of ``new`` that promise code which neither ``old`` nor the document has."""
    known = {line.strip() for line in old.split("\n")}
    for line in new.split("\n"):
        if line.strip() and line.strip() not in known and is_placeholder(line) and line.strip() not in view:
            yield line.strip()
