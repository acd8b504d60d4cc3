"""Convert the rewrite of a whole file to a list of changes.

If a model returns only part of a file, or forgets some of it, the rewrite would delete the rest. A rewrite is therefore
accepted only if it keeps most of the file and both its ends. If omission comments (``# ... existing code ...``) replace
lines, `rewrite_piece_placement` finds where the pieces between them belong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from adapter.core.text.diffs import LineChange, find_changes
from adapter.core.text.lines import to_lf
from adapter.editing.document import TextDocument, format_line_range, is_prose_file
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.normalize import normalize_line
from adapter.editing.matching.rewrite_piece_candidates import Piece
from adapter.editing.matching.rewrite_piece_placement import PiecePlacer
from adapter.editing.matching.strategies import TextMatch, split_view_lines
from adapter.editing.repairs.omission_markers import find_omissions, find_replacing_comments, is_omission_comment
from adapter.editing.repairs.reindent import measure_indent
from adapter.editing.replacement_text import build_exact_replacement
from adapter.editing.resolved_edits import Rejection, Resolution, ResolvedEdit
from adapter.tools.operations import ParameterNames, WholeFileRewrite

MIN_KEPT = 0.5
"""Minimum share of a file's non-blank lines that a rewrite must keep."""
_ADVICE = "use the tool that writes whole files, or change only the intended lines"


def locate_whole_file(search: DocumentIndex, patch: WholeFileRewrite, names: ParameterNames) -> Resolution:
    """Return the edits that turn the file into ``patch.new_text``, or a rejection if the new text seems incomplete."""
    document = search.document
    new = split_view_lines(to_lf(patch.new_text).removeprefix(document.mark))
    old = document.lines[: document.line_count]
    if not any(line.strip() for line in old):
        left_out = next(filter(is_omission_comment, new), None)
        if left_out is not None:
            return Rejection("invalid", f"{left_out.strip()[:80]!r} replaces unchanged lines, but the file is empty")
        return (_build_edit(document, LineChange(0, len(old), 0, len(new)), new),)
    pieces = list(_split_pieces(search, old, new))
    if len(pieces) == 1 and pieces[0].depth is None and pieces[0].is_last:
        file_changes = find_changes(old, new)
        reason = _find_replacing_comment(search, old, new) or _find_incompleteness(old, file_changes)
    else:
        file_changes, reason = _match_pieces(old, pieces)
        new = [line for piece in pieces for line in piece.lines]
    if reason:
        return Rejection("invalid", f"{reason}; {_ADVICE}")
    if not file_changes:
        return Rejection("no change", f"no change: the file already matches {names.new_text}")
    return tuple(_build_edit(document, change, new) for change in file_changes)


def _find_replacing_comment(search: DocumentIndex, old: Sequence[str], new: Sequence[str]) -> str:
    lines = (new[index] for index in find_replacing_comments(old, new, is_prose_file(search.document.path)))
    line = next((line for line in lines if not search.find_lines_with_key(normalize_line(line))), "")
    return f"{line.strip()[:80]!r} replaces lines of the file" if line else ""


def _find_incompleteness(old: Sequence[str], file_changes: Sequence[LineChange]) -> str:
    """Return the reason why the new text seems to be only part of the file, or an empty string."""
    removed = sum(bool(line.strip()) for change in file_changes for line in old[change.start : change.end])
    nonblank = sum(bool(line.strip()) for line in old)
    if nonblank - removed < MIN_KEPT * nonblank:
        lost = next(at for change in file_changes for at in range(change.start, change.end) if old[at].strip())
        return (
            f"the text given for the whole file keeps only {nonblank - removed} of its {nonblank} lines that are not "
            f"blank; line {lost + 1}, for example, would be deleted: {old[lost].strip()[:80]!r}"
        )
    span = _find_nonblank_span(old)
    for change in file_changes:
        has_edge = change.start <= span.start < change.end or change.start < span.stop <= change.end
        if change.new_start == change.new_end and has_edge:
            lines = format_line_range(change.start + 1, change.end)
            return f"the text given for the whole file omits {lines} at its start or end"
    return ""


def _split_pieces(search: DocumentIndex, old: Sequence[str], new: Sequence[str]) -> Iterator[Piece]:
    """Split the new text at the lines that represent unchanged lines of the file."""
    omissions = [at for at in find_omissions(old, new) if not search.find_lines_with_key(normalize_line(new[at]))]
    depth = None
    for start, end in pairwise([-1, *omissions, len(new)]):
        lines = new[start + 1 : end]
        span, is_last = _find_nonblank_span(lines), end == len(new)
        if span or not omissions:
            blanks = (span.start if start < 0 else 0, len(lines) - span.stop if is_last else 0)
            yield Piece([*lines[span.start : span.stop]] if omissions else [*lines], depth, is_last, *blanks)
        depth = measure_indent(new[end]) if end < len(new) else None


def _find_nonblank_span(lines: Sequence[str]) -> range:
    """Return the range from the first to the last non-blank line."""
    nonblank = [index for index, line in enumerate(lines) if line.strip()]
    return range(nonblank[0], nonblank[-1] + 1) if nonblank else range(0)


def _match_pieces(old: Sequence[str], pieces: Sequence[Piece]) -> tuple[list[LineChange], str]:
    """Return the pieces' changes and an empty string. If a piece cannot be placed, the string is the reason."""
    spans, reason = PiecePlacer(old, pieces).place()
    changed: list[LineChange] = []
    written = 0
    for piece, (start, end, _) in zip(pieces, spans, strict=False):
        if piece.depth is None:  # the file begins like the piece
            piece.lines[:0] = [""] * piece.blank_above
            start = 0
        if piece.is_last:
            piece.lines.extend([""] * piece.blank_below)
            end = len(old)
        changed += [change.move(start, written) for change in find_changes(old[start:end], piece.lines)]
        written += len(piece.lines)
    return changed, reason


def _build_edit(document: TextDocument, change: LineChange, new: Sequence[str]) -> ResolvedEdit:
    """Build the edit for a change to whole lines. An insertion is placed at the start of a line."""
    added = "".join(line + "\n" for line in new[change.new_start : change.new_end])
    start = document.get_view_offset(change.start) if change.start < len(document.lines) else len(document.view)
    is_last = change.end >= len(document.lines)
    end = len(document.view) if is_last else document.get_view_offset(change.end)
    if is_last:  # the file has no final newline, and does not get one
        if change.start == change.end:
            added = "\n" + added
        added = added.removesuffix("\n")
        if not added and start:
            start -= 1
    first, last = min(change.start, len(document.lines) - 1), max(change.start, change.end - 1)
    written = partial(build_exact_replacement, document, document.view[start:end], added, first)
    match = TextMatch(start, end, first, min(last, len(document.lines) - 1), written, "exact")
    return ResolvedEdit(match, written())
