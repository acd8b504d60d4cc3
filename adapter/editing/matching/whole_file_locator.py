"""Locate the rewrite of a whole file as a list of changes.

A model that returns only part of a file, or forgets some of it, would delete the rest. A rewrite is therefore accepted
only if it keeps most of the file and both its ends. If an omission comment (``# ... existing code ...``) replaces
lines, the same is required of each piece between two of them, and the lines at both ends of a piece must show where it
belongs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

from rapidfuzz.distance import Indel

from adapter.core.text.diffs import LineChange, changes
from adapter.editing.document import TextDocument, common_prefix_length, format_line_range, normalize_newlines
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.normalize import normalized_line
from adapter.editing.matching.strategies import TextMatch, split_view_lines
from adapter.editing.rejection import Rejection, Resolution, ResolvedEdit
from adapter.editing.repairs.omissions import find_omissions, is_omission_comment
from adapter.editing.repairs.reindent import indent_of, indent_width
from adapter.editing.splice import build_exact_replacement
from adapter.tools.operations import ParameterNames, WholeFileRewrite

MIN_KEPT = 0.5
"""Minimum share of a file's non-blank lines that a rewrite must keep."""
MIN_EQUAL = 3
"""Minimum number of lines at both ends of a piece that show where it belongs, if its first and last are not unique."""
MAX_SLACK = 30
"""Number of lines by which a piece may replace more than twice its own lines."""
MAX_SPANS = 400
"""Maximum number of places that a piece is compared with. If there are more, it is rejected."""
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
    pieces = list(_pieces(search, old, new))
    if len(pieces) == 1 and pieces[0].depth is None and pieces[0].is_last:
        file_changes = changes(old, new)
        reason = _find_incompleteness(old, file_changes)
    else:
        file_changes, reason = _Pieces(old, pieces).match()
        new = [line for piece in pieces for line in piece.lines]
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


class _Piece(NamedTuple):
    """Consecutive lines of the new text, without the blank lines at their ends.

    ``depth``: the indentation of the omission above them, None at the top. ``is_last``: no omission is below them.
    """

    lines: list[str]
    depth: int | None
    is_last: bool


def _pieces(search: DocumentIndex, old: Sequence[str], new: Sequence[str]) -> Iterator[_Piece]:
    """Split the new text at the lines that stand for lines of the file."""
    omissions = [at for at in find_omissions(old, new) if not search.lines_with_key(normalized_line(new[at]))]
    depth = None
    for start, end in pairwise([-1, *omissions, len(new)]):
        lines = new[start + 1 : end]
        span = _nonblank_span(lines)
        if span or not omissions:
            yield _Piece([*lines[span.start : span.stop]] if omissions else [*lines], depth, end == len(new))
        depth = indent_width(new[end]) if end < len(new) else None


def _nonblank_span(lines: Sequence[str]) -> range:
    """Return the range from the first to the last non-blank line."""
    nonblank = [index for index, line in enumerate(lines) if line.strip()]
    return range(nonblank[0], nonblank[-1] + 1) if nonblank else range(0)


class _Span(NamedTuple):
    """The lines ``start:end`` of the file that a piece replaces. The smallest is the best.

    ``unlike`` is minus the number of lines at both ends that are equal. ``is_outside``: the lines are beyond the block
    in which lines were omitted. ``cost``: number of lines on both sides that are not kept.
    """

    unlike: int
    is_outside: bool
    cost: int
    start: int
    end: int

    def is_apart_from(self, other: _Span) -> bool:
        return self.end <= other.start or other.end <= self.start


class _Pieces:
    """Locate the pieces of a file in their order."""

    def __init__(self, old: Sequence[str], pieces: Sequence[_Piece]) -> None:
        self.old, self.pieces = [line.rstrip() for line in old], pieces
        self.raw = old
        self.places: dict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(self.old):
            self.places[line].append(index)

    def match(self) -> tuple[list[LineChange], str]:
        """Return the changes of the pieces, and the reason why a piece cannot be located, if any."""
        found: list[LineChange] = []
        position = written = 0
        for piece in self.pieces:
            spans = sorted(self._spans(piece, position))
            reason = self._find_doubt(piece, spans)
            if reason:
                return [], reason
            *_, start, end = spans[0]
            for change in changes(self.raw[start:end], piece.lines):
                found.append(
                    LineChange(
                        start + change.start, start + change.end, written + change.new_start, written + change.new_end
                    )
                )
            written += len(piece.lines)
            position = end
        return found, ""

    def _spans(self, piece: _Piece, position: int) -> Iterator[_Span]:
        """Yield the ranges of the file that start and end with the first and last line of ``piece``."""
        filled = _nonblank_span(self.old)
        lines = [line.rstrip() for line in piece.lines]
        starts = [filled.start] if piece.depth is None else self.places.get(lines[0], ())
        ends = [filled.stop] if piece.is_last else [index + 1 for index in self.places.get(lines[-1], ())]
        reach = 2 * len(lines) + MAX_SLACK
        limit = self._block_end(piece.depth or 0, position)
        pairs = ((start, end) for start in starts for end in ends if position <= start < end)
        for start, end in islice((pair for pair in pairs if len(ends) == 1 or pair[1] <= pair[0] + reach), MAX_SPANS):
            actual = self.old[start:end]
            equal = common_prefix_length(actual, lines) + common_prefix_length(actual[::-1], lines[::-1])
            yield _Span(-equal, start > limit, Indel.distance(actual, lines), start, end)

    def _block_end(self, depth: int, position: int) -> int:
        """Return the first line that is indented less than an omission by ``depth`` columns at ``position``."""
        below = range(position, len(self.old))
        return next((at for at in below if self.old[at] and indent_width(self.old[at]) < depth), len(self.old))

    def _find_doubt(self, piece: _Piece, spans: Sequence[_Span]) -> str:
        """Return the reason why the first of ``spans`` is not certainly the place of ``piece``, or an empty string."""
        first, last = (repr(line.strip()[:80]) for line in (piece.lines[0], piece.lines[-1]))
        if not spans:
            missing = last if self.places.get(piece.lines[0].rstrip()) else first
            return f"{missing}, at an end of a piece, does not occur in this order in the file"
        best = spans[0]
        rivals = [span for span in spans[1:] if span.unlike == best.unlike]
        rivals = [span for span in rivals if span[:3] == best[:3] or not span.is_apart_from(best)]
        rivals = [span for span in rivals if not self._find_loss(piece, span)]
        if rivals or len(spans) == MAX_SPANS:
            lines = (format_line_range(span.start + 1, span.end) for span in (best, *rivals[:1]))
            return f"a piece from {first} to {last} could be {' or '.join(lines)} of the file"
        if loss := self._find_loss(piece, best):
            return loss
        if -best.unlike < MIN_EQUAL and not self._has_sure_ends(piece, best):
            return f"{first} and {last}, at the ends of a piece, do not show where it belongs"
        return ""

    def _find_loss(self, piece: _Piece, span: _Span) -> str:
        """Return the reason to reject a piece that has fewer lines and loses half of them, or an empty string."""
        actual, lines = self.old[span.start : span.end], [line.rstrip() for line in piece.lines]
        lost = sum(_count_nonblank(actual[one.start : one.end]) for one in changes(actual, lines))
        fewer = _count_nonblank(actual) - _count_nonblank(lines)
        if fewer <= 0 or lost < (1 - MIN_KEPT) * _count_nonblank(actual):
            return ""
        return f"lines {span.start + 1}-{span.end} would be replaced with {fewer} fewer lines"

    def _has_sure_ends(self, piece: _Piece, span: _Span) -> bool:
        """Return whether both ends are unique in the file, or only the first, which begins the block of the piece."""
        is_first_sure = piece.depth is None or len(self.places[self.old[span.start]]) == 1
        is_last_sure = piece.is_last or len(self.places[self.old[span.end - 1]]) == 1
        return is_first_sure and (is_last_sure or _is_closed_block(piece.lines))


def _count_nonblank(lines: Sequence[str]) -> int:
    return sum(bool(line.strip()) for line in lines)


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
