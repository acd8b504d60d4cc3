"""Locate a hunk by the lines named above it, by the end of the file, or by the division of its block that fits.

These become line hints for `locator`, or a rejection where the file does not agree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from adapter.editing.document import format_line_list, normalize_newlines
from adapter.editing.matching.document_index import DocumentIndex, occurrences
from adapter.editing.matching.locator import locate
from adapter.editing.matching.normalize import normalized_line
from adapter.editing.matching.strategies import TextMatch, are_whole_lines, split_view_lines
from adapter.editing.rejection import Rejection, Resolution, ResolvedEdit
from adapter.tools.operations import Hunk, ParameterNames


def locate_hunk(search: DocumentIndex, hunk: Hunk, names: ParameterNames) -> Resolution:
    """Return the edits that ``hunk`` makes, or why it is rejected."""
    if not hunk.others:
        return _locate(search, hunk, names)
    readings = [replace(hunk, others=()), *(replace(other, exact=hunk.exact) for other in hunk.others)]
    if not hunk.old_text and not search.document.view.strip():
        return _locate(search, readings[0], names)
    readings = [reading for reading in readings if reading.old_text]
    if exact := [reading for reading in readings if _is_verbatim(search, reading)]:
        # A verbatim match up to a later divider is no coincidence.
        return _locate(search, max(exact, key=lambda reading: len(reading.old_text)), names)
    found = [_locate(search, reading, names) for reading in readings]
    fitting = [edits for edits in found if not isinstance(edits, Rejection)]
    if len(fitting) == 1:
        return fitting[0]
    if found and not fitting:
        return found[-1]
    return Rejection(
        "ambiguous",
        "the block has several ======= lines, and it cannot be told which one divides it: "
        f"give {names.old_text} and {names.new_text} as two texts, or copy the old lines exactly",
    )


def _is_verbatim(search: DocumentIndex, hunk: Hunk) -> bool:
    """Whether the file has the old lines as they were written."""
    view, wanted = search.document.view, normalize_newlines(hunk.old_text).removesuffix("\n")
    return any(are_whole_lines(view, start, wanted) for start in occurrences(view, wanted))


def _locate(search: DocumentIndex, hunk: Hunk, names: ParameterNames) -> Resolution:
    if not hunk.old_text:
        return _locate_insertion(search, hunk, names)
    if hunk.final_newline is not None and normalize_newlines(hunk.old_text) == normalize_newlines(hunk.new_text):
        return _change_final_newline(search, hunk)
    document, hinted = search.document, hunk
    match _line_below(search, hunk) if hunk.below else None:
        case Rejection() as rejection:
            return rejection
        case int(line):
            hinted = replace(hunk, start_line=line + 1)
    if hunk.at_end and hinted.start_line is None:
        hinted = replace(hinted, end_line=document.line_count)
    if document.lines[-1] and hunk.old_text.strip("\n") and not hunk.old_text.endswith("\n\n"):
        # The last line of this file has no end, and the hunk, which ends with a line that has text, may be about it.
        new = hunk.new_text.removesuffix("\n") if hunk.exact else hunk.new_text
        hinted = replace(hinted, old_text=hunk.old_text.removesuffix("\n"), new_text=new)
    match locate(search, hinted, names, "refuse"):
        case Rejection() as rejection:
            return rejection
        case edits:
            line = edits[0].match.first_line
    if hunk.below and hunk.start_line is None and line < min(_anchors(search, hunk.below)):
        return Rejection("not found", f"the lines that change are at line {line + 1}, above {_named(hunk)}")
    return (*edits[:-1], _with_final_newline(search, edits[-1], hunk))


# --------------------------------------------------------------------------- below


def _line_below(search: DocumentIndex, hunk: Hunk) -> int | Rejection | None:
    """The line (0-based) at which the hunk must be, None to leave it to its other hints, or the reason against it."""
    anchors = _anchors(search, hunk.below)
    places = [first for first, _ in search.find_lines(_keys(hunk.old_text))]
    is_soft = hunk.start_line is not None
    if is_soft and (len(places) < 2 or hunk.start_line in [place + 1 for place in places]):
        return None
    nearest = _nearest_below(anchors, places)
    if len(nearest) == 1:
        return nearest[0]
    if is_soft:
        return None
    if not anchors:
        message = f"{_named(hunk)} is not in the file: write a line after @@ as it stands there"
    elif nearest:
        message = f"{_named(hunk)} stands at {_listed(anchors)}, and the hunk fits below several"
    elif places:
        message = f"the lines that change are at {_listed(places)}, above {_named(hunk)}"
    else:
        return anchors[0] if len(anchors) == 1 else None
    return Rejection("ambiguous" if nearest else "not found", message)


def _nearest_below(anchors: Sequence[int], places: Sequence[int]) -> list[int]:
    """For each anchor the first place from it on and above the next anchor."""
    nearest: dict[int, int] = {}
    for place in places:
        above = bisect_right(anchors, place) - 1
        if above >= 0:
            nearest.setdefault(above, place)
    return list(nearest.values())


def _anchors(search: DocumentIndex, below: Sequence[str]) -> list[int]:
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


def _lines_like(search: DocumentIndex, name: str) -> list[int]:
    """Where a line stands; where none is equal, those that begin with it or, for want of those, hold it."""
    key = normalized_line(name)
    equal = list(search.lines_with_key(key))
    if equal or len(key) < 3:
        return equal
    stem = key.rstrip(":{( ")
    beginning = [number for number, line in enumerate(search.keys) if line.startswith(stem)]
    return beginning or [number for number, line in enumerate(search.keys) if stem in line]


def _keys(text: str) -> list[str]:
    return [key for line in split_view_lines(normalize_newlines(text)) if (key := normalized_line(line))]


def _named(hunk: Hunk) -> str:
    return f"'@@ {hunk.below[-1][:80]}'"


def _listed(lines: Sequence[int]) -> str:
    return format_line_list([line + 1 for line in lines])


# ------------------------------------------------------------- insertions and ends


def _locate_insertion(search: DocumentIndex, hunk: Hunk, names: ParameterNames) -> Resolution:
    """Lines without old ones: below a named line, before a line, at the end, or into an empty file."""
    count = search.document.line_count
    at = count + 1 if hunk.at_end else hunk.start_line
    if hunk.below:
        anchors = _anchors(search, hunk.below)
        if len(anchors) != 1:
            where = f"at {_listed(anchors)}" if anchors else "nowhere"
            message = f"{_named(hunk)} stands {where} in the file; show the lines above and below what is added"
            return Rejection("ambiguous" if anchors else "not found", message)
        at = anchors[0] + 2
    if at is None or not search.document.view:
        found = locate(search, hunk, names, "create")
    else:
        found = locate(search, replace(hunk, start_line=at), names, "insert")
    match found:
        case Rejection() as rejection:
            return rejection
        case edits:
            return edits if at is not None and at <= count else (_with_final_newline(search, edits[0], hunk),)


def _change_final_newline(search: DocumentIndex, hunk: Hunk) -> Resolution:
    """A hunk that changes nothing but how the file ends."""
    document = search.document
    found = search.find_lines(_keys(hunk.old_text))
    if not found or found[-1][1] != search.nonblank_lines[-1]:
        message = f"{hunk.old_text[:80]!r} is not the end of the file, whose last line end is to change"
        return Rejection("not found", message)
    if hunk.final_newline == (not document.lines[-1]):
        how = "with" if hunk.final_newline else "without"
        return Rejection("no change", f"no change: the file ends {how} a line end already")
    start = len(document.view) if hunk.final_newline else len(document.view) - 1
    end = document.new_end(len(document.lines) - 1) if hunk.final_newline else ""
    line = document.line_count - 1
    return (ResolvedEdit(TextMatch(start, len(document.view), line, line, lambda: end, "exact"), end),)


def _with_final_newline(search: DocumentIndex, edit: ResolvedEdit, hunk: Hunk) -> ResolvedEdit:
    """The edit with the line end that the file is to end with, if it reaches that end."""
    document, match, final_newline = search.document, edit.match, hunk.final_newline
    has_end = not document.lines[-1]
    if final_newline is None or match.last_line < document.line_count - 1 or final_newline == has_end:
        return edit
    if not hunk.new_text:
        return edit  # the line above, which is the last one now, has its end
    end = document.new_end(match.last_line)
    if final_newline:
        return replace(edit, replacement=edit.replacement + end)
    match = replace(match, end=len(document.view))
    return replace(edit, match=match, replacement=edit.replacement.removesuffix(end))
