"""Locate all pieces of a rewritten file together (see `rewrite_piece_candidates`).

All spans are chosen together, in the pieces' order and without overlap. A span is uncertain if an almost equally good
choice has another span for the piece, or if the model may also have meant adjacent lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import accumulate
from math import inf
from typing import NamedTuple

from rapidfuzz.fuzz import ratio

from adapter.core.text.diffs import LineChange, find_changes
from adapter.core.text.lines import count_common_prefix
from adapter.editing.document import format_line_range
from adapter.editing.matching.indentation_scope import find_enclosing
from adapter.editing.matching.normalize import DISTINCTIVE_LETTERS, count_letters, is_distinctive
from adapter.editing.matching.rewrite_piece_candidates import (
    COMMENT,
    NAME,
    SIMILAR,
    Piece,
    PieceCandidates,
    Placement,
    build_head,
    build_key,
    list_heads,
)
from adapter.editing.repairs.reindent import measure_indent

MIN_DROPPED, MAX_DROPPED = 3, 0.5
"""Missing lines count as forgotten rather than deleted if there are at least this many, they contain at least this
share of the span's names, and the piece's ends are uncertain. Models do not forget just one or two lines."""
SHORTENED = 4
"""Missing lines are considered forgotten only if they outnumber their replacement by this factor."""
MARGIN = 3.0
"""Minimum lead, in bits, over any choice with another span for a piece. Below it, the piece's span is uncertain."""
NEXT_TO = 60
"""Number of unchanged lines, on each side of a piece, that must not contain a declaration that the piece adds."""
MIN_REWRITTEN = 0.5
"""Lines that only a larger span deletes count as rewritten if the added lines contain at least this share of their
names."""
LINES_PER_HINT = 50
"""Maximum number of additional lines that a span may have for each hint that it is the place of a piece."""
MANY_NAMES = 5
"""Minimum number of different names in a line for new lines with the same names to count as its replacement."""
REPLACED = 70.0
"""Minimum similarity, in percent, between a piece's changed first or last line and the line that it replaces."""


class _Fit(NamedTuple):
    """A comparison of a piece with a span. Lines that differ only in indentation are neither added nor deleted."""

    added: Counter[str]
    """Distinctive lines that the piece adds, with their counts."""
    deleted: Counter[str]
    """Distinctive lines that the piece deletes, with their counts."""
    lost: int
    """Number of lines of the span that the piece lacks."""
    written: int
    """Number of lines of the piece that the span lacks."""
    is_reworded: bool
    """True if the lines missing in the piece are similar to the lines missing in the span."""
    kept_above: int
    """Number of letters and digits in the equal lines at the start."""
    kept_below: int
    """Number of letters and digits in the equal lines at the end."""


class PiecePlacer(PieceCandidates):
    """Place ``pieces`` in ``old``, the lines of a file."""

    def place(self) -> tuple[list[Placement], str]:
        """Return the span of each piece, and an empty string. If the pieces cannot be placed with certainty, the string
        is the reason."""
        candidates: list[list[Placement]] = []
        for piece in self._pieces:
            spans = sorted(self._find_candidates(piece))
            if not spans:
                return [], self._explain_absence(piece)
            candidates.append(spans)
        best = _compute_best_totals(candidates)
        total = max(best[0], default=-inf) if best else 0.0
        if total == -inf:
            return [], "the pieces do not occur in this order in the file"
        chosen = [spans[totals.index(max(totals))] for spans, totals in zip(candidates, best, strict=True)]
        omitted = set(range(len(self._old))).difference(*(range(span.start, span.end) for span in chosen))
        hints = [*self._find_removed_names(omitted), *self._find_moved_lines(chosen, omitted)]
        for piece, span, spans, totals in zip(self._pieces, chosen, candidates, best, strict=True):
            others = {each: total_with for each, total_with in zip(spans, totals, strict=True) if each != span}
            rivals = [each for each in others if others[each] > total - MARGIN]
            possible = [each for each in others if others[each] > -inf]
            rivals += self._find_rivals(piece, span, possible)
            if self._is_equal(piece, span):
                rivals = [each for each in rivals if piece.depth is not None and not self._is_equal(piece, each)]
            rivals += [each for each in possible if self._is_hinted(span, each, hints)]
            if reason := self._find_doubt(piece, span, rivals):
                return [], reason
        return chosen, self._find_duplicate(chosen)

    def _find_removed_names(self, omitted: Set[int]) -> list[list[int]]:
        """Group the ``omitted`` lines by the names that they contain and that the pieces remove elsewhere."""
        written = set(NAME.findall("\n".join(line for piece in self._pieces for line in piece.lines)))
        replaced = "\n".join(line for index, line in enumerate(self._old) if index not in omitted)
        gone = set(NAME.findall(replaced)) - written
        kept: dict[str, list[int]] = defaultdict(list)
        for index in sorted(omitted):
            for name in gone.intersection(NAME.findall(self._old[index])):
                kept[name].append(index)
        return [hint for name, hint in kept.items() for _ in range(1 + (len(self._lines_by_name[name]) == 2))]

    def _find_moved_lines(self, spans: Sequence[Placement], omitted: Set[int]) -> list[list[int]]:
        """Return the ``omitted`` lines that contain a line that a piece adds, and that no other line of the file
        contains. Each is listed twice, to count as two hints."""
        added = {line.rstrip(",;") for each in map(self._fit, self._pieces, spans) for line in each.added}
        return [[line] for line in map(self._find_only_line_with, added) if line in omitted] * 2

    def _is_hinted(self, span: Placement, other: Placement, hints: Sequence[Sequence[int]]) -> bool:
        """Return whether ``other`` covers enough ``hints`` to justify the lines that it has in addition to ``span``."""
        larger = other.end - other.start - (span.end - span.start)
        return sum(map(other.covers, hints)) >= max(2, larger / LINES_PER_HINT)

    def _explain_absence(self, piece: Piece) -> str:
        first, last = piece.lines[0], piece.lines[-1]
        missing = last if self._places.get(first.rstrip()) else first
        return f"{missing.strip()[:80]!r}, at an end of a piece, does not occur in this order in the file"

    def _find_rivals(self, piece: Piece, span: Placement, spans: Sequence[Placement]) -> list[Placement]:
        """Return the ``spans`` with a lower score that the model may have meant. If ``piece`` changes nothing at
        ``span``, these are the larger spans around it."""
        if len(piece.lines) == 1:
            return []
        if self._is_equal(piece, span):
            return [each for each in spans if _contains(each, span)] if piece.depth is not None else []
        here, loses_name = self._fit(piece, span), self._loses_name(piece, span)
        return [each for each in spans if self._is_rival(piece, span, each, here, loses_name)]

    def _is_rival(self, piece: Piece, span: Placement, other: Placement, here: _Fit, loses_name: bool) -> bool:
        """Return whether the model may have meant the span ``other``: both ends fit, and it keeps more of the piece's
        lines or deletes fewer."""
        is_larger, is_smaller = _contains(other, span), _contains(span, other)
        is_unsure = (other.start != span.start and here.kept_above < DISTINCTIVE_LETTERS) or (
            other.end != span.end and here.kept_below < DISTINCTIVE_LETTERS
        )
        if is_larger and here.lost and not here.written:  # only deletes lines, perhaps more than here
            return is_unsure
        if other.end - other.start == 1 and not loses_name:
            return False
        there = self._fit(piece, other)
        keeps_ends = (other.start == span.start or there.kept_above >= here.kept_above) and (
            other.end == span.end or there.kept_below >= here.kept_below
        )
        if is_larger:
            return keeps_ends and (self._is_rewritten(piece, span, other) or self._assigns_again(piece, span, other))
        if is_smaller:
            if self._repeats_head(piece, span, other):
                return False
            if keeps_ends and not here.lost and not there.lost:  # both only insert, but different lines
                return is_unsure
            if keeps_ends and not self._is_rewritten(piece, other, span):
                return True
            is_changed = there.lost > 0 and not loses_name  # both change lines, and `span` scores more
            return not is_changed and bool(here.deleted - there.deleted) and (keeps_ends or loses_name)
        if here.deleted:
            return not there.lost and min(there.kept_above, there.kept_below) >= DISTINCTIVE_LETTERS
        return there.is_reworded and keeps_ends and there.written > 1

    def _repeats_head(self, piece: Piece, span: Placement, other: Placement) -> bool:
        """Return whether ``piece`` at ``other`` would repeat the outline of lines that only ``span`` replaces or keeps:
        a name that one of them declares or assigns, or two of them, if the file has each of these once. A least
        indented added line must be among the repeated ones."""
        written = [*filter(NAME.search, self._list_changed(piece, other)[0])]
        depth = min(map(measure_indent, written), default=0)
        omitted = (*self._old[span.start : other.start], *self._old[other.end : span.end])
        repeated = {line for line in written if self._occurs_once(line)}.intersection(omitted)
        if len(repeated) > 1 and depth in map(measure_indent, repeated):
            return True
        heads = {head for line in written if measure_indent(line) == depth for head in list_heads(line)}
        return any(self._head_counts[head] == 1 for line in omitted for head in heads.intersection(list_heads(line)))

    def _is_rewritten(self, piece: Piece, span: Placement, other: Placement) -> bool:
        """Return whether ``piece`` at ``other`` rewrites the lines that it would not delete at ``span``: the lines that
        it adds contain most of their names."""
        added, removed = self._list_changed(piece, other)
        deleted = Counter(removed) - Counter(self._list_changed(piece, span)[1])
        return self._contain_most_names(added, deleted.elements())

    def _assigns_again(self, piece: Piece, span: Placement, other: Placement) -> bool:
        """Return whether ``piece`` adds an assignment at ``span`` that replaces one outside it: a line that would be
        deleted only at ``other`` assigns the same name. Only the least indented added lines, and names new to ``span``,
        count."""
        added, removed = self._list_changed(piece, span)
        deleted = Counter(self._list_changed(piece, other)[1]) - Counter(removed)
        depth = min(map(measure_indent, filter(None, added)), default=0)
        known = {*map(build_head, self._old[span.start : span.end])}
        new = [line for line in added if measure_indent(line) == depth and build_head(line) not in known]
        return not {*map(build_head, deleted)}.isdisjoint({*map(build_head, new)} - {None})

    def _list_changed(self, piece: Piece, span: Placement) -> tuple[list[str], list[str]]:
        """Return the lines that ``piece`` adds at ``span``, and the lines that it removes."""
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        changes = find_changes(actual, lines)
        added = [line for change in changes for line in lines[change.new_start : change.new_end]]
        return added, [line for change in changes for line in actual[change.start : change.end]]

    def _find_changed_edges(self, piece: Piece, span: Placement) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the differing lines of ``span`` and of ``piece`` directly below and above an omission, starting at the
        omission. Equal closing brackets count as different if they end different blocks."""
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        changes = find_changes(actual, lines)
        if piece.depth is not None and actual[0] != lines[0]:
            yield actual[: changes[0].end], lines[: changes[0].new_end]
        if changes and not piece.is_last and self._ends_otherwise(actual, lines, changes[-1]):
            yield actual[changes[-1].start :][::-1], lines[changes[-1].new_start :][::-1]

    def _ends_otherwise(self, actual: Sequence[str], lines: Sequence[str], last: LineChange) -> bool:
        """Return whether the texts end with different lines, or with equal brackets that end different blocks. The
        blocks differ if they start in the ``last`` change, and its two sides have few names in common."""
        below = [line for line in lines[last.new_end :] if line]
        if len(below) != 1 or below[0].lstrip()[0] not in ")]}":
            return actual[-1] != lines[-1]
        depth = measure_indent(below[0])
        openers = (at for at, line in enumerate(lines[: last.new_end]) if line and measure_indent(line) == depth)
        removed, added = actual[last.start : last.end], lines[last.new_start : last.new_end]
        return max(openers, default=-1) >= last.new_start and not self._contain_most_names(added, removed)

    def _contain_most_names(self, added: Iterable[str], removed: Iterable[str]) -> bool:
        """Return whether the ``added`` lines contain most of the information in the names of the ``removed`` code."""
        lines = [*removed]
        code = [line for line in lines if not COMMENT.match(line)]
        names = Counter(NAME.findall("\n".join(code if any(map(NAME.search, code)) else lines)))
        kept = names & Counter(NAME.findall("\n".join(added)))
        return self._sum_name_bits(kept) >= MIN_REWRITTEN * self._sum_name_bits(names)

    def _loses_name(self, piece: Piece, span: Placement) -> bool:
        """Return whether ``piece`` lacks a name from one of the least indented lines of ``span``."""
        named = filter(NAME.search, self._old[span.start : span.end])
        depth = min(map(measure_indent, named), default=0)
        before, after = (
            Counter(name for line in part if measure_indent(line) == depth for name in NAME.findall(line))
            for part in (self._old[span.start : span.end], piece.lines)
        )
        return bool(before - after)

    def _fit(self, piece: Piece, span: Placement) -> _Fit:
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        written, removed = self._list_changed(piece, span)
        added, deleted = (Counter(line.strip() for line in part if is_distinctive(line)) for part in (written, removed))
        return _Fit(
            added - deleted,
            deleted - added,
            _count_nonblank(removed),
            _count_nonblank(written),
            bool(removed) and _are_similar(removed, written),
            _count_letters_in_common(actual, lines),
            _count_letters_in_common(actual[::-1], lines[::-1]),
        )

    def _is_equal(self, piece: Piece, span: Placement) -> bool:
        """Return whether ``piece`` changes nothing at ``span``."""
        return self._old[span.start : span.end] == [line.rstrip() for line in piece.lines]

    def _find_duplicate(self, spans: Sequence[Placement]) -> str:
        """Return the reason to reject new lines that repeat lines near their piece, or an empty string."""
        counts = Counter(map(build_key, self._old))
        ends = [0, *(span.end for span in spans)]
        starts = [*(span.start for span in spans[1:]), len(self._old)]
        for piece, span, previous, following in zip(self._pieces, spans, ends, starts, strict=False):
            lines = [line.rstrip() for line in piece.lines]
            above = self._old[max(previous, span.start - NEXT_TO) : span.start]
            below = self._old[span.end : min(following, span.end + NEXT_TO)]
            kept = {key for key in map(build_key, (*above, *below)) if key and counts[key] == 1}
            depth = min(measure_indent(line) for line in lines if line)
            changes = find_changes(self._old[span.start : span.end], lines)
            for change in changes:
                for line in lines[change.new_start : change.new_end]:
                    if measure_indent(line) == depth and (
                        build_key(line) in kept or self._is_kept_elsewhere(line, spans)
                    ):
                        return f"{line.strip()[:80]!r} would be in the file twice, because omitted lines contain it too"
            line = next(filter(None, below), "")
            if changes and _may_replace(lines, changes[-1], line):
                return f"{line.strip()[:80]!r} is omitted, but new lines above it may replace it"
        return ""

    def _is_kept_elsewhere(self, line: str, spans: Sequence[Placement]) -> bool:
        """Return whether ``line`` is a declaration that occurs once in the file, in lines that no piece replaces."""
        if not build_key(line) or not self._occurs_once(line):
            return False
        return not any(span.start <= self._places[line][0] < span.end for span in spans)

    def _is_sure(self, actual: Sequence[str], lines: Sequence[str]) -> bool:
        """Return whether both texts begin with the same lines, which are distinctive or unique in the file."""
        kept = filter(NAME.search, lines[: count_common_prefix(actual, lines)])
        return _count_letters_in_common(actual, lines) >= DISTINCTIVE_LETTERS or any(map(self._occurs_once, kept))

    def _ends_in_new_block(self, span: Placement, lines: Sequence[str]) -> bool:
        """Return whether the piece ``lines`` ends in a block that it adds, and the file's lines below ``span`` continue
        another block of the same depth, which starts above ``span``."""
        rows = find_enclosing(self._old, span.end - 1, measure_indent(self._old[span.end - 1]))
        depths = {measure_indent(self._old[row]) for row in rows if row < span.start}
        changes = find_changes(self._old[span.start : span.end], lines)
        added = {row for change in changes for row in range(change.new_start, change.new_end)}
        headers = find_enclosing(lines, len(lines) - 1, measure_indent(lines[-1]))
        return any(row in added and measure_indent(lines[row]) in depths for row in headers)

    def _find_doubt(self, piece: Piece, span: Placement, rivals: Sequence[Placement]) -> str:
        """Return the reason why ``span`` may not be the place of ``piece``, or an empty string."""
        ends = " to ".join(repr(line.strip()[:80]) for line in (piece.lines[0], piece.lines[-1]))
        if rivals:
            places = " or ".join(format_line_range(each.start + 1, each.end) for each in (span, rivals[0]))
            return f"a piece from {ends} could be {places} of the file"
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        if not all(_is_replaced(*edge) for edge in self._find_changed_edges(piece, span)):
            return f"a piece from {ends} has new lines at an end, which may replace lines that are not shown"
        if not piece.is_last and self._ends_in_new_block(span, lines):
            return f"a piece from {ends} ends inside a block that it adds, but the file has no rest of that block"
        dropped = [
            line
            for change in find_changes(actual, lines)
            if _count_nonblank(lines[change.new_start : change.new_end]) * SHORTENED <= change.end - change.start
            for line in actual[change.start : change.end]
            if line
        ]
        names, gone = (len(NAME.findall("\n".join(part))) for part in (actual, dropped))
        fewer = _count_nonblank(actual) - _count_nonblank(lines)
        has_sure_ends = self._is_sure(actual, lines) and self._is_sure(actual[::-1], lines[::-1])
        if fewer >= MIN_DROPPED and gone >= MAX_DROPPED * names and not has_sure_ends:
            return f"lines {span.start + 1}-{span.end} would be replaced with {fewer} fewer lines"
        return ""


def _may_replace(lines: Sequence[str], last: LineChange, line: str) -> bool:
    """Return whether the ``lines`` from the ``last`` change on may replace ``line``: there are several, they contain
    all of its many names, and no line below the change has a name."""
    names, added = Counter(NAME.findall(line)), lines[last.new_start :]
    if len(added) < 2 or len(names) < MANY_NAMES or any(map(NAME.search, lines[last.new_end :])):
        return False
    return names <= Counter(NAME.findall("\n".join(added)))


def _count_letters_in_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the number of letters and digits before the first line that differs."""
    return sum(map(count_letters, left[: count_common_prefix(left, right)]))


def _are_similar(block: Sequence[str], added: Sequence[str]) -> bool:
    """Return whether both texts are similar."""
    left, right = ([line.strip() for line in part if line] for part in (block, added))
    return ratio("\n".join(left), "\n".join(right[: len(left)])) >= SIMILAR


def _is_replaced(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Return whether each of the ``added`` lines replaces one similar line. Otherwise, return whether the first lines
    are only reindented, and no line that is less indented than the ``added`` ones is lost."""
    before, after = ([line.strip() for line in part] for part in (removed, added))
    is_similar = len(before) == len(after) and all(
        ratio(one, other) >= REPLACED for one, other in zip(before, after, strict=True)
    )
    if is_similar:
        return True
    lost = [line for line in removed if line.strip() not in after]
    outermost = min(map(measure_indent, filter(None, added)), default=0)
    is_inside = all(measure_indent(line) >= outermost for line in lost if line)
    return is_inside and _count_letters_in_common(before, after) >= DISTINCTIVE_LETTERS


def _contains(span: Placement, other: Placement) -> bool:
    return span.start <= other.start and other.end <= span.end


def _compute_best_totals(candidates: Sequence[Sequence[Placement]]) -> list[list[float]]:
    """For each span, return the best total score of a choice that contains it, or minus infinity if there is none. A
    choice has one span per piece, in order and without overlap."""
    totals: list[list[float]] = []
    ends: list[int] = [-1]
    best = [0.0]
    for spans in candidates:
        totals.append([best[bisect_right(ends, max(span.start, 0)) - 1] + span.score for span in spans])
        reached = sorted((span.end, total) for span, total in zip(spans, totals[-1], strict=True))
        ends = [-1, *(end for end, _ in reached)]
        best = [-inf, *accumulate((total for _, total in reached), max)]
    starts: list[int] = []
    best = [0.0]
    for spans, before in zip(candidates[::-1], totals[::-1], strict=True):
        after = [best[bisect_left(starts, span.end)] for span in spans]
        reached = sorted((span.start, span.score + total) for span, total in zip(spans, after, strict=True))
        starts = [start for start, _ in reached]
        best = [*list(accumulate((total for _, total in reversed(reached)), max))[::-1], -inf]
        before[:] = [one + other for one, other in zip(before, after, strict=True)]
    return totals


def _count_nonblank(lines: Sequence[str]) -> int:
    return sum(bool(line.strip()) for line in lines)
