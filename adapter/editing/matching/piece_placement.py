"""Locate the pieces of a file between which a model omitted lines, all at once.

Each piece has several possible spans in the file. The score of a span is the information in its equal lines (a rare
line counts more than a common one), minus that in the lines it would delete. The spans are chosen together, in the
order of the pieces and without overlap. A piece is in doubt if an almost equally good choice has another span for it,
or if lines next to its span may have been meant as well.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from math import inf, log2
from typing import NamedTuple

from rapidfuzz.fuzz import ratio

from adapter.core.text.diffs import find_changes
from adapter.editing.document import format_line_range
from adapter.editing.matching.normalize import DISTINCTIVE_LETTERS, count_letters, is_distinctive
from adapter.editing.repairs.reindent import get_indent, measure_indent

MIN_DROPPED, MAX_DROPPED = 3, 0.5
"""Lines, and share of the names of a span, that a piece may have forgotten rather than deleted. Nobody leaves out one
or two lines to write less."""
SHORTENED = 4
"""Factor by which removed lines outnumber those in their place if the piece may have forgotten them."""
MAX_SLACK = 30
"""Number of lines by which a span may be longer than twice its piece."""
MARGIN = 3.0
"""Minimum difference between the best choice of spans and one with another span for a piece, in bits."""
MAX_PLACES = 40
"""Maximum number of places of a line from which spans are tried."""
ANCHORS = 3
"""Number of a piece's rarest lines from which spans are tried."""
NEAREST = 3
"""Number of places of a piece's first and last line that are tried for one place of an anchor."""
SIMILAR = 60.0
"""Minimum similarity, in percent, of a changed line to the line that it replaces."""
MAX_COMPARED = 20
"""Maximum number of lines that a deleted line is compared with."""
BLOCK = 15
"""Number of kept lines on each side of a piece that its added lines may be meant to replace."""
NEXT_TO = 60
"""Number of kept lines on each side of a piece in which a line of the piece must not be repeated."""
KEY_WORDS = 4
"""Number of words at the beginning of a line that must be equal for it to declare the same name."""

_NAME = re.compile(r"[^\W\d]\w*")


class Piece(NamedTuple):
    """Consecutive lines of the new text, without blank lines at the ends. ``depth``: the indentation of the omission
    above them; None for the first piece. ``is_last``: no omission follows them. ``blank_above``, ``blank_below``: the
    number of blank lines before the first piece and after the last one."""

    lines: list[str]
    depth: int | None
    is_last: bool
    blank_above: int = 0
    blank_below: int = 0


class Placement(NamedTuple):
    """The lines ``start:end`` of the file that a piece replaces, and the ``score`` in bits."""

    start: int
    end: int
    score: float


class _Fit(NamedTuple):
    """The distinctive lines that a piece adds and deletes at a span, not those that it only indents differently, the
    number of ``lost`` lines, and the letters that it keeps at both ends."""

    added: Counter[str]
    deleted: Counter[str]
    lost: int
    kept_above: int
    kept_below: int


class PiecePlacer:
    """Place ``pieces`` in the lines ``old`` of a file."""

    def __init__(self, old: Sequence[str], pieces: Sequence[Piece]) -> None:
        self._old = [line.rstrip() for line in old]
        self._pieces = pieces
        self._places: dict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(self._old):
            self._places[line].append(index)
        filled = [index for index, line in enumerate(self._old) if line]
        self._first, self._last = filled[0], filled[-1] + 1
        self._bits = [self._get_bits(line) for line in self._old]
        self._sums = [0.0, *accumulate(self._bits)]

    def place(self) -> tuple[list[Placement], str]:
        """Return the span of each piece, or the reason why a piece cannot be placed."""
        candidates: list[list[Placement]] = []
        for piece in self._pieces:
            spans = sorted(self._find_candidates(piece))
            if not spans:
                return [], self._explain_absence(piece)
            candidates.append(spans)
        best = _compute_best_totals(candidates)
        total = max(best[0], default=-inf)
        if total == -inf:
            return [], "the pieces do not occur in this order in the file"
        chosen: list[Placement] = []
        for piece, spans, totals in zip(self._pieces, candidates, best, strict=True):
            span = spans[totals.index(max(totals))]
            others = {each: total_with for each, total_with in zip(spans, totals, strict=True) if each != span}
            rivals = [each for each in others if others[each] > total - MARGIN]
            rivals += self._find_rivals(piece, span, [each for each in others if others[each] > -inf])
            if self._is_equal(piece, span):
                rivals = [each for each in rivals if piece.depth is not None and not self._is_equal(piece, each)]
            if reason := self._find_doubt(piece, span, rivals):
                return [], reason
            chosen.append(span)
        return chosen, self._find_duplicate(chosen)

    # --------------------------------------------------------------- candidates

    def _find_candidates(self, piece: Piece) -> set[Placement]:
        """Return the spans that begin and end like ``piece``, near the places of its rarest lines."""
        lines = [line.rstrip() for line in piece.lines]
        if piece.depth is None and piece.is_last:
            return {self._score(lines, self._first, self._last)}
        reach = 2 * len(lines) + MAX_SLACK
        found = {
            (start, end)
            for at, place in self._find_anchors(piece, lines)
            for start in self._starts(piece, lines, at, place, reach)
            for end in self._ends(piece, lines, at, place, reach)
            if start < end
        }
        return {self._score(lines, start, end) for start, end in found}

    def _find_anchors(self, piece: Piece, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield indexes of ``lines``, each with a place of that line in the file.

        These are the rarest lines and both ends, and for a piece at an end of the file the places closest to that end.
        """
        counts = sorted((len(self._places[line]), at) for at, line in enumerate(lines) if line in self._places and line)
        for at in {*(at for _, at in counts[:ANCHORS]), 0, len(lines) - 1}:
            places = self._places.get(lines[at], [])
            if len(places) <= MAX_PLACES:
                yield from ((at, place) for place in places)
            elif piece.depth is None:
                yield from ((at, place) for place in places[:NEAREST])
            elif piece.is_last:
                yield from ((at, place) for place in places[-NEAREST:])

    def _starts(self, piece: Piece, lines: Sequence[str], at: int, place: int, reach: int) -> Sequence[int]:
        """Return where a span can begin so that ``lines[at]`` is the line ``place`` of the file."""
        if piece.depth is None:
            return (self._first,) if place - self._first <= reach else ()
        places = self._places.get(lines[0])
        if not places:
            return self._keep_similar(lines[0], place - at)
        stop = bisect_right(places, place)
        return [start for start in places[max(0, stop - NEAREST) : stop] if place - start <= reach]

    def _ends(self, piece: Piece, lines: Sequence[str], at: int, place: int, reach: int) -> Sequence[int]:
        """Return where a span can end so that ``lines[at]`` is the line ``place`` of the file."""
        if piece.is_last:
            return (self._last,) if self._last - place <= reach else ()
        places = self._places.get(lines[-1])
        if not places:
            return [index + 1 for index in self._keep_similar(lines[-1], place + len(lines) - 1 - at)]
        start = bisect_left(places, place)
        return [end + 1 for end in places[start : start + NEAREST] if end - place <= reach]

    def _keep_similar(self, line: str, place: int) -> Sequence[int]:
        """Return ``place`` if its line is similar to ``line``, which does not occur in the file."""
        if 0 <= place < len(self._old) and ratio(line.strip(), self._old[place].strip()) >= SIMILAR:
            return (place,)
        return ()

    # -------------------------------------------------------------------- score

    def _get_bits(self, line: str) -> float:
        if not any(map(str.isalnum, line)):
            return 0.5 if line else 0.1
        return log2(2 * len(self._old) / len(self._places[line]))

    def _score(self, lines: Sequence[str], start: int, end: int) -> Placement:
        """Return the span with the bits of its equal lines, minus those of its deleted lines.

        A line that is replaced with a similar one costs a quarter, and one that is only indented differently nothing.
        An added line costs its bits if it is elsewhere in the file, where it was probably meant to be kept.
        """
        score = self._sums[end] - self._sums[start]
        for change in find_changes(self._old[start:end], lines):
            added = lines[change.new_start : change.new_end][:MAX_COMPARED]
            bare = {line.strip() for line in added}
            for index in range(start + change.start, start + change.end):
                line = self._old[index]
                is_replaced = any(ratio(line, other) >= SIMILAR for other in added)
                score -= self._bits[index] * (1.0 if line.strip() in bare else 1.25 if is_replaced else 2)
            score -= sum(self._bits[self._places[line][0]] for line in added if self._occurs_once(line))
        return Placement(start, end, score)

    # ------------------------------------------------------------------- doubts

    def _explain_absence(self, piece: Piece) -> str:
        first, last = piece.lines[0], piece.lines[-1]
        missing = last if self._places.get(first.rstrip()) else first
        return f"{missing.strip()[:80]!r}, at an end of a piece, does not occur in this order in the file"

    def _find_rivals(self, piece: Piece, span: Placement, spans: Sequence[Placement]) -> list[Placement]:
        """Return the ``spans`` that the model may have meant although they score less. These are larger spans in which
        more lines of ``piece`` are kept, and smaller spans that delete fewer lines, if ``piece`` keeps at least as many
        letters at both ends there. If ``piece`` changes nothing at ``span``, all larger spans count, because the model
        may have shown the piece to delete the lines around it."""
        if len(piece.lines) == 1:
            return []
        if self._is_equal(piece, span):
            return [each for each in spans if _contains(each, span)] if piece.depth is not None else []
        here, loses_name = self._fit(piece, span), self._loses_name(piece, span)
        rivals: list[Placement] = []
        for each in spans:
            is_larger = _contains(each, span)
            is_one_line = each.end - each.start == 1 and not loses_name
            if is_one_line or not (is_larger or _contains(span, each)):
                continue
            there = self._fit(piece, each)
            if not is_larger and there.lost and not loses_name:
                continue  # both change lines, and `span` scores more
            is_alike = (each.start == span.start or there.kept_above >= here.kept_above) and (
                each.end == span.end or there.kept_below >= here.kept_below
            )
            is_alike |= loses_name and not is_larger
            if is_alike and (here.added - there.added if is_larger else here.deleted - there.deleted):
                rivals.append(each)
        return rivals

    def _loses_name(self, piece: Piece, span: Placement) -> bool:
        """Return whether the shallowest lines with names of ``span`` have names that ``piece`` has less often."""
        named = filter(_NAME.search, self._old[span.start : span.end])
        depth = min(map(measure_indent, named), default=0)
        before, after = (
            Counter(name for line in part if measure_indent(line) == depth for name in _NAME.findall(line))
            for part in (self._old[span.start : span.end], piece.lines)
        )
        return bool(before - after)

    def _fit(self, piece: Piece, span: Placement) -> _Fit:
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        hunks = find_changes(actual, lines)
        written = (line for hunk in hunks for line in lines[hunk.new_start : hunk.new_end])
        removed = [line for hunk in hunks for line in actual[hunk.start : hunk.end]]
        added, deleted = (Counter(line.strip() for line in part if is_distinctive(line)) for part in (written, removed))
        return _Fit(
            added - deleted,
            deleted - added,
            _count_nonblank(removed),
            _count_letters_in_common(actual, lines),
            _count_letters_in_common(actual[::-1], lines[::-1]),
        )

    def _is_equal(self, piece: Piece, span: Placement) -> bool:
        """Return whether ``piece`` changes nothing at ``span``."""
        return self._old[span.start : span.end] == [line.rstrip() for line in piece.lines]

    def _find_duplicate(self, spans: Sequence[Placement]) -> str:
        """Return the reason to reject new lines that repeat kept lines next to their piece, or "". The model probably
        replaced those lines and omitted their deletion."""
        counts = Counter(map(_build_key, self._old))
        ends = [0, *(span.end for span in spans)]
        starts = [*(span.start for span in spans[1:]), len(self._old)]
        for piece, span, previous, following in zip(self._pieces, spans, ends, starts, strict=False):
            lines = [line.rstrip() for line in piece.lines]
            neighbors = (
                *self._old[max(previous, span.start - NEXT_TO) : span.start],
                *self._old[span.end : min(following, span.end + NEXT_TO)],
            )
            kept = {key for key in map(_build_key, neighbors) if key and counts[key] == 1}
            depth = min(measure_indent(line) for line in lines if line)
            for change in find_changes(self._old[span.start : span.end], lines):
                for line in lines[change.new_start : change.new_end]:
                    if measure_indent(line) == depth and (
                        _build_key(line) in kept or self._is_kept_elsewhere(line, spans)
                    ):
                        return f"{line.strip()[:80]!r} would be in the file twice, because omitted lines contain it too"
            if similar := self._find_similar_block(piece, span, previous, following):
                return f"lines added at line {span.start + 1} could replace {similar}, which are similar and not shown"
        return ""

    def _is_kept_elsewhere(self, line: str, spans: Sequence[Placement]) -> bool:
        """Return whether ``line`` declares something that occurs once in the file, and no piece replaces that."""
        if not _build_key(line) or not self._occurs_once(line):
            return False
        return not any(span.start <= self._places[line][0] < span.end for span in spans)

    def _occurs_once(self, line: str) -> bool:
        return len(self._places.get(line, ())) == 1

    def _find_similar_block(self, piece: Piece, span: Placement, previous: int, following: int) -> str:
        """Return the lines next to ``span`` that are similar to the first or last added lines, or "". The model may
        have meant these lines if ``piece`` starts or ends there with a line like ``}`` that closes both blocks."""
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        hunks, fit = find_changes(actual, lines), self._fit(piece, span)
        if piece.depth is not None and hunks and fit.kept_above < DISTINCTIVE_LETTERS:
            above = range(max(previous, span.start - BLOCK), span.start)
            edge = next((index for index in reversed(above) if self._old[index] == lines[0]), None)
            added = lines[hunks[0].new_start : hunks[0].new_end]
            if edge is not None and _are_similar(self._old[edge + 1 : span.start + 1], added):
                return format_line_range(edge + 2, span.start + 1)
        if not piece.is_last and hunks and fit.kept_below < DISTINCTIVE_LETTERS:
            below = range(span.end, min(following, span.end + BLOCK))
            edge = next((index for index in below if self._old[index] == lines[-1]), None)
            added = lines[hunks[-1].new_start : hunks[-1].new_end]
            if edge is not None and _are_similar(self._old[span.end - 1 : edge][::-1], added[::-1]):
                return format_line_range(span.end, edge)
        return ""

    def _has_sure_ends(self, lines: Sequence[str], actual: Sequence[str]) -> bool:
        """Return whether a piece keeps both ends of its span, and one of two lines there occurs once in the file."""
        written, kept = ([line for line in part if line] for part in (lines, actual))
        return all(
            written[end] == kept[end]
            and any(_NAME.search(line) and self._occurs_once(line) for line in written[two] if line in kept[two])
            for end, two in ((0, slice(2)), (-1, slice(-2, None)))
        )

    def _find_doubt(self, piece: Piece, span: Placement, rivals: Sequence[Placement]) -> str:
        """Return the reason why ``span`` is not certainly the place of ``piece``, or an empty string."""
        ends = " to ".join(repr(line.strip()[:80]) for line in (piece.lines[0], piece.lines[-1]))
        if rivals:
            places = " or ".join(format_line_range(each.start + 1, each.end) for each in (span, rivals[0]))
            return f"a piece from {ends} could be {places} of the file"
        actual, lines = self._old[span.start : span.end], [line.rstrip() for line in piece.lines]
        dropped = [
            line
            for change in find_changes(actual, lines)
            if _count_nonblank(lines[change.new_start : change.new_end]) * SHORTENED <= change.end - change.start
            for line in actual[change.start : change.end]
            if line
        ]
        names, gone = (len(_NAME.findall("\n".join(part))) for part in (actual, dropped))
        fewer = _count_nonblank(actual) - _count_nonblank(lines)
        if fewer >= MIN_DROPPED and gone >= MAX_DROPPED * names and not self._has_sure_ends(lines, actual):
            return f"lines {span.start + 1}-{span.end} would be replaced with {fewer} fewer lines"
        return ""


def _count_letters_in_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the number of letters before the first line that differs."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    return sum(count_letters(line) for line, _ in pairs)


def _are_similar(block: Sequence[str], other: Sequence[str]) -> bool:
    left, right = ([line.strip() for line in part if line] for part in (block, other))
    return ratio("\n".join(left), "\n".join(right[: len(left)])) >= SIMILAR


def _contains(span: Placement, other: Placement) -> bool:
    return span.start <= other.start and other.end <= span.end


def _compute_best_totals(candidates: Sequence[Sequence[Placement]]) -> list[list[float]]:
    """Return for each span the best total score of a choice that contains it, or minus infinity.

    A choice has one span for each piece, in the order of the pieces and without overlap.
    """
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


def _build_key(line: str) -> tuple[str, ...]:
    """Return the depth and the first words of a line, which identify its declaration; () for fewer than three words."""
    words = () if line.lstrip().startswith(("@", "}", ")", "]")) else _NAME.findall(line)[:KEY_WORDS]
    return (get_indent(line), *words) if len(words) > 2 else ()


def _count_nonblank(lines: Sequence[str]) -> int:
    return sum(bool(line.strip()) for line in lines)
