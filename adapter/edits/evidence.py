"""How much of what an old text shows around a change stands around a place of the document.

Counted in bits: a line that stands once among a thousand says ten, one that stands in every tenth place three. A line
that stands nowhere counts as the one most like it. Lines are matched in order, outwards from the change, each on
its side, and no farther than the block that the shown lines are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import log2
from typing import NamedTuple

from rapidfuzz import fuzz

from adapter.edits.folding import line_key
from adapter.edits.indent import indent_width
from adapter.edits.search import Search

NEAR = 15
"""Lines on each side of a place, beyond as many as are shown, in which these are looked for."""
MAX_SHOWN = 40
"""Lines on each side of a change that are looked for, the nearest."""
SKIPPED = 0.5
"""Bits that a line of the document costs that stands between the place and lines that are shown."""
MIN_LIKENESS = 70.0
"""Percent from which a line that stands nowhere is taken for another one."""
UNLIKE = 50.0
"""Percent at which likeness says nothing."""
MIN_SIZE = 250
"""Lines of a document below which counts say no more than in one of so many."""
MARK_BITS = 2.0
"""What a line without letters and digits says at most, one with them one bit more for each."""
TELLING_CHARACTERS = 8


class Around(NamedTuple):
    """Bits found on each side of a place; ``rows`` are the old lines that were found."""

    above: float
    below: float
    rows: frozenset[int]

    @property
    def bits(self) -> float:
        return self.above + self.below


class Evidence:
    def __init__(self, search: Search, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.keys = [line_key(line) for line in old]
        self.counts = {key: len(search.places(key)) for key in self.keys if key}
        self._depths = [indent_width(line) for line in old]
        self._alike: dict[tuple[str, str], float] = {}

    def bits(self, rows: Iterable[int]) -> float:
        """What old lines say by standing in the document as they are."""
        return sum(self._weights[key] for row in rows if (key := self.keys[row]) and self.counts[key])

    def around(self, rows: range, first: int, last: int) -> Around:
        """What is shown around ``rows`` and found around the lines ``first`` to ``last``."""
        depth = min((self._depths[row] for row in rows if self.keys[row]), default=0)
        above, below = self._shown(rows)
        up, found_above = self._side(above, range(first - 1, -1, -1), depth)
        down, found_below = self._side(below, range(last + 1, len(self.search.keys)), depth)
        return Around(up, down, found_above | found_below)

    def cost(self, rows: range) -> int:
        """Comparisons of lines that one place takes."""
        return sum(len(side) * (len(side) + NEAR) for side in self._shown(rows))

    def _shown(self, rows: range) -> tuple[list[int], list[int]]:
        """The rows on each side that say something, from the change outwards."""
        above = [row for row in range(rows.start - 1, -1, -1) if self.keys[row]]
        below = [row for row in range(rows.stop, len(self.old)) if self.keys[row]]
        return above[:MAX_SHOWN], below[:MAX_SHOWN]

    @cached_property
    def _weights(self) -> dict[str, float]:
        size = max(len(self.search.filled), MIN_SIZE) + 1
        return {key: min(log2(size / max(count, 1)), MARK_BITS + letters(key)) for key, count in self.counts.items()}

    def _side(self, rows: Sequence[int], lines: range, depth: int) -> tuple[float, frozenset[int]]:
        """The most that ``rows`` say by ``lines``, both from the change outwards."""
        depth = min((depth, *(self._depths[row] for row in rows)))
        keys = self._block(lines, depth, NEAR + len(rows))
        best = (0.0, frozenset[int]())
        before = [(-SKIPPED * count, frozenset[int]()) for count in range(len(keys) + 1)]
        for row in rows:
            current = before[:1]
            for column, key in enumerate(keys, start=1):
                skipped = current[-1]
                found = max(before[column], (skipped[0] - SKIPPED, skipped[1]), key=lambda one: one[0])
                gain = self._gain(self.keys[row], key)
                if gain and before[column - 1][0] + gain > found[0]:
                    found = (before[column - 1][0] + gain, before[column - 1][1] | {row})
                current.append(found)
            before = current
            best = max(best, *current, key=lambda one: one[0])
        return best

    def _block(self, lines: range, depth: int, count: int) -> list[str]:
        """The next ``count`` lines that are not blank, up to one that is indented less than ``depth``."""
        found: list[str] = []
        for line in lines:
            key = self.search.keys[line]
            if not key:
                continue
            if len(found) == count or indent_width(self.search.document.lines[line]) < depth:
                break
            found.append(key)
        return found

    def _gain(self, shown: str, key: str) -> float:
        if shown == key:
            return self._weights[shown]
        if self.counts[shown] or not is_telling(shown):
            return 0.0
        pair = (shown, key)
        if pair not in self._alike:
            likeness = fuzz.ratio(shown, key, score_cutoff=MIN_LIKENESS)
            self._alike[pair] = max(0.0, (likeness - UNLIKE) / (100 - UNLIKE)) * self._weights[shown]
        return self._alike[pair]


def is_telling(key: str, characters: int = TELLING_CHARACTERS) -> bool:
    return letters(key) >= characters


def letters(key: str) -> int:
    """Letters and digits."""
    return sum(map(str.isalnum, key))
