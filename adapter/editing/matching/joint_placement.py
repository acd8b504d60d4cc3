"""Decide where to apply a patch that matches several places, using the other patches of the call.

A diff's hunks are in file order, equal patches apply to different places, and all line numbers in a call are off by the
same amount. A patch that could still be applied to two places remains ambiguous.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TypeAlias

from adapter.editing.resolved_edits import Rejection, Resolution
from adapter.tools.operations import Hunk, Patch

ROUNDS = 3
"""Number of passes. Each pass benefits from the places that the previous pass has ruled out."""

_Places: TypeAlias = dict[int, Sequence[int]]
"""The possible first lines (0-based, ascending) of each patch that matches the document."""


def place_jointly(patches: Sequence[Patch], resolutions: Sequence[Resolution]) -> dict[int, int | None]:
    """Return the 0-based first line of each patch that must be resolved again.

    The line is None if the patch's own line number contradicts the other patches, and must therefore be ignored.
    """
    if not any(map(_list_rivals, resolutions)):
        return {}
    pairs = enumerate(zip(patches, resolutions, strict=True))
    places: _Places = {index: some for index, pair in pairs if (some := _list_possible_places(*pair))}
    numbers = {index: line - 1 for index in places if (line := patches[index].start_line) is not None}
    chains = list(_find_chains(patches, places))
    contradicted: set[int] = set()
    for _ in range(ROUNDS):
        for chain in chains:
            _narrow(places, chain)
        contradicted = _apply_offsets(places, numbers)
    moved: dict[int, int | None] = {}
    for index, possible in places.items():
        chosen = _find_chosen_line(resolutions[index])
        if len(possible) == 1 and possible[0] != chosen:
            moved[index] = possible[0]
        elif len(possible) > 1 and chosen is not None and (chosen not in possible or index in contradicted):
            moved[index] = None
    return moved


def _list_rivals(resolution: Resolution) -> Sequence[int]:
    return resolution.places if isinstance(resolution, Rejection) else resolution[0].places


def _find_chosen_line(resolution: Resolution) -> int | None:
    return None if isinstance(resolution, Rejection) else resolution[0].match.first_line


def _list_possible_places(patch: Patch, resolution: Resolution) -> Sequence[int]:
    """Return the possible 0-based lines of a patch. If the patch was resolved without a line number, return only the
    matched line."""
    if isinstance(resolution, Rejection) or (resolution[0].places and patch.start_line is not None):
        return sorted(set(_list_rivals(resolution)))
    return [resolution[0].match.first_line] if patch.old_text and len(resolution) == 1 else []


def _find_chains(patches: Sequence[Patch], places: _Places) -> Iterator[list[int]]:
    """Yield groups of patches that are applied in file order: the hunks of a diff, and equal patches."""
    equal: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index in places:
        equal[patches[index].old_text, patches[index].new_text].append(index)
    yield from (group for group in equal.values() if len(group) > 1)
    yield [index for index in places if isinstance(patch := patches[index], Hunk) and patch.in_order]


def _narrow(places: _Places, chain: Sequence[int]) -> None:
    """Keep only the places that allow the patches in ``chain`` to be in ascending order."""
    earliest = _choose_first_ascending([places[index] for index in chain])
    latest = _choose_first_ascending([[-line for line in reversed(places[index])] for index in reversed(chain)])
    if len(earliest) < len(chain):
        return
    for index, above, below in zip(chain, [-1, *earliest], [*(-line for line in latest[-2::-1]), inf], strict=False):
        places[index] = [line for line in places[index] if above < line < below]


def _choose_first_ascending(places: Sequence[Sequence[int]]) -> list[int]:
    """Choose the first place of each patch that is after the place chosen for the previous patch. Stop at a patch that
    has no such place."""
    ascending: list[int] = []
    for possible in places:
        line = next((line for line in possible if not ascending or line > ascending[-1]), None)
        if line is None:
            break
        ascending.append(line)
    return ascending


def _apply_offsets(places: _Places, numbers: Mapping[int, int]) -> set[int]:
    """Keep only the place that fits the line number of its patch, given the offset that the line numbers share. Return
    the patches with several fitting places."""
    offsets = _find_shared_offsets(places, numbers)
    contradicted = set[int]()
    for index, number in numbers.items():
        hits = [line for line in places[index] if line - number in offsets]
        if len(hits) == 1:
            places[index] = hits
        elif hits and len(places[index]) > 1:
            contradicted.add(index)
    return contradicted


def _find_shared_offsets(places: _Places, numbers: Mapping[int, int]) -> set[int]:
    """Return the offsets by which the patches' line numbers may be wrong. 0 is always one of them.

    The other is the only offset that fits all patches or, if there is none, the only one that fits all patches with a
    single possible place.
    """
    possible = [{line - number for line in places[index]} for index, number in numbers.items()]
    shared = set[int].intersection(*possible) if possible else set[int]()
    if 0 in shared or len(shared) != 1 or len(possible) < 2:
        certain = {next(iter(some)) for some in possible if len(some) == 1}
        return {0} if 0 in shared or len(certain) != 1 else {0} | certain
    return {0} | shared
