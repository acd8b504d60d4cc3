"""Locate a hunk by its ``@@`` headers, by the end of the file, or by the only division into old and new text that
matches.

Headers and the end of the file become line hints for `locator`. If they contradict the file, the hunk is rejected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from adapter.editing.document import format_line_indexes, normalize_newlines
from adapter.editing.matching.document_index import DocumentIndex, find_occurrences
from adapter.editing.matching.locator import locate
from adapter.editing.matching.normalize import is_distinctive, list_keys, normalize_line
from adapter.editing.matching.strategies import TextMatch, are_whole_lines, split_view_lines
from adapter.editing.resolved_edits import Rejection, Resolution, ResolvedEdit
from adapter.tools.operations import Hunk, ParameterNames, Patch


def locate_hunk(search: DocumentIndex, hunk: Hunk, names: ParameterNames) -> Resolution:
    """Return the edits of ``hunk``, or its rejection."""
    if hunk.in_order and hunk.others:
        best = max((hunk, *hunk.others), key=partial(_score_known_lines, search))
        hunk = replace(hunk, old_text=best.old_text, new_text=best.new_text, others=())
    if not hunk.others:
        return _locate(search, hunk, names)
    divisions = [replace(hunk, others=()), *(replace(other, exact=hunk.exact) for other in hunk.others)]
    if not hunk.old_text and not search.document.view.strip():
        return _locate(search, divisions[0], names)
    divisions = [division for division in divisions if division.old_text]
    if exact := [division for division in divisions if _is_verbatim(search, division)]:
        # A verbatim match up to a later divider cannot be a coincidence.
        longest = max(exact, key=lambda division: len(division.old_text))
        return _reject_ambiguous_division(names) if _has_divider(longest.new_text) else _locate(search, longest, names)
    resolutions = [_locate(search, division, names) for division in divisions]
    resolved = [edits for edits in resolutions if not isinstance(edits, Rejection)]
    if len(resolved) == 1:
        return resolved[0]
    if resolutions and not resolved:
        return resolutions[-1]
    return _reject_ambiguous_division(names)


def _score_known_lines(search: DocumentIndex, hunk: Hunk) -> int:
    """Return the number of old lines that occur verbatim in the file, minus the number of other old lines."""
    lines = split_view_lines(normalize_newlines(hunk.old_text))
    return sum(1 if line in search.verbatim_lines else -1 for line in lines)


def _reject_ambiguous_division(names: ParameterNames) -> Rejection:
    return Rejection(
        "ambiguous",
        "the block has several ======= lines, and it is unclear which one divides it: "
        f"give {names.old_text} and {names.new_text} as two texts, or copy the old lines exactly",
    )


def _has_divider(text: str) -> bool:
    """Return whether ``text`` has a ``=======`` line that may be a divider: too short to underline the line above."""
    pairs = pairwise(["", *split_view_lines(text)])
    return any(line.startswith("=======") and not line.strip("=") and len(above) > len(line) for above, line in pairs)


def _is_verbatim(search: DocumentIndex, hunk: Hunk) -> bool:
    """Return whether the old text occurs verbatim, as whole lines."""
    view, old_text = search.document.view, normalize_newlines(hunk.old_text).removesuffix("\n")
    return any(are_whole_lines(view, start, old_text) for start in find_occurrences(view, old_text))


def _locate(search: DocumentIndex, hunk: Hunk, names: ParameterNames) -> Resolution:
    if not hunk.old_text:
        return _locate_insertion(search, hunk, names)
    if hunk.final_newline is not None and normalize_newlines(hunk.old_text) == normalize_newlines(hunk.new_text):
        return _change_final_newline(search, hunk)
    document, hinted_hunk = search.document, hunk
    below = _find_line_below(search, hunk) if hunk.below else None
    if isinstance(below, Rejection):
        return below
    if below is not None:
        hinted_hunk = replace(hunk, start_line=below + 1)
    if hunk.at_end and hinted_hunk.start_line is None:
        hinted_hunk = replace(hinted_hunk, end_line=document.line_count)
    if document.lines[-1] and hunk.old_text.strip("\n") and not hunk.old_text.endswith("\n\n"):
        # The file does not end with a newline, and the hunk may change its last line.
        new = hunk.new_text.removesuffix("\n") if hunk.exact else hunk.new_text
        hinted_hunk = replace(hinted_hunk, old_text=hunk.old_text.removesuffix("\n"), new_text=new)
    found = locate(search, hinted_hunk, names, "refuse")
    if isinstance(found, Rejection):
        part = _find_part_of_line(search, hunk) if found.kind == "not found" else None
        return locate(search, part, names, "refuse") if part else found
    line = found[0].match.first_line
    if hunk.below and hunk.start_line is None and line < min(_find_last_headers(search, hunk.below)):
        return Rejection("not found", f"the lines to change are at line {line + 1}, above {_quote_header(hunk)}")
    return (*found[:-1], _with_final_newline(search, found[-1], hunk))


def _find_part_of_line(search: DocumentIndex, hunk: Hunk) -> Patch | None:
    """If a hunk's only old line is distinctive and part of exactly one document line, convert the hunk to a patch
    within that line. Return None for other hunks."""
    old, new = (normalize_newlines(text).removesuffix("\n") for text in (hunk.old_text, hunk.new_text))
    is_part = not hunk.in_order and "\n" not in old + new and search.document.view.count(old) == 1
    return Patch(old, new, hunk.start_line) if is_part and is_distinctive(old) else None


def _find_line_below(search: DocumentIndex, hunk: Hunk) -> int | Rejection | None:
    """Return the 0-based line of a hunk below its headers. Return None if the hunk must be located by its line number
    or by the end of the file."""
    anchors = _find_last_headers(search, hunk.below)
    matches = [first for first, _ in search.find_lines(list_keys(normalize_newlines(hunk.old_text).split("\n")))]
    has_line_number = hunk.start_line is not None
    if has_line_number and (len(matches) < 2 or hunk.start_line in [match + 1 for match in matches]):
        return None
    nearest = _find_nearest_below(anchors, matches)
    if len(nearest) == 1:
        return nearest[0]
    if has_line_number:
        return None
    if not anchors:
        message = f"{_describe_absent_header(search, hunk)}: after @@, copy a line from the file"
    elif nearest:
        where = format_line_indexes(anchors)
        message = f"{_quote_header(hunk)} occurs at {where}, and the hunk matches below several of these"
    elif matches:
        message = f"the lines to change are at {format_line_indexes(matches)}, above {_quote_header(hunk)}"
    else:
        return anchors[0] if len(anchors) == 1 else None
    return Rejection("ambiguous" if nearest else "not found", message)


def _find_nearest_below(anchors: Sequence[int], matches: Sequence[int]) -> list[int]:
    """For each of the ascending lines ``anchors``, return the first of ``matches`` below it and above the next one, if
    there is such a match."""
    nearest: dict[int, int] = {}
    for match in matches:
        above = bisect_right(anchors, match) - 1
        if above >= 0:
            nearest.setdefault(above, match)
    return list(nearest.values())


def _find_last_headers(search: DocumentIndex, below: Sequence[str]) -> list[int]:
    """Return the 0-based lines that match the last of the nested headers ``below``. Above each of them, the other
    headers must match in order."""
    lines: list[int] = []
    for depth, name in enumerate(below):
        found = _find_header_lines(search, name)
        if not depth:
            lines = found
            continue
        below_each = (bisect_right(found, outer) for outer in lines)
        lines = sorted({found[index] for index in below_each if index < len(found)})
    return lines


def _find_header_lines(search: DocumentIndex, name: str) -> list[int]:
    """Return the lines that equal the header ``name`` or, if there are none, start with it or contain it."""
    key = normalize_line(name)
    equal = list(search.find_lines_with_key(key))
    if equal or len(key) < 3:
        return equal
    stem = key.rstrip(":{( ")
    return search.find_lines_containing(stem, at_start=True) or search.find_lines_containing(stem)


def _describe_absent_header(search: DocumentIndex, hunk: Hunk) -> str:
    """Name the first header that does not occur below the previous headers in the file."""
    depth = next(depth for depth in range(1, len(hunk.below) + 1) if not _find_last_headers(search, hunk.below[:depth]))
    below = f" below {_quote_header(hunk, depth - 2)}" if depth > 1 else ""
    return f"{_quote_header(hunk, depth - 1)} is not in the file{below}"


def _quote_header(hunk: Hunk, index: int = -1) -> str:
    return f"'@@ {hunk.below[index][:80]}'"


def _locate_insertion(search: DocumentIndex, hunk: Hunk, names: ParameterNames) -> Resolution:
    """Locate a hunk without old lines: below a header, before a line, at the end of the file, or in an empty file."""
    count = search.document.line_count
    at = count + 1 if hunk.at_end else hunk.start_line
    if hunk.below:
        anchors = _find_last_headers(search, hunk.below)
        if len(anchors) != 1:
            where = f"{_quote_header(hunk)} occurs at {format_line_indexes(anchors)} in the file" if anchors else ""
            message = f"{where or _describe_absent_header(search, hunk)}; show the lines above and below the added ones"
            return Rejection("ambiguous" if anchors else "not found", message)
        at = anchors[0] + 2
    if at is None or not search.document.view:
        found = locate(search, hunk, names, "create")
    else:
        found = locate(search, replace(hunk, start_line=at), names, "insert")
    if isinstance(found, Rejection) or (at is not None and at <= count):
        return found
    return (_with_final_newline(search, found[0], hunk),)


def _change_final_newline(search: DocumentIndex, hunk: Hunk) -> Resolution:
    """Resolve a hunk that only adds or removes the final newline."""
    document = search.document
    spans = search.find_lines(list_keys(normalize_newlines(hunk.old_text).split("\n")))
    if not spans or spans[-1][1] != search.nonblank_lines[-1]:
        message = f"{hunk.old_text[:80]!r} is not the end of the file, so its final newline cannot be changed"
        return Rejection("not found", message)
    if hunk.final_newline == (not document.lines[-1]):
        how = "with" if hunk.final_newline else "without"
        return Rejection("no change", f"no change: the file already ends {how} a newline")
    start = len(document.view) if hunk.final_newline else len(document.view) - 1
    end = document.choose_line_end(len(document.lines) - 1) if hunk.final_newline else ""
    line = document.line_count - 1
    return (ResolvedEdit(TextMatch(start, len(document.view), line, line, lambda: end, "exact"), end),)


def _with_final_newline(search: DocumentIndex, edit: ResolvedEdit, hunk: Hunk) -> ResolvedEdit:
    """Add or remove the final newline if the hunk requires this and the edit reaches the end of the file."""
    document, match, final_newline = search.document, edit.match, hunk.final_newline
    has_end = not document.lines[-1]
    if final_newline is None or match.last_line < document.line_count - 1 or final_newline == has_end:
        return edit
    if not hunk.new_text:
        return edit  # the line above becomes the last one, and has a line end
    end = document.choose_line_end(match.last_line)
    if final_newline:
        return replace(edit, replacement=edit.replacement + end)
    match = replace(match, end=len(document.view))
    return replace(edit, match=match, replacement=edit.replacement.removesuffix(end))
