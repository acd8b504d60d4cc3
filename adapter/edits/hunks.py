"""Where a patch of a notation of lines goes: by what stands above it, by the file's end, by the reading that fits.

What its notation says beside the two texts becomes a line hint, or a refusal
where the file does not agree. `locating` does the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from adapter.edits.document import line_list, view_of
from adapter.edits.folding import line_key
from adapter.edits.locating import Spot, locate
from adapter.edits.search import Search, occurrences
from adapter.edits.stages import Place, are_whole_lines, lines_of
from adapter.operations import Hunk, PatchNames


def located_hunk(search: Search, hunk: Hunk, names: PatchNames) -> list[Spot] | str:
    """The spots that ``hunk`` changes, or why there are none."""
    if not hunk.others:
        return _located(search, hunk, names)
    readings = [replace(hunk, others=()), *(replace(other, exact=hunk.exact) for other in hunk.others)]
    if not hunk.old_text and not search.document.view.strip():
        return _located(search, readings[0], names)
    exact = [reading for reading in readings if reading.old_text and _stands(search, reading)]
    if exact:
        # What stands there up to a later divider does not stand there by chance.
        return _located(search, max(exact, key=lambda reading: len(reading.old_text)), names)
    found = [_located(search, reading, names) for reading in readings if reading.old_text]
    fitting = [spots for spots in found if not isinstance(spots, str)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting or not found:
        return (
            "the block has several ======= lines, and it cannot be told which one divides it: "
            f"give {names.old_text} and {names.new_text} as two texts, or copy the old lines exactly"
        )
    return found[-1]


def _stands(search: Search, hunk: Hunk) -> bool:
    """Whether the old lines stand in the file as they were written."""
    view, wanted = search.document.view, view_of(hunk.old_text).removesuffix("\n")
    return any(are_whole_lines(view, start, wanted) for start in occurrences(view, wanted))


def _located(search: Search, hunk: Hunk, names: PatchNames) -> list[Spot] | str:
    if not hunk.old_text:
        return _inserted(search, hunk, names)
    if hunk.final_newline is not None and view_of(hunk.old_text) == view_of(hunk.new_text):
        return _only_ended(search, hunk)
    below = _below(search, hunk) if hunk.below else None
    if isinstance(below, str):
        return below
    document = search.document
    hinted = hunk if below is None else replace(hunk, start_line=below + 1)
    if hunk.at_end and hinted.start_line is None:
        hinted = replace(hinted, end_line=document.line_count)
    if document.lines[-1] and hunk.old_text.strip("\n") and not hunk.old_text.endswith("\n\n"):
        # The last line of this file has no end, and the hunk, which ends with a line that has text, may be about it.
        new = hunk.new_text.removesuffix("\n") if hunk.exact else hunk.new_text
        hinted = replace(hinted, old_text=hunk.old_text.removesuffix("\n"), new_text=new)
    spots = locate(search, hinted, names, "refuse")
    if isinstance(spots, str):
        return spots
    if hunk.below and hunk.start_line is None and spots[0].place.first_line < min(_anchors(search, hunk.below)):
        return f"the lines that change are at line {spots[0].place.first_line + 1}, above {_named(hunk)}"
    return [*spots[:-1], _ended(search, spots[-1], hunk)]


# --------------------------------------------------------------------------- below


def _below(search: Search, hunk: Hunk) -> int | str | None:
    """The line (0-based) at which the hunk must be, None to leave it to its other hints, or the reason against it."""
    anchors = _anchors(search, hunk.below)
    places = [first for first, _ in search.find_lines(_keys(hunk.old_text))]
    is_soft = hunk.start_line is not None
    if is_soft and (len(places) < 2 or hunk.start_line in [place + 1 for place in places]):
        return None
    if not anchors:
        if is_soft:
            return None
        return f"{_named(hunk)} is not in the file: write a line after @@ as it stands there"
    nearest = _nearest_below(anchors, places)
    if len(nearest) == 1:
        return nearest[0]
    if is_soft:
        return None
    if nearest:
        return f"{_named(hunk)} stands at {line_list([line + 1 for line in anchors])}, and the hunk fits below several"
    if places:
        return f"the lines that change are at {line_list([line + 1 for line in places])}, above {_named(hunk)}"
    return anchors[0] if len(anchors) == 1 else None


def _nearest_below(anchors: Sequence[int], places: Sequence[int]) -> list[int]:
    """For each anchor the first place from it on and above the next anchor."""
    nearest: dict[int, int] = {}
    for place in places:
        above = bisect_right(anchors, place) - 1
        if above >= 0:
            nearest.setdefault(above, place)
    return list(nearest.values())


def _anchors(search: Search, below: Sequence[str]) -> list[int]:
    """The lines (0-based) that the innermost of ``below`` may be."""
    lines: list[int] = []
    for depth, name in enumerate(below):
        found = _lines_like(search, name)
        if not depth:
            lines = found
            continue
        below_each = (bisect_right(found, outer) for outer in lines)
        lines = sorted({found[index] for index in below_each if index < len(found)})
    return lines


def _lines_like(search: Search, name: str) -> list[int]:
    """Where a line stands; where none is equal, those that begin with it or, for want of those, hold it."""
    key = line_key(name)
    equal = list(search.places(key))
    if equal or len(key) < 3:
        return equal
    stem = key.rstrip(":{( ")
    beginning = [number for number, line in enumerate(search.keys) if line.startswith(stem)]
    return beginning or [number for number, line in enumerate(search.keys) if stem in line]


def _keys(text: str) -> list[str]:
    return [key for line in lines_of(view_of(text)) if (key := line_key(line))]


def _named(hunk: Hunk) -> str:
    return f"'@@ {hunk.below[-1][:80]}'"


# ------------------------------------------------------------- insertions and ends


def _inserted(search: Search, hunk: Hunk, names: PatchNames) -> list[Spot] | str:
    """Lines without old ones: below a named line, before a line, at the end, or into an empty file."""
    count = search.document.line_count
    if hunk.below:
        anchors = _anchors(search, hunk.below)
        if len(anchors) != 1:
            where = f"at {line_list([line + 1 for line in anchors])}" if anchors else "nowhere"
            return f"{_named(hunk)} stands {where} in the file; show the lines above and below what is added"
        at: int | None = anchors[0] + 2
    else:
        at = count + 1 if hunk.at_end else hunk.start_line
    if at is None or not search.document.view:
        spots = locate(search, hunk, names, "create")
    else:
        spots = locate(search, replace(hunk, start_line=at), names, "insert")
    if isinstance(spots, str) or (at is not None and at <= count):
        return spots
    return [_ended(search, spots[0], hunk)]


def _only_ended(search: Search, hunk: Hunk) -> list[Spot] | str:
    """A hunk that changes nothing but how the file ends."""
    document = search.document
    wanted = _keys(hunk.old_text)
    if not wanted or search.find_lines(wanted)[-1:] != [_last_lines(search, len(wanted))]:
        return f"{hunk.old_text[:80]!r} is not the end of the file, whose last line end is to change"
    if hunk.final_newline == (not document.lines[-1]):
        return f"no change: the file ends {'with' if hunk.final_newline else 'without'} a line end already"
    start = len(document.view) if hunk.final_newline else len(document.view) - 1
    end = document.new_end(len(document.lines) - 1) if hunk.final_newline else ""
    line = document.line_count - 1
    return [Spot(Place(start, len(document.view), line, line, lambda: end, "exact"), end, ())]


def _last_lines(search: Search, count: int) -> tuple[int, int]:
    filled = search.filled[-count:]
    return filled[0], filled[-1]


def _ended(search: Search, spot: Spot, hunk: Hunk) -> Spot:
    """The spot with the line end that the file is to end with, if it reaches that end."""
    document, place, final_newline = search.document, spot.place, hunk.final_newline
    has_end = not document.lines[-1]
    if final_newline is None or place.last_line < document.line_count - 1 or final_newline == has_end:
        return spot
    if not hunk.new_text:
        return spot  # the line above, which is the last one now, has its end
    if final_newline:
        return replace(spot, replacement=spot.replacement + document.new_end(place.last_line))
    body = spot.replacement.removesuffix(document.new_end(place.last_line))
    return replace(spot, place=replace(place, end=len(document.view)), replacement=body)
