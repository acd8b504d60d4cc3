"""Changes that are sure by themselves, in a text whose other lines moved on.

A model that edits from memory shows lines around its change that read differently by now. Where the
lines to change stand there verbatim, and what is shown around them says more of this place than of any
other, only these lines are edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from adapter.edits.document import line_list
from adapter.edits.evidence import TELLING_CHARACTERS, Around, Evidence, is_telling, letters
from adapter.edits.folding import line_key
from adapter.edits.indent import indent_width
from adapter.edits.readings import is_elision
from adapter.edits.search import Search
from adapter.text.diffs import Change, changes
from adapter.values.lazy_pattern import lazy_pattern

MIN_BITS = 20.0
"""What the lines to change and those around them must say of the place."""
MIN_SIDE_BITS = 4.0
"""What must be found on each side: lines of one side alone may have gone elsewhere without the change."""
MIN_LETTERS = 16
"""Letters and digits of lines to change that stand nowhere else, with which one side is enough."""
MIN_LEAD_BITS, MIN_LEAD = 8.0, 0.4
"""By how much, and by which share, less must be found around every other place of the same lines."""
MIN_AS_SHOWN = 0.5
"""Share of what is found that must be said by lines that read as they are shown: a twin has lines like each of them."""
MAX_COMPARISONS = 60_000
"""Lines shown times lines around all places of the lines to change: some 0.1 s. Above it nothing counts as sure."""
MAX_TELLING_PLACES = 2
"""A line that stands more often does not say where it is."""
MAX_SCOPE = 1_000
"""Lines above a place in which its function or section is looked for."""
_WORD = lazy_pattern(r"\w+")
_CLOSING = lazy_pattern(r"\s*(?:[)\]}]|end\b)")


class Part(NamedTuple):
    """One change with the lines it touches, which stand in the document from line ``first`` on; ``note`` says what
    may read differently."""

    old: str
    new: str
    first: int
    note: str


class _Anchor(NamedTuple):
    """Old lines ``rows`` stand in the document's lines ``first`` to ``last``."""

    rows: range
    first: int
    last: int


def anchored(search: Search, old: Sequence[str], new: Sequence[str]) -> list[Part]:
    """The changes, each of them sure, in order; none when one is not."""
    hunks = changes(old, new)
    if any(is_elision(line) for line in (*old, *new)):
        return []
    shown = _Shown(search, old)
    found = [anchor for hunk in hunks if (anchor := shown.anchor(hunk)) is not None]
    if any(shown.stands_already(hunk, new) for hunk in hunks):
        return []
    if len(found) < len(hunks) or any(after.first <= before.last for before, after in pairwise(found)):
        return []
    return [_part(old, new, hunk, anchor) for hunk, anchor in zip(hunks, found, strict=True)]


class _Shown:
    """What a model shows, and where that stands."""

    def __init__(self, search: Search, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.evidence = Evidence(search, old)
        self.keys = self.evidence.keys

    def anchor(self, hunk: Change) -> _Anchor | None:
        """Where a change is, if that is sure."""
        rows = self._touched(hunk)
        places = list(self._places(rows)) if rows else []
        if not places or self._count_shown(rows) > len(places):
            return None
        if len(places) * self.evidence.cost(rows) > MAX_COMPARISONS:
            return None
        found = sorted(((self.evidence.around(rows, *place), place) for place in places), key=lambda one: -one[0].bits)
        (best, place), others = found[0], [around.bits for around, _ in found[1:]]
        lead = best.bits - max(others, default=0.0)
        is_alone = lead >= MIN_LEAD_BITS and lead >= MIN_LEAD * best.bits
        is_only = not others and letters("".join(self.keys[rows.start : rows.stop])) >= MIN_LETTERS
        is_between = min(best.above, best.below) >= MIN_SIDE_BITS
        is_beside = all(self._beside(rows, *place) >= self._beside(rows, *other) for _, other in found[1:])
        is_as_shown = self.evidence.bits(best.rows) >= MIN_AS_SHOWN * best.bits
        is_sure = (is_only or is_between) and is_as_shown and self.evidence.bits(rows) + best.bits >= MIN_BITS
        anchor = _Anchor(rows, *place)
        return anchor if is_alone and is_beside and is_sure and self._is_consistent(anchor, best) else None

    def _beside(self, rows: range, first: int, last: int) -> frozenset[int]:
        """Which of the rows right above and below are the next lines that are not blank."""
        keys = self.search.keys
        above, below = self._above(rows.start), self._below(rows.stop)
        up = next((line for line in range(first - 1, -1, -1) if keys[line]), None)
        down = next((line for line in range(last + 1, len(keys)) if keys[line]), None)
        pairs = [(row, line) for row, line in ((above, up), (below, down)) if row is not None and line is not None]
        return frozenset(row for row, line in pairs if self.keys[row] == keys[line])

    def stands_already(self, hunk: Change, new: Sequence[str]) -> bool:
        """Whether the document has what a change leads to, somewhere: then it was made there, and this is a twin."""
        added = [key for line in new[hunk.new_start : hunk.new_end] if (key := line_key(line))]
        if letters("".join(added)) < TELLING_CHARACTERS:
            beside = (self._above(hunk.start), self._below(hunk.end))
            above, below = ([] if row is None else [self.keys[row]] for row in beside)
            added = [*above, *added, *below]
        return is_telling("".join(added)) and bool(self.search.find_lines(added))

    def _touched(self, hunk: Change) -> range:
        """The rows of a change; of an addition those on both sides of it."""
        if hunk.start < hunk.end:
            return range(hunk.start, hunk.end)
        above, below = self._above(hunk.start), self._below(hunk.end)
        return range(0) if above is None or below is None else range(above, below + 1)

    def _above(self, row: int) -> int | None:
        return next((other for other in range(row - 1, -1, -1) if self.keys[other]), None)

    def _below(self, row: int) -> int | None:
        return next((other for other in range(row, len(self.keys)) if self.keys[other]), None)

    def _places(self, rows: range) -> Iterator[tuple[int, int]]:
        """Where the rows stand verbatim, but for blanks at ends of lines: first and last line."""
        written = _written(self.old[rows.start : rows.stop])
        for first, last in self.search.find_lines([self.keys[row] for row in rows if self.keys[row]]):
            if _written(self.search.document.lines[first : last + 1]) == written:
                yield first, last

    def _count_shown(self, rows: range) -> int:
        """How often the old text itself has these rows: where the document has them less often, one of them reads
        differently by now, and it may be the one to change."""
        sought, filled = _written(self.old[rows.start : rows.stop]), _written(self.old)
        return sum(filled[at : at + len(sought)] == sought for at in range(len(filled)))

    def _is_consistent(self, anchor: _Anchor, around: Around) -> bool:
        """Whether nothing that is shown says that another place is meant."""
        return self._is_in_scope(anchor) and not any(map(self._stands_elsewhere, self._away(anchor, around)))

    def _away(self, anchor: _Anchor, around: Around) -> Iterator[int]:
        return (row for row, key in enumerate(self.keys) if key and row not in anchor.rows and row not in around.rows)

    def _stands_elsewhere(self, row: int) -> bool:
        return is_telling(self.keys[row]) and 0 < self.evidence.counts[self.keys[row]] <= MAX_TELLING_PLACES

    def _is_in_scope(self, anchor: _Anchor) -> bool:
        """Whether what the old text shows the change to be in, a function, a section, a key, is what it is in
        in the document: the lines above it that are indented less than all between."""
        filled = [row for row in anchor.rows if self.keys[row]]
        owners = _owners(self.old, min(filled, key=lambda row: indent_width(self.old[row])))
        if not owners:
            return True
        lines = self.search.document.lines
        place = range(anchor.first, anchor.last + 1)
        line = min((at for at in place if lines[at].strip()), key=lambda at: indent_width(lines[at]))
        actual = _owners(lines[max(0, line - MAX_SCOPE) : line + 1], min(line, MAX_SCOPE))
        return all(any(_is_same(owner, other) for other in actual) for owner in owners)


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
            owners.add(line_key(line))
    return owners


def _written(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def _part(old: Sequence[str], new: Sequence[str], hunk: Change, anchor: _Anchor) -> Part:
    start, stop = anchor.rows.start, anchor.rows.stop
    written = [*old[start : hunk.start], *new[hunk.new_start : hunk.new_end], *old[hunk.end : stop]]
    away = [row + 1 for row, line in enumerate(old) if line_key(line) and row not in anchor.rows]
    note = (
        f"only the changed lines were looked for: {line_list(away)} of the old text may read differently there; "
        "the file's own lines were kept"
    )
    return Part("\n".join(old[start:stop]) + "\n", "".join(line + "\n" for line in written), anchor.first, note)
