"""The similarity of two lines, and conflicts between them.

A typo does not change the meaning of a line. A different name, number or operator does, however few characters differ.
Similarity and conflicts are therefore separate: ``count -= 1`` is very similar to ``count += 1``, but conflicts with
it.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, Levenshtein

from adapter.editing.matching.normalize import CLOSERS, is_word_character, loosen_line

LOOSE_SIMILARITY = 0.97
"""Similarity of lines that differ only in spaces, quote style or a trailing comma."""
CONFLICT_COST = 0.35
MAX_COMPARED = 2_000
"""Maximum length of a line that is compared. Longer lines must be equal."""
MAX_WORD_PLACES = 1_000
"""Maximum number of occurrences of a word that are checked."""
MIN_SLIP_LETTERS = 4
"""Minimum length of a word in which a single different letter is considered a typo."""
MIN_SLIP_PART = 2
"""Minimum length of the part of a name that contains the different letter: ``first_ms`` is not a typo for
``first_s``."""

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|[<>=!+\-*/%&|^~@?]+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]")
_DIGITS = re.compile(r"\d+")
_SIGNIFICANT = re.compile(r"[\w<>=!+\-*/%&|^~@?]")
_SUB_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


class LineComparison(NamedTuple):
    """The comparison of two lines. ``similarity`` is from 0 to 1, and is reduced by conflicts. ``conflicts`` is the
    number of differences in meaning."""

    similarity: float
    conflicts: int = 0


SAME = LineComparison(1.0)
DIFFERENT = LineComparison(0.0, 1)


class LineComparer:
    """Compares lines of a model's text with lines of a document. Both are given as keys (see `normalize_line`)."""

    def __init__(self, view: str) -> None:
        self._view = view
        self._known: dict[str, bool] = {}
        self._compared: dict[tuple[str, str], LineComparison] = {}

    def compare(self, written: str, actual: str) -> LineComparison:
        """Compare the model's line ``written`` with the document's line ``actual``."""
        if written == actual:
            return SAME
        comparison = self._compared.get((written, actual))
        if comparison is None:
            comparison = self._compared[written, actual] = self._compare(written, actual)
        return comparison

    def _compare(self, written: str, actual: str) -> LineComparison:
        if not written or not actual or max(len(written), len(actual)) > MAX_COMPARED:
            return DIFFERENT
        if loosen_line(written) == loosen_line(actual):
            return LineComparison(LOOSE_SIMILARITY)
        conflicts = self._count_conflicts(*(_TOKEN.findall(line.rstrip(CLOSERS)) for line in (written, actual)))
        return LineComparison(max(0.0, fuzz.ratio(written, actual) / 100 - CONFLICT_COST * conflicts), conflicts)

    def _count_conflicts(self, written: list[str], actual: list[str]) -> int:
        count = 0
        for code in Levenshtein.opcodes(written, actual):
            if code.tag == "equal":
                continue
            left, right = written[code.src_start : code.src_end], actual[code.dest_start : code.dest_end]
            count += sum(self._is_conflict(a, b) for a, b in zip_longest(left, right, fillvalue=""))
        return count

    def _is_conflict(self, written: str, actual: str) -> bool:
        if not _SIGNIFICANT.match(written or actual) and not _SIGNIFICANT.match(actual or written):
            return False
        return not self._is_typing_error(written, actual)

    def _is_typing_error(self, written: str, actual: str) -> bool:
        """Return whether ``written`` resembles ``actual`` and does not occur in the document."""
        if not (_NAME.match(written) and _NAME.match(actual)) or self._is_known(written):
            return False
        return _is_one_letter_off(written, actual)

    def _is_known(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = _has_word(self._view, word)
        return known


def _has_word(text: str, word: str) -> bool:
    """Return whether ``text`` has the whole word ``word``, or too many longer words that contain it."""
    start = text.find(word)
    for _ in range(MAX_WORD_PLACES):
        if start < 0:
            return False
        end = start + len(word)
        if not is_word_character(text[start - 1 : start]) and not is_word_character(text[end : end + 1]):
            return True
        start = text.find(word, end)
    return start >= 0


def _is_one_letter_off(written: str, actual: str) -> bool:
    """Return whether one letter is changed, added or missing (``item``, ``items``), or two are swapped. Short words and
    digits must be equal."""
    if min(len(written), len(actual)) < MIN_SLIP_LETTERS or _DIGITS.findall(written) != _DIGITS.findall(actual):
        return False
    left, right = _SUB_WORD.findall(written), _SUB_WORD.findall(actual)
    parts = zip(left, right, strict=True) if len(left) == len(right) else ()
    is_short = any(len(min(pair, key=len)) < MIN_SLIP_PART for pair in parts if pair[0] != pair[1])
    if is_short and sorted(written) != sorted(actual):
        return False
    return bool(OSA.distance(written, actual, score_cutoff=1) <= 1)
