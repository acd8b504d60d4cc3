"""A mapping between the lines of the old text and the lines of the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.repairs.omission_markers import is_elision


class LineMapping(NamedTuple):
    """Maps the old lines ``old_start`` to ``old_stop`` to the document's lines ``line_start`` to ``line_stop``.

    If the old range is empty, the model omitted these document lines. If the document's range is empty, the old lines
    are missing from the document. A range of several lines means that lines were joined or split. ``is_elided`` is true
    if the model wrote ``...`` in place of the document's lines.
    """

    old_start: int
    old_stop: int
    line_start: int
    line_stop: int
    is_elided: bool = False

    @property
    def is_pair(self) -> bool:
        return self.old_stop - self.old_start == 1 == self.line_stop - self.line_start and not self.is_elided

    @property
    def is_unmentioned(self) -> bool:
        return self.old_start == self.old_stop

    @property
    def is_missing(self) -> bool:
        return self.line_start == self.line_stop and not self.is_elided


def add_gaps(search: DocumentIndex, old: Sequence[str], matched: Sequence[LineMapping]) -> list[LineMapping]:
    """Return ``matched``, the mappings of non-blank lines, with further mappings for the lines between and around
    them."""
    keys = search.keys
    first = matched[0]
    up = 0
    while up < min(first.old_start, first.line_start) and not keys[first.line_start - 1 - up]:
        up += 1
    position, line = 0, first.line_start - up
    steps: list[LineMapping] = []
    for step in matched:
        steps += _map_gap(search, old, range(position, step.old_start), range(line, step.line_start))
        steps.append(step)
        position, line = step.old_stop, step.line_stop
    down = 0
    available = search.document.line_count - line
    while down < min(len(old) - position, available) and not keys[line + down] and not old[position + down].strip():
        down += 1
    return [*steps, *_map_gap(search, old, range(position, len(old)), range(line, line + down))]


def _map_gap(search: DocumentIndex, old: Sequence[str], rows: range, lines: range) -> Iterator[LineMapping]:
    """Map the lines between two mapped lines: blank lines, lines on only one side, or a ``...``."""
    elided = next((row for row in rows if is_elision(old[row])), None)
    if elided is not None:
        for row in rows:
            mapped = lines if row == elided else range(lines.start if row < elided else lines.stop, 0)
            yield LineMapping(row, row + 1, mapped.start, max(mapped.start, mapped.stop), row == elided)
        return
    head = _count_shared_blanks(search, old, rows, lines, 1)
    tail = _count_shared_blanks(search, old, rows[head:], lines[head:], -1)
    yield from _pair_lines(rows[:head], lines[:head])
    rest, unmentioned = rows[head : len(rows) - tail], lines[head : len(lines) - tail]
    if unmentioned:
        yield LineMapping(rest.start, rest.start, unmentioned.start, unmentioned.stop)
    for row in rest:
        yield LineMapping(row, row + 1, unmentioned.stop, unmentioned.stop)
    yield from _pair_lines(rows[len(rows) - tail :], lines[len(lines) - tail :])


def _count_shared_blanks(search: DocumentIndex, old: Sequence[str], rows: range, lines: range, direction: int) -> int:
    count = 0
    for row, line in zip(rows[::direction], lines[::direction], strict=False):
        if old[row].strip() or search.keys[line]:
            break
        count += 1
    return count


def _pair_lines(rows: range, lines: range) -> Iterator[LineMapping]:
    return (LineMapping(row, row + 1, line, line + 1) for row, line in zip(rows, lines, strict=True))
