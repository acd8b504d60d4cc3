"""Unified diffs whose cost stays small on large files.

Lines are split at line feeds only, as git and patch do, so that a changed
carriage return shows as a changed line and the diff can be applied by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from adapter.core.text.plurals import pluralize

CONTEXT_LINES = 3
MAX_COMPARISONS = 400_000_000
"""Changed lines before times after. rapidfuzz compares 64 of them at a step: some 0.1 s, 50 MB.
Above it the whole differing middle is shown as replaced."""
_UNCLOSED = "\n\\ No newline at end of file"
MAX_SAID = 5
"""Places named in a sentence."""
STRETCH = 500
"""Lines compared at a time."""


class LineChange(NamedTuple):
    """``before[start:end]`` became ``after[new_start:new_end]``; 0-based, end exclusive."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified_diff(before: str, after: str, path: str = "", stretches: Sequence[LineChange] | None = None) -> str:
    """What turns ``before`` into ``after``, empty when they are equal. ``stretches``: where they
    differ, in order, when that is known; nothing outside is compared."""
    if before == after:
        return ""
    old = _diff_lines(before)
    new = _diff_lines(after) if stretches is None else _changed_lines(old, after, stretches)
    header = [f"--- a/{path}\n", f"+++ b/{path}\n"] if path else ["--- before\n", "+++ after\n"]
    changed = changes(old, new) if stretches is None else _within(old, new, stretches)
    hunks = (_hunk(old, new, group) for group in _groups(changed))
    return "".join([*header, *(line for hunk in hunks for line in hunk)])


def changed_lines(before: str, after: str) -> str:
    """Where ``after`` is different, in words and in its line numbers: ``lines 3-5 changed, line 9 removed``."""
    if before == after:
        return "nothing changed"
    said = []
    for change in changes(_diff_lines(before), _diff_lines(after)):
        first, last = change.new_start + 1, change.new_end
        if change.new_start == change.new_end:
            count = change.end - change.start
            said.append(f"{count} line{'s' if count > 1 else ''} removed after line {change.new_start}")
        else:
            verb = "added" if change.start == change.end else "changed"
            said.append(f"line {first} {verb}" if first == last else f"lines {first}-{last} {verb}")
    more = [f"and {pluralize(len(said) - MAX_SAID, 'more place')}"] if len(said) > MAX_SAID else []
    return ", ".join(said[:MAX_SAID] + more)


def changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """A shortest list of changes between two lists of lines, in order."""
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return []
    if len(middle_old) * len(middle_new) > MAX_COMPARISONS:
        return [LineChange(head, len(old) - tail, head, len(new) - tail)]
    return list(_joined_opcodes(middle_old, middle_new, head))


def _within(old: Sequence[str], new: Sequence[str], stretches: Sequence[LineChange]) -> Iterator[LineChange]:
    for start, end, new_start, new_end in stretches:
        for change in changes(old[start:end], new[new_start:new_end]):
            yield LineChange(
                change.start + start, change.end + start, change.new_start + new_start, change.new_end + new_start
            )


def _joined_opcodes(old: Sequence[str], new: Sequence[str], offset: int) -> Iterator[LineChange]:
    """rapidfuzz tells insertions from deletions; side by side they are one change here."""
    open_change: LineChange | None = None
    for code in LCSseq.opcodes(old, new):
        if code.tag == "equal":
            if open_change:
                yield open_change
            open_change = None
            continue
        end, new_end = code.src_end + offset, code.dest_end + offset
        start = open_change or LineChange(code.src_start + offset, 0, code.dest_start + offset, 0)
        open_change = LineChange(start.start, end, start.new_start, new_end)
    if open_change:
        yield open_change


def _common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """Whole stretches are compared first: that is many times faster than line by line."""
    shorter, index = min(len(left), len(right)), 0
    while index + STRETCH <= shorter and left[index : index + STRETCH] == right[index : index + STRETCH]:
        index += STRETCH
    while index < shorter and left[index] == right[index]:
        index += 1
    return index


def _diff_lines(text: str) -> list[str]:
    """The lines without their line feeds; a last one that has none says so, as in a diff."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + _UNCLOSED] if last else lines


def _changed_lines(old: Sequence[str], after: str, stretches: Sequence[LineChange]) -> list[str]:
    """The lines of ``after``; outside of the stretches those of ``old``, which need not be split once more."""
    lines: list[str] = []
    position = offset = 0
    for start, end, new_start, new_end in stretches:
        kept = old[position:start]
        offset += sum(map(len, kept)) + len(kept)
        stop = offset
        for _ in range(new_start, new_end):
            stop = after.find("\n", stop) + 1 or len(after)
        lines += (*kept, *_diff_lines(after[offset:stop]))
        position, offset = end, stop
    return [*lines, *old[position:]]


def _groups(changed: Iterable[LineChange]) -> Iterator[list[LineChange]]:
    """Changes whose context would touch share a hunk."""
    group: list[LineChange] = []
    for change in changed:
        if group and change.start - group[-1].end > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(old: Sequence[str], new: Sequence[str], group: Sequence[LineChange]) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(CONTEXT_LINES, first.start)
    trail = min(CONTEXT_LINES, len(old) - last.end)
    old_range = _range(first.start - lead, last.end + trail)
    new_range = _range(first.new_start - lead, last.new_end + trail)
    yield f"@@ -{old_range} +{new_range} @@\n"
    position = first.start - lead
    for change in group:
        yield from _marked(" ", old[position : change.start])
        yield from _marked("-", old[change.start : change.end])
        yield from _marked("+", new[change.new_start : change.new_end])
        position = change.end
    yield from _marked(" ", old[position : last.end + trail])


def _range(start: int, end: int) -> str:
    """``first line,count`` as diff writes it: the line before when there is no line."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}\n"
