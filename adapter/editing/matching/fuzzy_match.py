"""Find fuzzy matches of an old text in which lines are missing, elided, wrapped or misspelled.

Equal and very similar lines (*seeds*) suggest windows of the document. In each window, dynamic programming aligns the
old lines with the document's non-blank lines, in order. In large windows, lines that are unique on both sides are
paired first (*anchors*, as in patience diff), so that only the gaps between them are aligned. `acceptance` then chooses
among the candidates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.line_alignment import WRAPPED, Gap, OldLine, RowMatch
from adapter.editing.matching.line_mapping import LineMapping, add_gaps
from adapter.editing.matching.line_similarity import MAX_COMPARED, LineComparison
from adapter.editing.matching.normalize import normalize_line
from adapter.editing.repairs.omission_markers import is_elision

MAX_WINDOWS = 10
"""Maximum number of windows to align: the best one, and enough others to show that the best is unique."""
MIN_SLACK, MAX_SLACK = 8, 60
"""Minimum and maximum number of lines that are added before and after a window."""
MAX_SEED_PLACES = 40
"""Maximum number of occurrences of a line that serves as a seed."""
MAX_SIMILAR_SEEDS = 4
"""Maximum number of searches for lines similar to an old line, because each search reads the whole document."""
MIN_SEED_LIKENESS = 65.0
MIN_SEED_CHARACTERS = 4
MAX_ROWS = 3_000
"""Maximum number of old lines to align."""
REACH = 250
"""Maximum number of lines that a ``...`` may elide."""
MAX_COST = 1_500_000
"""Maximum number of cells in the tables of the dynamic programming for one old text: about a second. A search that
needs more is abandoned, because a partial one could miss the best match."""
MAX_WHOLE_CELLS = 300
"""Maximum number of cells in the table of a window that is aligned without anchors."""


@dataclass(frozen=True, slots=True)
class MatchCandidate:
    """A possible match. ``score`` is 1 if the document has every line.

    ``steps`` map all old lines, in order, to lines of the document. ``compared`` maps the index of each old line that
    was found to its comparison with the document's line.
    """

    steps: tuple[LineMapping, ...]
    score: float
    compared: dict[int, LineComparison]
    missing: int
    """Number of old lines that are missing in the document. Blank and elided lines do not count."""

    @property
    def mismatches(self) -> int:
        """Number of differences in meaning between the old text and the document."""
        return self.conflicts + self.missing

    @property
    def first_line(self) -> int:
        return next(step.line_start for step in self.steps if step.line_start < step.line_stop)

    @property
    def last_line(self) -> int:
        return max(step.line_stop for step in self.steps) - 1

    @property
    def conflicts(self) -> int:
        return sum(comparison.conflicts for comparison in self.compared.values())

    def is_apart_from(self, other: MatchCandidate) -> bool:
        return not self.is_at(other.first_line, other.last_line)

    def is_at(self, first_line: int, last_line: int) -> bool:
        """Return whether the match includes any of the lines ``first_line`` to ``last_line``."""
        return self.first_line <= last_line and first_line <= self.last_line


class TooCostlyError(Exception):
    """Raised if the search would cost more than `MAX_COST`."""


def _list_old_lines(old: Sequence[str]) -> list[OldLine]:
    """Return the lines of ``old`` that are neither blank nor omissions such as ``...``. Short lines weigh less."""
    rows: list[OldLine] = []
    is_free = False
    for index, line in enumerate(old):
        key = normalize_line(line)
        if not key:
            continue
        if is_elision(line):
            is_free = bool(rows)
            continue
        rows.append(OldLine(index, key, 0.25 + 0.75 * min(len(key), 32) / 32, is_free))
        is_free = False
    return rows


def find_fuzzy_matches(search: DocumentIndex, old: Sequence[str], hint: int | None) -> list[MatchCandidate]:
    """Return the candidates for ``old``, best first. There are none if the search would exceed `MAX_COST`.

    ``hint`` is the 0-based line where the old text is expected, or None.
    """
    matcher = _Matcher(search, old)
    if not matcher.rows or len(matcher.rows) > MAX_ROWS or not search.nonblank_lines:
        return []
    found: dict[tuple[int, int], MatchCandidate] = {}
    try:
        for window in matcher.list_windows(hint):
            for candidate in matcher.find_candidates(window):
                span = (candidate.first_line, candidate.last_line)
                if span not in found or found[span].score < candidate.score:
                    found[span] = candidate
    except TooCostlyError:
        return []
    return sorted(found.values(), key=lambda candidate: (-candidate.score, candidate.first_line))


class _Matcher:
    """Aligns one old text with as many windows of the document as `MAX_COST` allows."""

    def __init__(self, search: DocumentIndex, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.rows = _list_old_lines(old)
        self.keys = [row.key for row in self.rows]
        self.total = sum(row.weight for row in self.rows)
        self._cost = 0

    def add_cost(self, cost: int) -> None:
        """Add to the cost. Raises TooCostlyError if it exceeds `MAX_COST`."""
        self._cost += cost
        if self._cost > MAX_COST:
            raise TooCostlyError

    def list_windows(self, hint: int | None) -> Iterator[range]:
        """Yield ranges of non-blank lines to align, the most promising first."""
        votes = self._collect_votes(hint)
        size = len(self.rows)
        reach = REACH if any(row.is_free for row in self.rows) else 0
        slack = max(MIN_SLACK, min(size // 4, MAX_SLACK))
        seen: list[int] = []
        for start, _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
            if len(seen) >= MAX_WINDOWS:
                return
            if any(abs(start - other) <= slack // 2 for other in seen):
                continue
            seen.append(start)
            yield range(max(0, start - slack), min(len(self.search.nonblank_lines), start + size + slack + reach))

    def _collect_votes(self, hint: int | None) -> dict[int, float]:
        """Map each possible start line to the total weight of the old lines that suggest it."""
        votes: dict[int, float] = defaultdict(float)
        seeded_weight = 0.0
        unmatched: list[int] = []
        for number, row in enumerate(self.rows):
            places = self.search.find_lines_with_key(row.key)
            if not places:
                unmatched.append(number)
            elif len(places) <= MAX_SEED_PLACES:
                seeded_weight += row.weight
                self._vote(votes, number, places, row.weight)
            elif hint is not None:
                nearest = bisect_left(places, hint)
                self._vote(votes, number, places[max(0, nearest - 2) : nearest + 2], row.weight)
        if seeded_weight < self.total / 2:
            unmatched.sort(key=lambda number: -len(self.keys[number]))
            for number in unmatched[:MAX_SIMILAR_SEEDS]:
                self._vote(votes, number, self._find_similar(self.keys[number]), self.rows[number].weight / 2)
        return votes

    def _vote(self, votes: dict[int, float], number: int, lines: Sequence[int], weight: float) -> None:
        for line in lines:
            votes[bisect_left(self.search.nonblank_lines, line) - number] += weight / len(lines)

    def _find_similar(self, key: str) -> list[int]:
        if not MIN_SEED_CHARACTERS <= len(key) <= MAX_COMPARED:
            return []
        return [line for _, likeness, line in self.search.find_similar(key) if likeness >= MIN_SEED_LIKENESS]

    def find_candidates(self, window: range) -> Iterator[MatchCandidate]:
        """Yield the best alignment in ``window``, and the best alignments above and below it."""
        best = self._align_best(window)
        if best is None:
            return
        yield self._build_candidate(*best)
        matches = best[1]
        for side in (range(window.start, matches[0].at), range(matches[-1].at_stop, window.stop)):
            rival = self._align_best(side) if 2 * len(side) >= len(self.rows) else None
            if rival is not None:
                yield self._build_candidate(*rival)

    def _build_candidate(self, score: float, matches: Sequence[RowMatch]) -> MatchCandidate:
        nonblank_lines, keys = self.search.nonblank_lines, self.search.keys
        steps = []
        compared: dict[int, LineComparison] = {}
        for match in matches:
            rows = self.rows[match.row : match.row_stop]
            first, last = nonblank_lines[match.at], nonblank_lines[match.at_stop - 1]
            steps.append(LineMapping(rows[0].old_line, rows[-1].old_line + 1, first, last + 1))
            is_pair = len(rows) == 1 == match.at_stop - match.at
            comparison = self.search.comparer.compare(rows[0].key, keys[first]) if is_pair else LineComparison(WRAPPED)
            compared |= {row.old_line: comparison for row in rows}
        missing = len(self.rows) - len(compared)
        return MatchCandidate(tuple(add_gaps(self.search, self.old, steps)), score / self.total, compared, missing)

    def _align_best(self, window: range) -> tuple[float, list[RowMatch]] | None:
        """Return the score and the matches of the best alignment in ``window``, or None if no line matches. Raises
        TooCostlyError."""
        keys = [self.search.keys[self.search.nonblank_lines[at]] for at in window]
        anchors = _pair_unique_lines(self.keys, keys) if len(self.rows) * len(window) > MAX_WHOLE_CELLS else []
        score, matches = 0.0, list[RowMatch]()
        row, at = 0, 0
        for anchor_row, anchor_at in [*anchors, (len(self.rows), len(keys))]:
            is_last = anchor_row == len(self.rows)
            span = range(row, anchor_row), range(at, anchor_at)
            gap = Gap(self.search.comparer, self.rows, keys, *span, row == 0, is_last)
            gained, found = gap.align(self.add_cost)
            score += gained
            matches += found
            if not is_last:
                score += self.rows[anchor_row].weight
                matches.append(RowMatch(anchor_row, anchor_row + 1, anchor_at, anchor_at + 1))
            row, at = anchor_row + 1, anchor_at + 1
        start = window.start
        moved = [match._replace(at=match.at + start, at_stop=match.at_stop + start) for match in matches]
        return (score, moved) if moved else None


def _pair_unique_lines(rows: Sequence[str], keys: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of lines that are unique on both sides and in the same order."""
    in_rows, in_keys = Counter(rows), Counter(keys)
    unique = {key for key in in_rows if in_rows[key] == 1 == in_keys[key]}
    left, right = ([at for at, key in enumerate(side) if key in unique] for side in (rows, keys))
    codes = LCSseq.opcodes([rows[at] for at in left], [keys[at] for at in right])
    return [
        pair
        for code in codes
        if code.tag == "equal"
        for pair in zip(left[code.src_start : code.src_end], right[code.dest_start : code.dest_end], strict=True)
    ]
