"""Locate the rewrite of a whole file as a list of changes.

A model that returns only part of a file, or forgets some of it, would delete the rest. A rewrite is therefore accepted
only if it keeps most of the file and both its ends. If an omission comment (``# ... existing code ...``) replaces
lines, each piece must start and end with lines that are unique in the file, in the same order, and must not lose more
lines than it adds.
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
"""Minimum share of a file's non-blank lines that a rewrite must keep."""
_ADVICE = "use the tool that writes whole files, or change only the intended lines"


def locate_whole_file(search: DocumentIndex, patch: WholeFileRewrite, names: ParameterNames) -> Resolution:
    """Return the edits that turn the file into ``patch.new_text``, or a rejection if it seems incomplete."""
    document, new = search.document, split_view_lines(normalize_newlines(patch.new_text))
    old = document.lines[: document.line_count]
    if not any(line.strip() for line in old):
        left_out = next(filter(is_omission_comment, new), None)
        if left_out is not None:
            return Rejection("invalid", f"{left_out.strip()[:80]!r} replaces unchanged lines, but the file is empty")
        return (_edit(document, LineChange(0, len(old), 0, len(new)), new),)
    pieces = list(_pieces(new))
    if len(pieces) == 1:
        file_changes = changes(old, new)
        reason = _find_incompleteness(old, file_changes)
    else:
        file_changes, reason = _match_pieces(old, new, pieces)
    if reason:
        return Rejection("invalid", f"{reason}; {_ADVICE}")
    if not file_changes:
        return Rejection("no change", f"no change: the file already matches {names.new_text}")
    return tuple(_edit(document, change, new) for change in file_changes)


def _find_incompleteness(old: Sequence[str], file_changes: Sequence[LineChange]) -> str:
    """Return the reason why the new text seems to be only part of the file, or an empty string."""
    removed_lines = [
        index for change in file_changes for index in range(change.start, change.end) if old[index].strip()
    ]
    nonblank = sum(bool(line.strip()) for line in old)
    if nonblank - len(removed_lines) < MIN_KEPT * nonblank:
        return f"the text given for the whole file keeps only {nonblank - len(removed_lines)} of its {nonblank} lines"
    span = _nonblank_span(old)
    for change in file_changes:
        has_edge = change.start <= span.start < change.end or change.start < span.stop <= change.end
        if change.new_start == change.new_end and has_edge:
            lines = format_line_range(change.start + 1, change.end)
            return f"the text given for the whole file omits {lines} at its start or end"
    return ""


# ----------------------------------------------------------------------------- pieces


def _pieces(new: Sequence[str]) -> Iterator[list[str]]:
    """Split the new text at omission comments."""
    piece: list[str] = []
    for line in new:
        if is_omission_comment(line):
            yield piece
            piece = []
        else:
            piece.append(line)
    yield piece


def _match_pieces(old: Sequence[str], new: list[str], pieces: Sequence[list[str]]) -> tuple[list[LineChange], str]:
    """Return the changes of the pieces, and the reason why a piece cannot be located, if any.

    Refills ``new`` with the lines of the pieces.
    """
    found: list[LineChange] = []
    places: dict[str, list[int]] = {}
    for index, line in enumerate(old):
        places.setdefault(line.rstrip(), []).append(index)
    new.clear()
    position = 0
    for number, piece in enumerate(pieces):
        span = _nonblank_span(piece)
        lines = piece[span.start : span.stop]
        if not lines:
            continue
        start = _find_piece_start(old, places, lines[0], position, is_top=number == 0)
        stop = (
            None if start is None else _find_piece_end(old, places, lines, start, is_bottom=number == len(pieces) - 1)
        )
        if start is None or stop is None:
            line = lines[0] if start is None else lines[-1]
            quoted = repr(line.strip()[:80])
            return [], f"{quoted}, at an end of a piece, does not occur exactly once and in this order in the file"
        for change in changes(old[start:stop], lines):
            at = len(new)
            new += lines[change.new_start : change.new_end]
            found.append(LineChange(start + change.start, start + change.end, at, len(new)))
        removed_lines = sum(map(bool, map(str.strip, old[start:stop]))) - sum(map(bool, map(str.strip, lines)))
        if removed_lines > 0:
            return [], f"lines {start + 1}-{stop} would be replaced with {removed_lines} fewer lines"
        position = stop
    return found, ""


def _nonblank_span(lines: Sequence[str]) -> range:
    """Return the range from the first to the last non-blank line."""
    nonblank = [index for index, line in enumerate(lines) if line.strip()]
    return range(nonblank[0], nonblank[-1] + 1) if nonblank else range(0)


_Places: TypeAlias = Mapping[str, Sequence[int]]
"""Line indexes by line, without trailing whitespace."""


def _find_piece_start(old: Sequence[str], places: _Places, line: str, position: int, is_top: bool) -> int | None:
    """Return the line at which a piece starts.

    The first line of the piece must be unique in the file. The first piece may also start at the top of the file.
    """
    if is_top:
        top = _nonblank_span(old).start
        return top if old[top].rstrip() == line.rstrip() else None
    found = places.get(line.rstrip(), ())
    return found[0] if len(found) == 1 and found[0] >= position else None


def _find_piece_end(
    old: Sequence[str], places: _Places, lines: Sequence[str], start: int, is_bottom: bool
) -> int | None:
    """Return the end (exclusive) of a piece.

    It ends after its last line, if that is unique in the file. If the piece is one block, it ends after the line that
    closes the block begun at ``start``.
    """
    last = lines[-1].rstrip()
    if is_bottom:
        end = _nonblank_span(old).stop
        return end if old[end - 1].rstrip() == last else None
    found = places.get(last, ())
    if len(found) == 1:
        return found[0] + 1 if found[0] >= start else None
    after = bisect_right(found, start)
    return found[after] + 1 if _is_closed_block(lines) and after < len(found) else None


def _is_closed_block(lines: Sequence[str]) -> bool:
    """Return whether the lines are a single block that the last line closes."""
    last = lines[-1].strip()
    level = len(indent_of(lines[0]))
    inner = [len(indent_of(line)) for line in lines[1:-1] if line.strip()]
    is_closing = last[:1] in ("}", ")", "]") or last in ("end", "end;", "fi", "done")
    return is_closing and len(lines) > 1 and len(indent_of(lines[-1])) == level and all(one > level for one in inner)


def _edit(document: TextDocument, change: LineChange, new: Sequence[str]) -> ResolvedEdit:
    """Build the edit of whole lines for ``change``; a pure insertion is placed before a line."""
    added = "".join(line + "\n" for line in new[change.new_start : change.new_end])
    start = document.view_offset(change.start) if change.start < len(document.lines) else len(document.view)
    is_last = change.end >= len(document.lines)
    end = len(document.view) if is_last else document.view_offset(change.end)
    if is_last:  # the file ends without a newline, and this stays so
        if change.start == change.end:
            added = "\n" + added
        added = added.removesuffix("\n")
        if not added and start:
            start -= 1
    first, last = min(change.start, len(document.lines) - 1), max(change.start, change.end - 1)
    written = partial(build_exact_replacement, document, document.view[start:end], added, first)
    match = TextMatch(start, end, first, min(last, len(document.lines) - 1), written, "exact")
    return ResolvedEdit(match, written())
