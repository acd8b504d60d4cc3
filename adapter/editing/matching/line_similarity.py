"""How alike two lines are, and whether they say different things.

A typing error leaves a line what it was; another name, number or operator makes
it another line, however few characters that takes. So likeness and conflicts
are told apart: ``count -= 1`` is very like ``count += 1``, and in conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, Levenshtein

from adapter.editing.matching.normalize import lenient_line

LOOSE_SIMILARITY = 0.97
"""Of lines that differ in spaces, quote style or a closing comma."""
CONFLICT_COST = 0.35
MAX_COMPARED = 2_000
"""Characters of a line up to which its words are compared; longer lines must be equal."""
MAX_WORD_PLACES = 1_000
"""Places of a word in a line that are looked at."""

MIN_SLIP_LETTERS = 4
"""Of both words, from which one letter may differ."""

MIN_SLIP_PART = 2
"""Of the part that differs of names of several parts: ``first_ms`` is not ``first_s``."""

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|[<>=!+\-*/%&|^~@?]+|[^\w\s]")
_SETTLED = re.compile(r"[^\W\d]\w*|\d[\w.]*")
_NAME = re.compile(r"[^\W\d]")
_DIGITS = re.compile(r"\d+")
_TELLING = re.compile(r"[\w<>=!+\-*/%&|^~@?]")
_SUB_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


class LineComparison(NamedTuple):
    """``similarity`` from 0 to 1, conflicts already taken off; ``conflicts`` counts what differs in meaning."""

    similarity: float
    conflicts: int = 0


SAME = LineComparison(1.0)
DIFFERENT = LineComparison(0.0, 1)


class LineComparer:
    """Compares line keys of a model's text with those of a document that reads ``view``."""

    def __init__(self, view: str) -> None:
        self._view = view
        self._known: dict[str, bool] = {}
        self._compared: dict[tuple[str, str], LineComparison] = {}

    def compare(self, written: str, actual: str) -> LineComparison:
        """``written`` is the model's line, ``actual`` the document's."""
        if written == actual:
            return SAME
        found = self._compared.get((written, actual))
        if found is None:
            found = self._compared[written, actual] = self._compare(written, actual)
        return found

    def _compare(self, written: str, actual: str) -> LineComparison:
        if not written or not actual or max(len(written), len(actual)) > MAX_COMPARED:
            return DIFFERENT
        if lenient_line(written) == lenient_line(actual):
            return LineComparison(LOOSE_SIMILARITY)
        conflicts = self._conflicts(_TOKEN.findall(written), _TOKEN.findall(actual))
        return LineComparison(max(0.0, fuzz.ratio(written, actual) / 100 - CONFLICT_COST * conflicts), conflicts)

    def _conflicts(self, written: list[str], actual: list[str]) -> int:
        count = 0
        for code in Levenshtein.opcodes(written, actual):
            if code.tag == "equal":
                continue
            left, right = written[code.src_start : code.src_end], actual[code.dest_start : code.dest_end]
            count += sum(self._is_conflict(a, b) for a, b in zip_longest(left, right, fillvalue=""))
        return count

    def _is_conflict(self, written: str, actual: str) -> bool:
        if not _TELLING.match(written or actual) and not _TELLING.match(actual or written):
            return False
        return not self._is_typing_error(written, actual)

    def _is_typing_error(self, written: str, actual: str) -> bool:
        """A word that the document does not use, next to one that it does."""
        if not (_NAME.match(written) and _NAME.match(actual)) or self._is_known(written):
            return False
        if _is_one_letter_off(written, actual):
            return True
        left, right = _SUB_WORD.findall(written), _SUB_WORD.findall(actual)
        if len(left) == len(right) and all(_is_slip(a, b) for a, b in zip(left, right, strict=True)):
            return True
        # Letters may have changed places where two sub-words meet, or the mark between them was lost.
        if _DIGITS.findall(written) != _DIGITS.findall(actual):
            return False
        is_same_letters = sorted(written.replace("_", "")) == sorted(actual.replace("_", ""))
        return is_same_letters and bool(OSA.distance(written, actual) == 1)

    def settled_words(self, key: str) -> Iterator[str]:
        """The numbers and known words of a line: no line without one of them has the same meaning."""
        words = sorted(set(_SETTLED.findall(key)), key=lambda word: (bool(_NAME.match(word)), -len(word)))
        return (word for word in words if not _NAME.match(word) or self._is_known(word))

    def _is_known(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = _has_word(self._view, word)
        return known


def _has_word(text: str, word: str) -> bool:
    """As a search for the word between boundaries, at the speed of ``str.find``; many places
    of which none is the word alone count as one that is."""
    start = text.find(word)
    for _ in range(MAX_WORD_PLACES):
        if start < 0:
            return False
        end = start + len(word)
        if not _is_wordy(text[start - 1 : start]) and not _is_wordy(text[end : end + 1]):
            return True
        start = text.find(word, end)
    return start >= 0


def _is_wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_one_letter_off(written: str, actual: str) -> bool:
    """A letter too many, missing, or another one, also at the end: ``item`` and ``items``. Short words and
    other digits are other names."""
    if min(len(written), len(actual)) < MIN_SLIP_LETTERS or _DIGITS.findall(written) != _DIGITS.findall(actual):
        return False
    left, right = _SUB_WORD.findall(written), _SUB_WORD.findall(actual)
    parts = zip(left, right, strict=True) if len(left) == len(right) else ()
    if any(len(min(pair, key=len)) < MIN_SLIP_PART for pair in parts if pair[0] != pair[1]):
        return False
    return bool(OSA.distance(written, actual, score_cutoff=1) <= 1)


def _is_slip(written: str, actual: str) -> bool:
    """At most two edits behind its first letter, and no more than a third of the word. A word with something put
    before or after it is another name: ``close`` and ``myclose``."""
    if written == actual:
        return True
    if written.isdigit() or actual.isdigit():
        return False
    shorter, longer = sorted((written, actual), key=len)
    if longer.startswith(shorter) or longer.endswith(shorter) or written[0].lower() != actual[0].lower():
        return False
    allowed = min(2, max(len(written), len(actual)) // 3)
    return bool(OSA.distance(written, actual, score_cutoff=allowed) <= allowed)
