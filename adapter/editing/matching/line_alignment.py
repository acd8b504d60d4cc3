"""Align old lines with lines of the document by dynamic programming."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz, process

from adapter.editing.matching.line_similarity import LineComparer
from adapter.editing.matching.normalize import is_comment

MIN_LIKENESS = 60.0
"""Minimum similarity, in percent, of two lines that are paired."""
MIN_PAIR = 0.4
COMPARISON_COST = 25
"""Cost of comparing two lines word by word, in table cells."""
MAX_WRAPPED = 4
"""Maximum number of lines that are joined into one line, or split from it."""

SKIP = 0.45
"""Cost of a document line that the old text omits, as a share of the weight of a long old line."""
SKIP_COMMENT = 0.25
MISS = 0.3
"""Cost of an old line that is missing in the document, as a share of the line's weight."""
WRAPPED = 0.96
"""Similarity of old lines to the document's lines if both are equal except for line breaks."""
_LONE_COMMA = re.compile(r",(?=[)\]}])")


class OldLine(NamedTuple):
    """A non-blank old line. ``old_line`` is its index in the old text, and ``weight`` its share in the score.
    ``is_free`` is true if the model elided lines before it."""

    old_line: int
    key: str
    weight: float
    is_free: bool


class RowMatch(NamedTuple):
    """A match of the old lines ``row:row_stop`` with the document's lines ``at:at_stop``. Blank lines do not count."""

    row: int
    row_stop: int
    at: int
    at_stop: int


_PAIR, _MISS_ROW, _SKIP_LINE = -1, -2, -3


class Gap:
    """Aligns the old lines with the document's lines between two anchors, which are lines that are already paired.

    Args:
        all_rows: All non-blank old lines.
        keys: All non-blank lines of the window, normalized.
        rows: The part of ``all_rows`` to align.
        columns_range: The part of ``keys`` to align.
        is_head: Whether skipping document lines before the first old line costs nothing.
        is_tail: Whether skipping document lines after the last old line costs nothing.
    """

    def __init__(
        self,
        comparer: LineComparer,
        all_rows: Sequence[OldLine],
        keys: Sequence[str],
        rows: range,
        columns_range: range,
        is_head: bool,
        is_tail: bool,
    ) -> None:
        self.comparer, self.all_rows, self.rows, self.columns_range = comparer, all_rows, rows, columns_range
        self.keys = [keys[at] for at in columns_range]
        self.is_head, self.is_tail = is_head, is_tail
        self.is_free_after = not is_tail and rows.stop < len(all_rows) and all_rows[rows.stop].is_free

    def align(self, add_cost: Callable[[int], None]) -> tuple[float, list[RowMatch]]:
        """Return the best score and its matches. ``add_cost`` is called with the number of table cells."""
        add_cost(len(self.rows) * len(self.keys))
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
            gains = self._measure_gains(row, add_cost)
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
        return last[end], self._trace_back(moves, end)

    def _is_free(self, number: int) -> bool:
        """Return whether the model elided lines between rows ``number - 1`` and ``number`` of this gap."""
        if number < len(self.rows):
            return self.all_rows[self.rows[number]].is_free
        return self.is_free_after

    def _measure_gains(self, row: OldLine, add_cost: Callable[[int], None]) -> dict[int, float]:
        gains: dict[int, float] = {}
        compare = self.comparer.compare
        alike = process.extract(row.key, self.keys, scorer=fuzz.ratio, score_cutoff=MIN_LIKENESS, limit=None)
        add_cost(COMPARISON_COST * len(alike))
        for key, likeness, column in alike:
            similarity = 1.0 if likeness == 100 and key == row.key else compare(row.key, key).similarity
            if similarity >= MIN_PAIR:
                gains[column] = row.weight * similarity
        return gains

    @cached_property
    def _wraps(self) -> dict[tuple[int, int], list[tuple[int, int, float]]]:
        """The possible matches of joined or split lines, by the old line and the document line at which they end: the
        number of old lines, the number of document lines, and the gain in score."""
        present = set(self.keys)
        squeezed = [_remove_spaces(key) for key in self.keys]
        rows = [self.all_rows[row] for row in self.rows]
        texts = [_remove_spaces(row.key) for row in rows]
        wraps: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        for start, row in enumerate(rows):
            if row.key in present:
                continue
            for column, line in enumerate(squeezed):
                if line != texts[start] and texts[start].startswith(line):
                    count = _count_joined(texts[start], squeezed[column : column + MAX_WRAPPED])
                    if count:
                        ends = (start + 1, column + count)
                        wraps.setdefault(ends, []).append((1, count, row.weight * WRAPPED))
                elif line != texts[start] and line.startswith(texts[start]):
                    count = _count_joined(line, texts[start : start + MAX_WRAPPED])
                    if count:
                        weight = sum(other.weight for other in rows[start : start + count])
                        wraps.setdefault((start + count, column + 1), []).append((count, 1, weight * WRAPPED))
        return wraps

    def _trace_back(self, moves: Sequence[Sequence[int]], end: int) -> list[RowMatch]:
        matches: list[RowMatch] = []
        number, column = len(self.rows), end
        while number > 0:
            move = moves[number][column]
            if move == _MISS_ROW:
                number -= 1
            elif move == _SKIP_LINE:
                column -= 1
            else:
                up, left = (1, 1) if move == _PAIR else divmod(move, 16)
                row, at = self.rows.start + number, self.columns_range.start + column
                matches.append(RowMatch(row - up, row, at - left, at))
                number, column = number - up, column - left
        return matches[::-1]


def _remove_spaces(key: str) -> str:
    return key.replace(" ", "")


def _count_joined(whole: str, parts: Sequence[str]) -> int:
    """Return how many of the first ``parts`` equal ``whole`` when they are joined: 2 or more, or 0 if none do."""
    text = ""
    for count, part in enumerate(parts, start=1):
        text += part
        if count > 1 and _LONE_COMMA.sub("", text) == _LONE_COMMA.sub("", whole):
            return count
        if len(text) > len(whole) + MAX_WRAPPED:
            return 0
    return 0
