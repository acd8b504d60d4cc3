"""Old lines against the lines of a stretch of the document, both in order: which stands where.

By dynamic programming over lines that are not blank; where both have many lines, the ones that are unique
on either side are taken as fixed (*anchors*, as in patience diff), so that only the gaps between them cost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz, process

from adapter.edits.folding import line_key, loose_key
from adapter.edits.readings import is_elision
from adapter.edits.search import Search
from adapter.edits.similarity import LOOSE_SIMILARITY
from adapter.values.lazy_pattern import lazy_pattern

MIN_LIKENESS = 60.0
"""Percent; below it two lines are never the same one."""
MIN_PAIR = 0.4
MAX_COST = 1_500_000
"""Table cells filled for one text: about a second. Above it the text counts as not found,
for rivals would go unseen."""
COMPARISON_COST = 25
"""Cells that comparing two lines word by word is worth."""
MAX_WHOLE_CELLS = 300
"""Up to here a window is aligned as a whole, above it between anchors."""
MAX_WRAPPED = 4
"""Lines that may have been joined to one, or one split into."""

SKIP = 0.45
"""What an unmentioned line costs, as a share of a full old line."""
SKIP_COMMENT = 0.25
MISS = 0.3
"""What an old line costs that is not there, beyond what it does not gain."""
WRAPPED = 0.96

_COMMENT = lazy_pattern(r"(?:#(?!include|define|if|endif|else)|//|/\*|\*|--|;|<!--|\"\"\"|''')")
_LONE_COMMA = lazy_pattern(r",(?=[)\]}])")


class TooCostlyError(Exception):
    """`MAX_COST` was spent."""


class Row(NamedTuple):
    """An old line that says something; ``is_free``: lines were left out before it."""

    old_line: int
    key: str
    weight: float
    is_free: bool


class Match(NamedTuple):
    """Rows ``row:row_stop`` stand at positions ``at:at_stop`` of the filled lines."""

    row: int
    row_stop: int
    at: int
    at_stop: int


def rows_of(old: Sequence[str]) -> list[Row]:
    """The lines of ``old`` that are neither blank nor elided; short ones weigh less."""
    rows: list[Row] = []
    is_free = False
    for index, line in enumerate(old):
        key = line_key(line)
        if not key:
            continue
        if is_elision(line):
            is_free = bool(rows)
            continue
        rows.append(Row(index, key, 0.25 + 0.75 * min(len(key), 32) / 32, is_free))
        is_free = False
    return rows


class Rows:
    """The rows of one old text, aligned with as many stretches of the document as `MAX_COST` allows."""

    def __init__(self, search: Search, rows: Sequence[Row]) -> None:
        self.search, self.rows = search, rows
        self._keys = [row.key for row in rows]
        self._cost = 0

    def spend(self, cost: int) -> None:
        """Raises TooCostlyError."""
        self._cost += cost
        if self._cost > MAX_COST:
            raise TooCostlyError

    def best(self, window: range) -> tuple[float, list[Match]] | None:
        """Score and matches of the best alignment of all rows somewhere in ``window`` of the filled lines.

        None when none stands there. Raises TooCostlyError.
        """
        keys = [self.search.keys[self.search.filled[at]] for at in window]
        anchors = _anchors(self._keys, keys) if len(self.rows) * len(window) > MAX_WHOLE_CELLS else []
        score, matches = 0.0, list[Match]()
        row, at = 0, 0
        for anchor_row, anchor_at in [*anchors, (len(self.rows), len(keys))]:
            is_last = anchor_row == len(self.rows)
            gap = _Gap(self, keys, range(row, anchor_row), range(at, anchor_at), row == 0, is_last)
            gained, found = gap.run()
            score += gained
            matches += found
            if not is_last:
                score += self.rows[anchor_row].weight
                matches.append(Match(anchor_row, anchor_row + 1, anchor_at, anchor_at + 1))
            row, at = anchor_row + 1, anchor_at + 1
        if not matches:
            return None
        return score, [
            match._replace(at=match.at + window.start, at_stop=match.at_stop + window.start) for match in matches
        ]


def _anchors(rows: Sequence[str], keys: Sequence[str]) -> list[tuple[int, int]]:
    """Lines unique on both sides, as far as they stand in the same order."""
    in_rows, in_keys = Counter(rows), Counter(keys)
    places = {key: at for at, key in enumerate(keys)}
    pairs = [(row, places[key]) for row, key in enumerate(rows) if in_rows[key] == 1 and in_keys[key] == 1]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        slot = bisect_left(tails, at)
        before.append(ends[slot - 1] if slot else -1)
        tails[slot : slot + 1] = [at]
        ends[slot : slot + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


_PAIR, _MISS_ROW, _SKIP_LINE = -1, -2, -3


class _Gap:
    """Rows against lines of a window, both in order. ``is_head``: lines before the first
    row are free; ``is_tail``: lines after the last."""

    def __init__(self, whole: Rows, keys: Sequence[str], rows: range, ats: range, is_head: bool, is_tail: bool) -> None:
        self.search = whole.search
        self.spend = whole.spend
        self.all_rows = whole.rows
        self.rows, self.ats = rows, ats
        self.keys = [keys[at] for at in ats]
        self.is_head, self.is_tail = is_head, is_tail
        self.is_free_after = not is_tail and rows.stop < len(whole.rows) and whole.rows[rows.stop].is_free

    def run(self) -> tuple[float, list[Match]]:
        self.spend(len(self.rows) * len(self.keys))
        skips = [SKIP_COMMENT if is_comment(key) else SKIP for key in self.keys]
        width = len(self.keys)
        row_scores = [0.0] * (width + 1)
        if not self.is_head and not self._is_free(0):
            for column in range(width):
                row_scores[column + 1] = row_scores[column] - skips[column]
        table = [row_scores]
        moves: list[list[int]] = [[_SKIP_LINE] * (width + 1)]
        wraps = self._wraps
        for number in range(1, len(self.rows) + 1):
            row = self.all_rows[self.rows[number - 1]]
            gains = self._gains(row)
            before, scores, chosen = table[-1], [0.0] * (width + 1), [_MISS_ROW] * (width + 1)
            miss, is_free = MISS * row.weight, self._is_free(number)
            scores[0] = before[0] - miss
            for column in range(1, width + 1):
                best, move = before[column] - miss, _MISS_ROW
                skipped = scores[column - 1] - (0.0 if is_free else skips[column - 1])
                if skipped > best:
                    best, move = skipped, _SKIP_LINE
                gain = gains.get(column - 1)
                if gain is not None and before[column - 1] + gain >= best:
                    best, move = before[column - 1] + gain, _PAIR
                for up, left, value in wraps.get((number, column), ()):
                    if table[number - up][column - left] + value > best:
                        best, move = table[number - up][column - left] + value, up * 16 + left
                scores[column], chosen[column] = best, move
            table.append(scores)
            moves.append(chosen)
        last = table[-1]
        end = last.index(max(last)) if self.is_tail else width
        return last[end], self._traced(moves, end)

    def _is_free(self, number: int) -> bool:
        """Whether lines between row ``number - 1`` and row ``number`` of this gap were left out."""
        if number < len(self.rows):
            return self.all_rows[self.rows[number]].is_free
        return self.is_free_after

    def _gains(self, row: Row) -> dict[int, float]:
        gains: dict[int, float] = {}
        compare = self.search.comparer.compare
        alike = process.extract(row.key, self.keys, scorer=fuzz.ratio, score_cutoff=MIN_LIKENESS, limit=None)
        self.spend(COMPARISON_COST * len(alike))
        for key, likeness, column in alike:
            similarity = 1.0 if likeness == 100 and key == row.key else compare(row.key, key).similarity
            if similarity >= MIN_PAIR:
                gains[column] = row.weight * similarity
        for column in self._by_loose_key.get(loose_key(row.key), ()):
            gains.setdefault(column, row.weight * LOOSE_SIMILARITY)
        return gains

    @cached_property
    def _by_loose_key(self) -> dict[str, list[int]]:
        columns: dict[str, list[int]] = {}
        for column, key in enumerate(self.keys):
            columns.setdefault(loose_key(key), []).append(column)
        return columns

    @cached_property
    def _wraps(self) -> dict[tuple[int, int], list[tuple[int, int, float]]]:
        """Several rows that are one line, and lines that are one row, by where they end."""
        present = set(self.keys)
        squeezed = [_squeezed(key) for key in self.keys]
        rows = [self.all_rows[row] for row in self.rows]
        texts = [_squeezed(row.key) for row in rows]
        wraps: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        for start, row in enumerate(rows):
            if row.key in present:
                continue
            for column, line in enumerate(squeezed):
                if line != texts[start] and texts[start].startswith(line):
                    count = _run(texts[start], squeezed[column : column + MAX_WRAPPED])
                    if count:
                        ends = (start + 1, column + count)
                        wraps.setdefault(ends, []).append((1, count, row.weight * WRAPPED))
                elif line != texts[start] and line.startswith(texts[start]):
                    count = _run(line, texts[start : start + MAX_WRAPPED])
                    if count:
                        weight = sum(other.weight for other in rows[start : start + count])
                        wraps.setdefault((start + count, column + 1), []).append((count, 1, weight * WRAPPED))
        return wraps

    def _traced(self, moves: Sequence[Sequence[int]], end: int) -> list[Match]:
        found: list[Match] = []
        number, column = len(self.rows), end
        while number > 0:
            move = moves[number][column]
            if move == _MISS_ROW:
                number -= 1
            elif move == _SKIP_LINE:
                column -= 1
            else:
                up, left = (1, 1) if move == _PAIR else divmod(move, 16)
                row, at = self.rows.start + number, self.ats.start + column
                found.append(Match(row - up, row, at - left, at))
                number, column = number - up, column - left
        return found[::-1]


def is_comment(key: str) -> bool:
    return _COMMENT.match(key) is not None


def _squeezed(key: str) -> str:
    return key.replace(" ", "")


def _run(whole: str, parts: Sequence[str]) -> int:
    """How many of ``parts``, at least two, give ``whole`` when joined."""
    text = ""
    for count, part in enumerate(parts, start=1):
        text += part
        if count > 1 and _LONE_COMMA.sub("", text) == _LONE_COMMA.sub("", whole):
            return count
        if len(text) > len(whole) + MAX_WRAPPED:
            return 0
    return 0
