"""A whole file that a model wrote again, taken as the changes it makes.

A model that gives a piece of a file for the whole, or forgets a part, would
delete the rest. So a rewrite counts only where it keeps most of the file and
both its ends. Where a line stands for what is left out, each piece must begin
and end with lines that the file has once, in the same order, and may not leave out more
lines than it brings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from adapter.core.text.diffs import LineChange, changes
from adapter.editing.document import TextDocument, format_line_range, normalize_newlines
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.strategies import TextMatch, split_view_lines
from adapter.editing.rejection import Rejection, Resolution, ResolvedEdit
from adapter.editing.repairs.interpretations import is_omission_comment
from adapter.editing.repairs.reindent import indent_of
from adapter.editing.splice import build_exact_replacement
from adapter.tools.operations import ParameterNames, WholeFileRewrite

MIN_KEPT = 0.5
"""Of the lines of a file, blank ones aside, that a rewrite must keep."""
_ADVICE = "write the whole file with the tool for that, or change only the lines that are meant"


def locate_whole_file(search: DocumentIndex, patch: WholeFileRewrite, names: ParameterNames) -> Resolution:
    """Return the edits that turn the file into ``patch.new_text``, or why that cannot be meant."""
    document, new = search.document, split_view_lines(normalize_newlines(patch.new_text))
    old = document.lines[: document.line_count]
    if not any(line.strip() for line in old):
        left_out = next(filter(is_omission_comment, new), None)
        if left_out is not None:
            return Rejection("invalid", f"{left_out.strip()[:80]!r} stands for lines that stay, but the file has none")
        return (_edit(document, LineChange(0, len(old), 0, len(new)), new),)
    pieces = list(_pieces(new))
    if len(pieces) == 1:
        changed = changes(old, new)
        reason = _unlikely(old, changed)
    else:
        changed, reason = _filled_in(old, new, pieces)
    if reason:
        return Rejection("invalid", f"{reason}; {_ADVICE}")
    if not changed:
        return Rejection("no change", f"no change: the file already reads like {names.new_text}")
    return tuple(_edit(document, change, new) for change in changed)


def _unlikely(old: Sequence[str], changed: Sequence[LineChange]) -> str:
    """Why the text that makes these changes may be a piece of the file and not the file."""
    gone = [index for change in changed for index in range(change.start, change.end) if old[index].strip()]
    filled = sum(bool(line.strip()) for line in old)
    if filled - len(gone) < MIN_KEPT * filled:
        return f"the text given for the whole file has {filled - len(gone)} of its {filled} lines"
    span = _filled_span(old)
    for change in changed:
        has_edge = change.start <= span.start < change.end or change.start < span.stop <= change.end
        if change.new_start == change.new_end and has_edge:
            return f"the text given for the whole file leaves out {format_line_range(change.start + 1, change.end)}, an end of it"
    return ""


# ----------------------------------------------------------------------------- pieces


def _pieces(new: Sequence[str]) -> Iterator[list[str]]:
    """The lines between those that stand for others."""
    piece: list[str] = []
    for line in new:
        if is_omission_comment(line):
            yield piece
            piece = []
        else:
            piece.append(line)
    yield piece


def _filled_in(old: Sequence[str], new: list[str], pieces: Sequence[list[str]]) -> tuple[list[LineChange], str]:
    """The changes that the pieces make, with ``new`` filled with their lines; or why a piece has no sure place."""
    found: list[LineChange] = []
    places: dict[str, list[int]] = {}
    for index, line in enumerate(old):
        places.setdefault(line.rstrip(), []).append(index)
    new.clear()
    position = 0
    for number, piece in enumerate(pieces):
        span = _filled_span(piece)
        lines = piece[span.start : span.stop]
        if not lines:
            continue
        start = _first(old, places, lines[0], position, is_top=number == 0)
        stop = None if start is None else _last(old, places, lines, start, is_bottom=number == len(pieces) - 1)
        if start is None or stop is None:
            line = lines[0] if start is None else lines[-1]
            return [], f"{line.strip()[:80]!r}, an end of a piece, is not in the file just once and in that order"
        for change in changes(old[start:stop], lines):
            at = len(new)
            new += lines[change.new_start : change.new_end]
            found.append(LineChange(start + change.start, start + change.end, at, len(new)))
        gone = sum(map(bool, map(str.strip, old[start:stop]))) - sum(map(bool, map(str.strip, lines)))
        if gone > 0:
            return [], f"lines {start + 1}-{stop} would lose {gone} more lines than are written for them"
        position = stop
    return found, ""


def _filled_span(lines: Sequence[str]) -> range:
    """The lines from the first to the last that is not blank."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    return range(filled[0], filled[-1] + 1) if filled else range(0)


_Places: TypeAlias = Mapping[str, Sequence[int]]
"""The indexes of each line, blanks at its end aside."""


def _first(old: Sequence[str], places: _Places, line: str, position: int, is_top: bool) -> int | None:
    """Where a piece begins: at a line that the file has once; at its first line when nothing is left out above."""
    if is_top:
        top = _filled_span(old).start
        return top if old[top].rstrip() == line.rstrip() else None
    found = places.get(line.rstrip(), ())
    return found[0] if len(found) == 1 and found[0] >= position else None


def _last(old: Sequence[str], places: _Places, lines: Sequence[str], start: int, is_bottom: bool) -> int | None:
    """Past the line that ends a piece: one that the file has once, or the one that closes the block begun at
    ``start``, where the piece is that block."""
    last = lines[-1].rstrip()
    if is_bottom:
        end = _filled_span(old).stop
        return end if old[end - 1].rstrip() == last else None
    found = places.get(last, ())
    if len(found) == 1:
        return found[0] + 1 if found[0] >= start else None
    after = bisect_right(found, start)
    return found[after] + 1 if _closes(lines) and after < len(found) else None


def _closes(lines: Sequence[str]) -> bool:
    """Whether the last line is the first after the first line that is not deeper, and a closing one."""
    last = lines[-1].strip()
    level = len(indent_of(lines[0]))
    inner = [len(indent_of(line)) for line in lines[1:-1] if line.strip()]
    is_closing = last[:1] in ("}", ")", "]") or last in ("end", "end;", "fi", "done")
    return is_closing and len(lines) > 1 and len(indent_of(lines[-1])) == level and all(one > level for one in inner)


def _edit(document: TextDocument, change: LineChange, new: Sequence[str]) -> ResolvedEdit:
    """The lines of ``change`` with their line ends, or the place before a line where some are added."""
    added = "".join(line + "\n" for line in new[change.new_start : change.new_end])
    start = document.view_offset(change.start) if change.start < len(document.lines) else len(document.view)
    is_last = change.end >= len(document.lines)
    end = len(document.view) if is_last else document.view_offset(change.end)
    if is_last:  # the file ends without a line end and goes on doing so
        if change.start == change.end:
            added = "\n" + added
        added = added.removesuffix("\n")
        if not added and start:
            start -= 1
    first, last = min(change.start, len(document.lines) - 1), max(change.start, change.end - 1)
    written = partial(build_exact_replacement, document, document.view[start:end], added, first)
    place = TextMatch(start, end, first, min(last, len(document.lines) - 1), written, "exact")
    return ResolvedEdit(place, written())
