"""Find changes that are sure although the lines around them have moved on.

A model that edits from memory shows context lines that read differently by now. Where the lines to change are in
the document verbatim, and the context says more of this location than of any other, only these lines are edited.

Context is counted in bits: a line that occurs once among a thousand says ten, one that is every tenth line three. A
line that occurs nowhere counts as the one most like it. Lines are matched in order, outwards from the change, each on
its side, and no farther than the block that the shown lines are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import log2
from typing import NamedTuple

from rapidfuzz import fuzz

from adapter.core.text.diffs import LineChange, changes
from adapter.editing.document import format_line_list
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.normalize import count_letters, is_distinctive, normalized_line
from adapter.editing.repairs.interpretations import is_elision
from adapter.editing.repairs.reindent import indent_width

MIN_BITS = 20.0
"""What the lines to change and those around them must say of the location."""
MIN_SIDE_BITS = 4.0
"""What must be found on each side: lines of one side alone may have gone elsewhere without the change."""
MIN_LETTERS = 16
"""Letters and digits of lines to change that occur nowhere else, with which one side is enough."""
MIN_LEAD_BITS, MIN_LEAD = 8.0, 0.4
"""By how much, and by which share, less must be found around every other occurrence of the same lines."""
MIN_AS_SHOWN = 0.5
"""Share of what is found that must be said by lines that read as they are shown: a twin has lines like each of them."""
MAX_COMPARISONS = 60_000
"""Lines shown times lines around all occurrences of the lines to change: some 0.1 s. Above it no change is sure."""
MAX_DISTINCTIVE_PLACES = 2
"""A line that occurs more often does not say where it is."""
MAX_SCOPE = 1_000
"""Lines above a location in which its function or section is sought."""
NEAR = 15
"""Lines on each side of a location, beyond as many as are shown, in which these are sought."""
MAX_SHOWN = 40
"""Lines on each side of a change that are sought, the nearest."""
SKIPPED = 0.5
"""Bits that a line of the document costs that is between the location and lines that are shown."""
MIN_SIMILARITY = 70.0
"""Percent from which a line that occurs nowhere is taken for another one."""
UNLIKE = 50.0
"""Percent at which similarity says nothing."""
MIN_SIZE = 250
"""Lines of a document below which counts say no more than in one of so many."""
MARK_BITS = 2.0
"""What a line without letters and digits says at most, one with them one bit more for each."""
_WORD = re.compile(r"\w+")
_CLOSING = re.compile(r"\s*(?:[)\]}]|end\b)")


class AnchoredChange(NamedTuple):
    """One change with the lines it touches, which are in the document from line ``first`` on; ``note`` says what
    may read differently."""

    old: str
    new: str
    first: int
    note: str


class ContextMatch(NamedTuple):
    """Bits found on each side of a location; ``rows`` are the old lines that were found."""

    above: float
    below: float
    rows: frozenset[int]

    @property
    def bits(self) -> float:
        return self.above + self.below


class _Anchor(NamedTuple):
    """Old lines ``rows`` are the document's lines ``first`` to ``last``."""

    rows: range
    first: int
    last: int


def find_anchored_changes(search: DocumentIndex, old: Sequence[str], new: Sequence[str]) -> list[AnchoredChange]:
    """Return the changes, each of them sure, in order; none when one is not."""
    hunks = changes(old, new)
    if any(is_elision(line) for line in (*old, *new)):
        return []
    context = ContextScorer(search, old)
    anchors = _Anchors(context)
    found = [anchor for hunk in hunks if (anchor := anchors.find(hunk)) is not None]
    if any(anchors.is_applied(hunk, new) for hunk in hunks):
        return []
    if len(found) < len(hunks) or any(after.first <= before.last for before, after in pairwise(found)):
        return []
    return [_anchored_change(context, new, hunk, anchor) for hunk, anchor in zip(hunks, found, strict=True)]


def _anchored_change(context: ContextScorer, new: Sequence[str], hunk: LineChange, anchor: _Anchor) -> AnchoredChange:
    old, (start, stop) = context.old, (anchor.rows.start, anchor.rows.stop)
    written = [*old[start : hunk.start], *new[hunk.new_start : hunk.new_end], *old[hunk.end : stop]]
    away = [row + 1 for row, key in enumerate(context.keys) if key and row not in anchor.rows]
    note = (
        f"only the changed lines were looked for: {format_line_list(away)} of the old text may read differently there; "
        "the file's own lines were kept"
    )
    shown, changed = ("".join(line + "\n" for line in lines) for lines in (old[start:stop], written))
    return AnchoredChange(shown, changed, anchor.first, note)


# ---------------------------------------------------------------------------- context


class ContextScorer:
    """Count how much of the context of an old text is found around a location of the document."""

    def __init__(self, search: DocumentIndex, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.keys = [normalized_line(line) for line in old]
        self.counts = {key: len(search.lines_with_key(key)) for key in self.keys if key}
        self._depths = [indent_width(line) for line in old]
        self._gains: dict[tuple[str, str], float] = {}

    def bits(self, rows: Iterable[int]) -> float:
        """What old lines say by being in the document as they are."""
        return sum(self._weights[key] for row in rows if (key := self.keys[row]) and self.counts[key])

    def around(self, rows: range, first: int, last: int) -> ContextMatch:
        """What is shown around ``rows`` and found around the lines ``first`` to ``last``."""
        depth = min((self._depths[row] for row in rows if self.keys[row]), default=0)
        above, below = self.shown(rows)
        up, found_above = self._side(above, range(first - 1, -1, -1), depth)
        down, found_below = self._side(below, range(last + 1, len(self.search.keys)), depth)
        return ContextMatch(up, down, found_above | found_below)

    def cost(self, rows: range) -> int:
        """Comparisons of lines that one location takes."""
        return sum(len(side) * (len(side) + NEAR) for side in self.shown(rows))

    def shown(self, rows: range) -> tuple[list[int], list[int]]:
        """The rows on each side that are not blank, from the change outwards."""
        above = [row for row in range(rows.start - 1, -1, -1) if self.keys[row]]
        below = [row for row in range(rows.stop, len(self.old)) if self.keys[row]]
        return above[:MAX_SHOWN], below[:MAX_SHOWN]

    @cached_property
    def _weights(self) -> dict[str, float]:
        size = max(len(self.search.nonblank_lines), MIN_SIZE) + 1
        return {
            key: min(log2(size / max(count, 1)), MARK_BITS + count_letters(key)) for key, count in self.counts.items()
        }

    def _side(self, rows: Sequence[int], lines: range, depth: int) -> tuple[float, frozenset[int]]:
        """The most that ``rows`` say by ``lines``, both from the change outwards."""
        keys = self._block(lines, min((depth, *(self._depths[row] for row in rows))), NEAR + len(rows))
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
        if self.counts[shown] or not is_distinctive(shown):
            return 0.0
        gain = self._gains.get((shown, key))
        if gain is None:
            similarity = fuzz.ratio(shown, key, score_cutoff=MIN_SIMILARITY)
            gain = max(0.0, (similarity - UNLIKE) / (100 - UNLIKE)) * self._weights[shown]
            self._gains[shown, key] = gain
        return gain


# ---------------------------------------------------------------------------- anchors


class _Anchors:
    def __init__(self, context: ContextScorer) -> None:
        self.context, self.search, self.old, self.keys = context, context.search, context.old, context.keys

    def find(self, hunk: LineChange) -> _Anchor | None:
        """Where a change is, if that is sure."""
        context, rows = self.context, self._touched(hunk)
        places = list(self._places(rows)) if rows else []
        if not places or self._count_shown(rows) > len(places) or len(places) * context.cost(rows) > MAX_COMPARISONS:
            return None
        found = sorted(((context.around(rows, *place), place) for place in places), key=lambda one: -one[0].bits)
        (best, place), others = found[0], found[1:]
        lead = best.bits - max((around.bits for around, _ in others), default=0.0)
        is_alone = lead >= MIN_LEAD_BITS and lead >= MIN_LEAD * best.bits
        is_only = not others and is_distinctive("".join(self.keys[rows.start : rows.stop]), MIN_LETTERS)
        is_between = min(best.above, best.below) >= MIN_SIDE_BITS
        is_beside = all(self._beside(rows, *place) >= self._beside(rows, *other) for _, other in others)
        is_as_shown = context.bits(best.rows) >= MIN_AS_SHOWN * best.bits
        is_sure = (is_only or is_between) and is_as_shown and context.bits(rows) + best.bits >= MIN_BITS
        anchor = _Anchor(rows, *place)
        return anchor if is_alone and is_beside and is_sure and self._is_consistent(anchor, best) else None

    def _beside(self, rows: range, first: int, last: int) -> frozenset[int]:
        """Which of the rows right above and below are the next lines that are not blank."""
        keys = self.search.keys
        up = next((line for line in range(first - 1, -1, -1) if keys[line]), None)
        down = next((line for line in range(last + 1, len(keys)) if keys[line]), None)
        sides = zip(self.context.shown(rows), (up, down), strict=True)
        return frozenset(
            side[0] for side, line in sides if side and line is not None and self.keys[side[0]] == keys[line]
        )

    def is_applied(self, hunk: LineChange, new: Sequence[str]) -> bool:
        """Whether the document has the result of a change somewhere: it was made there, and this is a twin."""
        added = [key for line in new[hunk.new_start : hunk.new_end] if (key := normalized_line(line))]
        if not is_distinctive("".join(added)):
            above, below = self.context.shown(range(hunk.start, hunk.end))
            added = [*(self.keys[row] for row in above[:1]), *added, *(self.keys[row] for row in below[:1])]
        return is_distinctive("".join(added)) and bool(self.search.find_lines(added))

    def _touched(self, hunk: LineChange) -> range:
        """The rows of a change; of an addition those on both sides of it."""
        rows = range(hunk.start, hunk.end)
        above, below = self.context.shown(rows)
        if rows:
            return rows
        return range(above[0], below[0] + 1) if above and below else range(0)

    def _places(self, rows: range) -> Iterator[tuple[int, int]]:
        """Where the rows are verbatim, but for blanks at ends of lines: first and last line."""
        written = _stripped(self.old[rows.start : rows.stop])
        for first, last in self.search.find_lines([self.keys[row] for row in rows if self.keys[row]]):
            if _stripped(self.search.document.lines[first : last + 1]) == written:
                yield first, last

    def _count_shown(self, rows: range) -> int:
        """How often the old text itself has these rows: where the document has them less often, one of them reads
        differently by now, and it may be the one to change."""
        sought, filled = _stripped(self.old[rows.start : rows.stop]), _stripped(self.old)
        return sum(filled[at : at + len(sought)] == sought for at in range(len(filled)))

    def _is_consistent(self, anchor: _Anchor, around: ContextMatch) -> bool:
        """Whether no line that is shown says that another location is meant."""
        away = (row for row in range(len(self.keys)) if row not in anchor.rows and row not in around.rows)
        return self._is_in_scope(anchor) and not any(self._is_elsewhere(self.keys[row]) for row in away)

    def _is_elsewhere(self, key: str) -> bool:
        return is_distinctive(key) and 0 < self.context.counts[key] <= MAX_DISTINCTIVE_PLACES

    def _is_in_scope(self, anchor: _Anchor) -> bool:
        """Whether what the old text shows the change to be in, a function, a section, a key, is what it is in
        in the document: the lines above it that are indented less than all between."""
        owners = _owners(self.old, _shallowest(self.old, anchor.rows))
        lines = self.search.document.lines
        line = _shallowest(lines, range(anchor.first, anchor.last + 1))
        actual = _owners(lines[max(0, line - MAX_SCOPE) : line + 1], min(line, MAX_SCOPE)) if owners else set()
        return all(any(_is_same(owner, other) for other in actual) for owner in owners)


def _shallowest(lines: Sequence[str], span: range) -> int:
    return min((at for at in span if lines[at].strip()), key=lambda at: indent_width(lines[at]))


def _is_same(shown: str, actual: str) -> bool:
    """Whether two lines are the same, or one has words that the other has not: ``def f(a)`` and ``def f(a, b)``."""
    left, right = (set(_WORD.findall(line)) for line in (shown, actual))
    return shown == actual or bool(left and right and (left <= right or right <= left))


def _owners(lines: Sequence[str], at: int) -> set[str]:
    """The lines above one that are indented less than it and than all between; of one that closes a block, the line
    that opens it, too."""
    owners: set[str] = set()
    depth = indent_width(lines[at]) + bool(_CLOSING.match(lines[at]))
    for line in reversed(lines[:at]):
        if line.strip() and indent_width(line) < depth:
            depth = indent_width(line)
            owners.add(normalized_line(line))
    return owners


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]
