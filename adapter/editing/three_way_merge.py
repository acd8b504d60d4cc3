"""Merge the changes that were made to an earlier version of a text into its current version."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile

from adapter.core.errors import EditError
from adapter.core.text.diffs import LineChange, find_changes
from adapter.core.text.lines import split_lines
from adapter.editing.document import format_line_range

NEAR = 3
"""Maximum number of kept lines between two changes that belong together, such as the start and end of a new block."""


def merge_changes(earlier: str, wanted: str, current: str) -> str | None:
    """Return ``current`` with the changes that turn ``earlier`` into ``wanted``. Return None if the result is
    uncertain, for example because both add lines at the same place.

    Raises EditError if lines to change, or a few lines between them, have changed in ``current``. Equal lines next to
    an insertion or deletion count as changed, because they may be the ones that were added or deleted.
    """
    base, target, lines = map(split_lines, (earlier, wanted, current))
    made = find_changes(base, lines)
    reached = list(_list_possible_ranges(made, base, lines))
    starts, ends = [start for start, _ in reached], [end for _, end in reached]
    merged: list[str] = []
    position, above, is_certain = 0, -NEAR - 1, True
    changes = find_changes(base, target)
    for change, (start, end) in zip(changes, _list_possible_ranges(changes, base, target), strict=True):
        first = above if change.start - above <= NEAR else change.start
        above = change.end
        for at in range(bisect_left(ends, min(start, first)), bisect_right(starts, end)):
            if starts[at] < change.end and first < ends[at]:
                lines_read = format_line_range(first + 1, max(change.end, first + 1))
                raise EditError(f"{lines_read} of the version that you read, where lines are to change, differ now")
            is_certain &= not (starts[at] < end and start < ends[at])
            is_certain &= not (_adds_lines(change) and _adds_lines(made[at]))
        shift = _find_shift(made, change.start)
        merged += [*lines[position : change.start + shift], *target[change.new_start : change.new_end]]
        position = change.end + shift
    return "".join([*merged, *lines[position:]]) if is_certain else None


def _adds_lines(change: LineChange) -> bool:
    return change.new_end - change.new_start > change.end - change.start


def _find_shift(made: Sequence[LineChange], line: int) -> int:
    """Return the number of lines by which the unchanged ``line`` has moved."""
    above = bisect_left(made, line + 1, key=lambda change: change.end) - 1
    return made[above].new_end - made[above].end if above >= 0 else 0


def _list_possible_ranges(
    made: Sequence[LineChange], base: Sequence[str], lines: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the lines of ``base`` that each change may have changed. Equal lines next to it count too: the lines that
    were added or deleted may be these."""
    previous = 0
    for change, following in zip(made, [*(after.start for after in made[1:]), len(base)], strict=False):
        room = change.start - previous, following - change.end
        sides = (base, change.start, change.end), (lines, change.new_start, change.new_end)
        above, below = map(max, zip(*(_measure_slide(*side, *room) for side in sides), strict=True))
        yield change.start - above, change.end + below
        previous = change.end


def _measure_slide(text: Sequence[str], start: int, end: int, above: int, below: int) -> tuple[int, int]:
    """Return the number of lines, at most ``above`` and ``below``, by which the range can move without changing what
    the other lines are."""
    if start == end:
        return 0, 0
    up = takewhile(lambda row: text[start - row] == text[end - row], range(1, above + 1))
    down = takewhile(lambda row: text[start + row] == text[end + row], range(below))
    return sum(1 for _ in up), sum(1 for _ in down)
