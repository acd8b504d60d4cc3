"""Changes that are sure by themselves, in a text whose other lines moved on.

A model that edits from memory shows lines around its change that read differently by now. Where the
lines to change stand there verbatim, once, and with enough to say, and most of what
is shown around them is near, on its side of them, only these lines are edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from adapter.edits.document import line_list
from adapter.edits.folding import line_key
from adapter.edits.indent import indent_width
from adapter.edits.readings import is_elision
from adapter.edits.search import Search
from adapter.text.diffs import Change, changes

MIN_CHARACTERS = 16
"""Letters and digits of the lines that say where the change is."""
TELLING_CHARACTERS = 8
NEAR = 12
"""Lines around the change in which the lines shown around it are looked for."""
MIN_NEAR = 0.5
"""Share of the telling lines shown around the change that must be near it."""
MIN_LEAD = 0.3
"""Share by which every other place of the same lines must have less of it near."""
MAX_RIVALS = 20
"""Places of the lines to change up to which the lines around them are compared."""
MAX_TELLING_PLACES = 2
"""A line that stands more often does not say where it is."""
MAX_SCOPE = 1_000
"""Lines above a place in which its function or section is looked for."""


class Part(NamedTuple):
    """One change with the lines beside it that stand in the document; ``note`` says what does not."""

    old: str
    new: str
    note: str


class _Anchor(NamedTuple):
    """Old lines ``start:stop`` stand in the document's lines ``first`` to ``last``, and nowhere else."""

    start: int
    stop: int
    first: int
    last: int


def anchored(search: Search, old: Sequence[str], new: Sequence[str]) -> list[Part]:
    """The changes, each of them sure, in order; none when one is not."""
    hunks = changes(old, new)
    if any(is_elision(line) for line in (*old, *new)):
        return []
    shown = _Shown(search, old, [line_key(line) for line in old])
    found = [anchor for hunk in hunks if (anchor := shown.anchor(hunk)) is not None]
    if any(shown.stands_already(hunk, new) for hunk in hunks):
        return []
    if len(found) < len(hunks) or any(after.first <= before.last for before, after in pairwise(found)):
        return []
    return [_part(old, new, hunk, anchor) for hunk, anchor in zip(hunks, found, strict=True)]


class _Shown:
    """What a model shows, and where that stands."""

    def __init__(self, search: Search, old: Sequence[str], keys: Sequence[str]) -> None:
        self.search, self.old, self.keys = search, old, keys

    def anchor(self, hunk: Change) -> _Anchor | None:
        """Where a change is, if that is sure."""
        touched = self._touched(hunk)
        rivals = self._places(touched) if touched else []
        start, stop = touched or (0, 0)
        if not self._count_shown(start, stop) <= len(rivals) <= MAX_RIVALS:
            return None
        places = rivals
        while len(places) != 1 or _letters(self.keys[start:stop]) < MIN_CHARACTERS:
            wider = [(span, found) for span in self._wider(start, stop) if (found := self._places(span))]
            if not wider:
                return None
            (start, stop), places = min(wider, key=lambda one: len(one[1]))
        anchor = _Anchor(start, stop, *places[0])
        if not self._is_verbatim(anchor) or not self._is_in_scope(anchor):
            return None
        share = self._share_near(hunk, anchor.first, anchor.last)
        others = [self._share_near(hunk, *rival) for rival in rivals if not anchor.first <= rival[0] <= anchor.last]
        is_alone = share - max(others, default=0.0) >= MIN_LEAD
        is_sure = share >= MIN_NEAR and is_alone and not self._is_shown_elsewhere(hunk, anchor)
        return anchor if is_sure else None

    def stands_already(self, hunk: Change, new: Sequence[str]) -> bool:
        """Whether the document has what a change leads to, somewhere: then it was made there, and this is a twin."""
        added = [key for line in new[hunk.new_start : hunk.new_end] if (key := line_key(line))]
        if _letters(added) < TELLING_CHARACTERS:
            above, below = self._above(hunk.start), self._below(hunk.end)
            added = [*self._key(above), *added, *self._key(below)]
        return _letters(added) >= TELLING_CHARACTERS and bool(self.search.find_lines(added))

    def _touched(self, hunk: Change) -> tuple[int, int] | None:
        """The rows of a change; of an addition those on both sides of it."""
        if hunk.start < hunk.end:
            return hunk.start, hunk.end
        above, below = self._above(hunk.start), self._below(hunk.end)
        return None if above is None or below is None else (above, below + 1)

    def _wider(self, start: int, stop: int) -> list[tuple[int, int]]:
        above, below = self._above(start), self._below(stop)
        upward = [] if above is None else [(above, stop)]
        return upward if below is None else [*upward, (start, below + 1)]

    def _key(self, row: int | None) -> list[str]:
        return [] if row is None else [self.keys[row]]

    def _above(self, row: int) -> int | None:
        return next((other for other in range(row - 1, -1, -1) if self.keys[other]), None)

    def _below(self, row: int) -> int | None:
        return next((other for other in range(row, len(self.keys)) if self.keys[other]), None)

    def _places(self, span: tuple[int, int]) -> list[tuple[int, int]]:
        return self.search.find_lines([key for key in self.keys[slice(*span)] if key])

    def _count_shown(self, start: int, stop: int) -> int:
        """How often the old text itself has these rows: where the document has them less often, one of them reads
        differently by now, and it may be the one to change."""
        sought = [key for key in self.keys[start:stop] if key]
        filled = [key for key in self.keys if key]
        return sum(filled[at : at + len(sought)] == sought for at in range(len(filled))) if sought else 1

    def _is_verbatim(self, anchor: _Anchor) -> bool:
        rows = [line.rstrip() for line in self.old[anchor.start : anchor.stop] if line.strip()]
        lines = self.search.document.lines[anchor.first : anchor.last + 1]
        return rows == [line.rstrip() for line in lines if line.strip()]

    def _is_in_scope(self, anchor: _Anchor) -> bool:
        """Whether what the old text shows the change to be in, a function, a section, a key, is what it is in
        in the document: the lines above it that are indented less than all between."""
        filled = [row for row in range(anchor.start, anchor.stop) if self.keys[row]]
        owners = _owners(self.old, min(filled, key=lambda row: indent_width(self.old[row])))
        if not owners:
            return True
        lines = self.search.document.lines
        place = range(anchor.first, anchor.last + 1)
        line = min((at for at in place if lines[at].strip()), key=lambda at: indent_width(lines[at]))
        return owners <= _owners(lines[max(0, line - MAX_SCOPE) : line + 1], min(line, MAX_SCOPE))

    def _is_shown_elsewhere(self, hunk: Change, anchor: _Anchor) -> bool:
        """Whether a telling line that is shown around the change is not near it and stands somewhere else."""
        away = (key for key, is_near in self._shown_around(hunk, anchor.first, anchor.last) if not is_near)
        return any(0 < len(self.search.places(key)) <= MAX_TELLING_PLACES for key in away)

    def _share_near(self, hunk: Change, first: int, last: int) -> float:
        """How much of what is shown around the change is near a place, each line on its side."""
        shown = self._shown_around(hunk, first, last)
        return sum(is_near for _, is_near in shown) / len(shown) if shown else 0.0

    def _shown_around(self, hunk: Change, first: int, last: int) -> list[tuple[str, bool]]:
        """The telling lines shown around a change, and whether each is near a place."""
        above = self.search.keys[max(0, first - NEAR) : last + 1]
        below = self.search.keys[first : last + 1 + NEAR]
        sides = [(row, above) for row in range(hunk.start)] + [(row, below) for row in range(hunk.end, len(self.keys))]
        shown = [(self.keys[row], side) for row, side in sides if _letters([self.keys[row]]) >= TELLING_CHARACTERS]
        return [(key, key in side) for key, side in shown]


def _owners(lines: Sequence[str], at: int) -> set[str]:
    """The lines above one that are indented less than it and than all between."""
    owners: set[str] = set()
    depth = indent_width(lines[at])
    for line in reversed(lines[:at]):
        if line.strip() and indent_width(line) < depth:
            depth = indent_width(line)
            owners.add(line_key(line))
    return owners


def _letters(keys: Sequence[str]) -> int:
    return sum(character.isalnum() for key in keys for character in key)


def _part(old: Sequence[str], new: Sequence[str], hunk: Change, anchor: _Anchor) -> Part:
    head, tail = old[anchor.start : hunk.start], old[hunk.end : anchor.stop]
    written = [*head, *new[hunk.new_start : hunk.new_end], *tail]
    away = [row + 1 for row, line in enumerate(old) if line_key(line) and row not in range(anchor.start, anchor.stop)]
    note = (
        f"only the changed lines were looked for: {line_list(away)} of the old text may read differently there; "
        "the file's own lines were kept"
    )
    return Part("\n".join(old[anchor.start : anchor.stop]) + "\n", "".join(line + "\n" for line in written), note)
