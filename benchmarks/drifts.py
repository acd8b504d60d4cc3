"""Apply edits of an older version of a file to a newer one with different context.

The position of the changed lines in the new version counts as known only if all comparisons agree: shortest differences
from both ends, and unique common lines, with and without whitespace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from rapidfuzz.distance import LCSseq

from adapter.core.text.diffs import LineChange, find_changes
from adapter.editing.matching.normalize import normalize_line
from benchmarks.corruptions import Case, Edit, added_lines, case_of, is_telling

Stands: TypeAlias = dict[int, int]
"""Maps the index of each unchanged old line to its index in the new version."""
NEAR = 5
"""Maximum distance between the shown lines and their new position."""
Compare: TypeAlias = Callable[[Sequence[str], Sequence[str]], Stands]


def real_drift(random: Random, source: str, old: Sequence[str], new: Sequence[str]) -> Case | None:
    if not 30 <= len(old) <= 1500 or len(new) > 2000:
        return None
    hunks = find_changes(old, new)
    stands = _standing(hunks, len(old))
    for _ in range(20):
        hunk = random.choice(hunks)
        low, high = max(6, hunk.start - 5), min(hunk.end + 5, len(old) - 8)
        size = random.choice([0, 1, 1, 2])
        if low >= high:
            continue
        start = random.randrange(low, high)
        sort = random.choice(["change", "change", "delete"]) if size else "insert"
        added = tuple(added_lines(random, sort, old, start, old[start : start + size]))
        before, after = random.randint(2, 5), random.randint(2, 5)
        edit = Edit(source, tuple(old), start, start + size, added, before, after)
        truth = _carried_over(edit, new, stands)
        if truth is not None:
            case = replace(case_of(edit, "drifted, real", edit.old, edit.new), text="\n".join(new), expected=truth)
            others = {_made(edit, new, _place(edit, compare(old, new))) for compare in WAYS}
            others |= {_made(edit, new, place) for place in _twins(edit, new, _place(edit, stands))}
            return case if others == {truth} else replace(case, also=(truth, *filter(None, others - {truth})))
    return None


def _standing(hunks: Sequence[LineChange], count: int) -> Stands:
    stands: Stands = {}
    position = shift = 0
    for start, end, _, new_end in [*hunks, (count, count, 0, 0)]:
        stands |= {line: line + shift for line in range(position, start)}
        position, shift = end, new_end - end
    return stands


def _carried_over(edit: Edit, new: Sequence[str], stands: Stands) -> str | None:
    """Return the new version with the edit applied, if the edit has drifted and has one right result, or None."""
    place = _place(edit, stands)
    text = "\n".join(new)
    kept = [line for line in edit.context if line in stands and edit.lines[line].strip()]
    is_new = list(edit.added) != edit.removed and (not edit.added or "\n".join(edit.added) not in text)
    is_drifted = "\n".join(edit.old) not in text and any(
        line not in stands and edit.lines[line].strip() for line in edit.context
    )
    if not (is_new and is_drifted and len(kept) >= 2 and is_telling(edit)):
        return None
    if not all(edit.lines[line].strip() for line in _touched(edit)) or stands_as_block(new, edit.old):
        return None
    return _made(edit, new, place)


def _touched(edit: Edit) -> range:
    return range(edit.start, edit.stop) if edit.removed else range(edit.start - 1, edit.start + 1)


def _place(edit: Edit, stands: Stands) -> int | None:
    places = [stands.get(line, -1) for line in _touched(edit)]
    return places[0] if places[0] >= 0 and places == list(range(places[0], places[0] + len(places))) else None


def _made(edit: Edit, new: Sequence[str], place: int | None) -> str | None:
    if place is None:
        return None
    first = place + (not edit.removed)
    return "\n".join([*new[:first], *edit.added, *new[first + len(edit.removed) :]])


def _twins(edit: Edit, new: Sequence[str], place: int | None) -> Iterator[int]:
    touched = [edit.lines[line] for line in _touched(edit)]
    shown = [key for line in edit.old if (key := normalize_line(line))]

    def alike(at: int) -> float:
        near = new[max(0, at - edit.before - NEAR) : at + len(touched) + edit.after + NEAR]
        return LCSseq.similarity(shown, [key for line in near if (key := normalize_line(line))])

    for at in range(len(new) - len(touched) + 1):
        is_there = place not in (None, at) and list(new[at : at + len(touched)]) == touched
        if is_there and place is not None and alike(at) >= alike(place):
            yield at


def stands_as_block(lines: Sequence[str], block: Sequence[str]) -> bool:
    squeezed = ["\n".join("".join(line.split()) for line in part if line.strip()) for part in (lines, block)]
    return squeezed[1] in squeezed[0]


# -------------------------------------------------------------------- ways to compare


def _shortest(old: Sequence[str], new: Sequence[str]) -> Stands:
    equal = (code for code in LCSseq.opcodes(old, new) if code.tag == "equal")
    return {code.src_start + at: code.dest_start + at for code in equal for at in range(code.src_end - code.src_start)}


def _from_the_end(old: Sequence[str], new: Sequence[str]) -> Stands:
    found = _shortest(old[::-1], new[::-1])
    return {len(old) - 1 - left: len(new) - 1 - right for left, right in found.items()}


def _between_unique(old: Sequence[str], new: Sequence[str]) -> Stands:
    counts = Counter(old), Counter(new)
    unique = {line for line in counts[0] if counts[0][line] == 1 == counts[1][line]}
    rows, places = ([at for at, line in enumerate(lines) if line in unique] for lines in (old, new))
    fixed = _shortest([old[row] for row in rows], [new[place] for place in places])
    if not fixed:
        return _shortest(old, new)
    stands: Stands = {}
    left = right = 0
    for row, place in [*((rows[a], places[b]) for a, b in sorted(fixed.items())), (len(old), len(new))]:
        between = _between_unique(old[left:row], new[right:place])
        stands |= {left + a: right + b for a, b in between.items()}
        stands |= {row: place} if row < len(old) else {}
        left, right = row + 1, place + 1
    return stands


def _without_blanks(compare: Compare) -> Compare:
    def compared(old: Sequence[str], new: Sequence[str]) -> Stands:
        left, right = ([at for at, line in enumerate(lines) if line.strip()] for lines in (old, new))
        found = compare([normalize_line(old[at]) for at in left], [normalize_line(new[at]) for at in right])
        return {left[a]: right[b] for a, b in found.items()}

    return compared


_WAYS: tuple[Compare, ...] = (_shortest, _from_the_end, _between_unique)
WAYS: tuple[Compare, ...] = (*_WAYS, *map(_without_blanks, _WAYS))
