"""Compute unified diffs, quickly even for large files.

A line ends only at a line feed, as in git and patch, which can therefore apply the diff. A line that gets or loses a
carriage return counts as changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from adapter.core.text.lines import count_common_prefix, split_lines
from adapter.core.text.plurals import pluralize

CONTEXT_LINES = 3
MAX_COMPARISONS = 400_000_000
"""Maximum product of the line counts of the two differing parts, without their common start and end. rapidfuzz makes 64
comparisons at a time, so this takes about 0.1 s and 50 MB. Above it, the whole part is shown as replaced."""
_UNCLOSED = "\n\\ No newline at end of file"
MAX_LISTED = 5
"""Maximum number of changes listed in a sentence."""


class LineChange(NamedTuple):
    """A change of ``before[start:end]`` to ``after[new_start:new_end]``. Indices are 0-based, ends exclusive."""

    start: int
    end: int
    new_start: int
    new_end: int

    def move(self, lines: int, new_lines: int) -> LineChange:
        """Return the change with indices increased by ``lines`` in ``before`` and ``new_lines`` in ``after``."""
        return LineChange(self.start + lines, self.end + lines, self.new_start + new_lines, self.new_end + new_lines)


def render_unified_diff(before: str, after: str, path: str = "", regions: Sequence[LineChange] | None = None) -> str:
    """Return a unified diff, or "" for equal strings. ``regions`` are the changed regions in order, if known. Text
    outside them is not compared."""
    if before == after:
        return ""
    old = _split_diff_lines(before)
    new = _split_diff_lines(after) if regions is None else _split_changed_lines(old, after, regions)
    header = [f"--- a/{path}\n", f"+++ b/{path}\n"] if path else ["--- before\n", "+++ after\n"]
    changed = find_changes(old, new) if regions is None else _find_changes_within(old, new, regions)
    hunks = (_render_hunk(old, new, group) for group in _group_changes(changed))
    return "".join([*header, *(line for hunk in hunks for line in hunk)])


def describe_changed_lines(before: str, after: str) -> str:
    """Describe the changed lines by their numbers in ``after``: ``lines 3-5 changed, line 9 added``."""
    if before == after:
        return "nothing changed"
    parts = []
    for change in find_changes(_split_diff_lines(before), _split_diff_lines(after)):
        first, last = change.new_start + 1, change.new_end
        if change.new_start == change.new_end:
            count = change.end - change.start
            parts.append(f"{pluralize(count, 'line')} removed after line {change.new_start}")
        else:
            verb = "added" if change.start == change.end else "changed"
            parts.append(f"line {first} {verb}" if first == last else f"lines {first}-{last} {verb}")
    more = [f"and {pluralize(len(parts) - MAX_LISTED, 'more change')}"] if len(parts) > MAX_LISTED else []
    return ", ".join(parts[:MAX_LISTED] + more)


def list_changed_offsets(before: str, after: str) -> list[int]:
    """Return the offset in ``after`` of each change's first line."""
    lines = split_lines(after)
    offsets = [0, *accumulate(map(len, lines))]
    return [offsets[change.new_start] for change in find_changes(split_lines(before), lines)]


def find_changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return a shortest list of changes between two lists of lines, in order."""
    head = count_common_prefix(old, new)
    tail = count_common_prefix(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return []
    if len(middle_old) * len(middle_new) > MAX_COMPARISONS:
        return [LineChange(head, len(old) - tail, head, len(new) - tail)]
    return [change.move(head, head) for change in _join_opcodes(middle_old, middle_new)]


def _find_changes_within(old: Sequence[str], new: Sequence[str], regions: Sequence[LineChange]) -> Iterator[LineChange]:
    for start, end, new_start, new_end in regions:
        for change in find_changes(old[start:end], new[new_start:new_end]):
            yield change.move(start, new_start)


def _join_opcodes(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    """Yield the changes between two lists of lines. Adjacent insertions and deletions, which rapidfuzz reports
    separately, are one change."""
    for is_equal, group in groupby(LCSseq.opcodes(old, new), lambda code: code.tag == "equal"):
        if not is_equal:
            codes = list(group)
            yield LineChange(codes[0].src_start, codes[-1].src_end, codes[0].dest_start, codes[-1].dest_end)


def _split_diff_lines(text: str) -> list[str]:
    """Split at line feeds. If the last line has no line feed, append the marker that diffs use for this."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + _UNCLOSED] if last else lines


def _split_changed_lines(old: Sequence[str], after: str, regions: Sequence[LineChange]) -> list[str]:
    """Split ``after`` into lines. Lines outside the changed ``regions`` are copied from ``old``, which is faster."""
    lines: list[str] = []
    position = offset = 0
    for start, end, new_start, new_end in regions:
        unchanged = old[position:start]
        offset += sum(map(len, unchanged)) + len(unchanged)
        stop = offset
        for _ in range(new_start, new_end):
            stop = after.find("\n", stop) + 1 or len(after)
        lines += (*unchanged, *_split_diff_lines(after[offset:stop]))
        position, offset = end, stop
    return [*lines, *old[position:]]


def _group_changes(changed: Iterable[LineChange]) -> Iterator[list[LineChange]]:
    """Group changes into hunks. Changes share a hunk if their context lines touch or overlap."""
    group: list[LineChange] = []
    for change in changed:
        if group and change.start - group[-1].end > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _render_hunk(old: Sequence[str], new: Sequence[str], group: Sequence[LineChange]) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(CONTEXT_LINES, first.start)
    trail = min(CONTEXT_LINES, len(old) - last.end)
    old_range = _format_range(first.start - lead, last.end + trail)
    new_range = _format_range(first.new_start - lead, last.new_end + trail)
    yield f"@@ -{old_range} +{new_range} @@\n"
    position = first.start - lead
    for change in group:
        yield from (f" {line}\n" for line in old[position : change.start])
        yield from (f"-{line}\n" for line in old[change.start : change.end])
        yield from (f"+{line}\n" for line in new[change.new_start : change.new_end])
        position = change.end
    yield from (f" {line}\n" for line in old[position : last.end + trail])


def _format_range(start: int, end: int) -> str:
    """Format a range as ``first line,count``, like diff. For an empty range, give the line before it instead."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
