"""Find where an old text is in the document only roughly: lines missing, left out, wrapped or misspelt.

Lines that are in both, and lines that are very alike, say where to look (*seeds*). There the old lines are aligned
with those of the document, both in order: by dynamic programming over lines that are not blank; where both have many
lines, the ones that are unique on either side are fixed (*anchors*, as in patience diff), so that only the gaps
between them cost. Nothing is decided here: `acceptance` judges the candidates.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import LCSseq

from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.line_mapping import LineMapping, add_gaps
from adapter.editing.matching.line_similarity import LOOSE_SIMILARITY, MAX_COMPARED, LineComparison
from adapter.editing.matching.normalize import is_comment, lenient_line, normalized_line
from adapter.editing.repairs.interpretations import is_elision

MAX_WINDOWS = 10
"""Places that are looked at closely: the best, and enough rivals to see that it is alone."""
MIN_SLACK, MAX_SLACK = 8, 60
"""Lines that are looked at before and after the place that the seeds say."""
MAX_SEED_PLACES = 40
"""A line that stands in more places than this does not say where to look."""
MAX_SIMILAR_SEEDS = 4
"""Lines that are sought by likeness; each costs a pass over the document."""
MAX_SHARING = 200
"""Lines that may share a word with a text of one line for that to be a faster way."""
MIN_SEED_LIKENESS = 65.0
MIN_SEED_CHARACTERS = 4
MAX_ROWS = 3_000
"""Lines of a place that is aligned; longer ones are not compared."""
REACH = 250
"""Lines that a ``...`` may stand for."""
MIN_LIKENESS = 60.0
"""Percent; below it two lines are never the same one."""
MIN_PAIR = 0.4
MAX_COST = 1_500_000
"""Table cells filled for one text: about a second. Above it the text counts as not found,
for rivals would go unseen."""
COMPARISON_COST = 25
"""Cells that comparing two lines word by word is worth."""
MAX_WHOLE_CELLS = 300
"""Up to here a window is aligned as a whole, above it between anchors."""
MAX_WRAPPED = 4
"""Lines that may have been joined to one, or one split into."""

SKIP = 0.45
"""What an unmentioned line costs, as a share of a full old line."""
SKIP_COMMENT = 0.25
MISS = 0.3
"""What an old line costs that is not there, beyond what it does not gain."""
WRAPPED = 0.96
_LONE_COMMA = re.compile(r",(?=[)\]}])")


@dataclass(frozen=True, slots=True)
class MatchCandidate:
    """A stretch of the document that may be meant. ``score`` is 1 when every line is
    there; ``compared`` says how each old line that was found fits."""

    steps: tuple[LineMapping, ...]
    score: float
    compared: dict[int, LineComparison]
    missing: int
    """Old lines, neither blank nor elided, that are not there."""

    @property
    def flaws(self) -> int:
        """How often the old text and the document say different things."""
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
        return self.last_line < other.first_line or other.last_line < self.first_line


class TooCostlyError(Exception):
    """`MAX_COST` was spent."""


class OldLine(NamedTuple):
    """An old line that says something; ``is_free``: lines were left out before it."""

    old_line: int
    key: str
    weight: float
    is_free: bool


class RowMatch(NamedTuple):
    """Rows ``row:row_stop`` stand at positions ``at:at_stop`` of the filled lines."""

    row: int
    row_stop: int
    at: int
    at_stop: int


def _old_lines(old: Sequence[str]) -> list[OldLine]:
    """The lines of ``old`` that are neither blank nor elided; short ones weigh less."""
    rows: list[OldLine] = []
    is_free = False
    for index, line in enumerate(old):
        key = normalized_line(line)
        if not key:
            continue
        if is_elision(line):
            is_free = bool(rows)
            continue
        rows.append(OldLine(index, key, 0.25 + 0.75 * min(len(key), 32) / 32, is_free))
        is_free = False
    return rows


def find_fuzzy_matches(search: DocumentIndex, old: Sequence[str], hint: int | None) -> list[MatchCandidate]:
    """Return the candidates for ``old``, best first; ``hint`` is a 0-based line. Empty when it would cost too much."""
    matcher = _Matcher(search, old)
    if not matcher.rows or len(matcher.rows) > MAX_ROWS or not search.nonblank_lines:
        return []
    found: dict[tuple[int, int], MatchCandidate] = {}
    try:
        for window in matcher.windows(hint):
            for candidate in matcher.candidates(window):
                span = (candidate.first_line, candidate.last_line)
                if span not in found or found[span].score < candidate.score:
                    found[span] = candidate
    except TooCostlyError:
        return []
    return sorted(found.values(), key=lambda candidate: (-candidate.score, candidate.first_line))


class _Matcher:
    """One old text, aligned with as many windows of the document as `MAX_COST` allows."""

    def __init__(self, search: DocumentIndex, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.rows = _old_lines(old)
        self.keys = [row.key for row in self.rows]
        self.total = sum(row.weight for row in self.rows)
        self._cost = 0

    def spend(self, cost: int) -> None:
        """Raises TooCostlyError."""
        self._cost += cost
        if self._cost > MAX_COST:
            raise TooCostlyError

    # ------------------------------------------------------------------ where to look

    def windows(self, hint: int | None) -> Iterator[range]:
        """Stretches of filled lines worth a look, the most promising first."""
        votes = self._votes(hint)
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

    def _votes(self, hint: int | None) -> dict[int, float]:
        """Where the text would start, by how much of it says so."""
        votes: dict[int, float] = defaultdict(float)
        seeded = 0.0
        absent: list[int] = []
        for number, row in enumerate(self.rows):
            places = self.search.lines_with_key(row.key)
            if not places:
                absent.append(number)
            elif len(places) <= MAX_SEED_PLACES:
                seeded += row.weight
                self._vote(votes, number, places, row.weight)
            elif hint is not None:
                nearest = bisect_left(places, hint)
                self._vote(votes, number, places[max(0, nearest - 2) : nearest + 2], row.weight)
        if seeded < self.total / 2:
            absent.sort(key=lambda number: -len(self.keys[number]))
            for number in absent[:MAX_SIMILAR_SEEDS]:
                self._vote(votes, number, self._similar(self.keys[number]), self.rows[number].weight / 2)
        return votes

    def _vote(self, votes: dict[int, float], number: int, lines: Sequence[int], weight: float) -> None:
        for line in lines:
            votes[bisect_left(self.search.nonblank_lines, line) - number] += weight / len(lines)

    def _similar(self, key: str) -> list[int]:
        if not MIN_SEED_CHARACTERS <= len(key) <= MAX_COMPARED:
            return []
        found = self._similar_sharing(key) if len(self.rows) == 1 else None
        if found is None:
            found = self.search.similar(key)
        return [line for _, likeness, line in found if likeness >= MIN_SEED_LIKENESS]

    def _similar_sharing(self, key: str) -> list[tuple[str, float, int]] | None:
        """As ``search.similar``, of the lines that share a number or a known word: a lone line
        with another one would be in conflict. None when that is no help: words are sought as they
        are spelled, so only where nothing is folded."""
        if not self.search.document.view.isascii():
            return None
        found = (self.search.lines_with(word, MAX_SHARING) for word in self.search.comparer.settled_words(key))
        lines = next((some for some in found if some is not None), None)
        if lines is None:
            return None
        keys = {line: self.search.keys[line] for line in lines}
        return process.extract(key, keys, scorer=fuzz.ratio, score_cutoff=MIN_SEED_LIKENESS, limit=MAX_WINDOWS)

    # --------------------------------------------------------------------- aligning

    def candidates(self, window: range) -> Iterator[MatchCandidate]:
        """The best alignment in ``window`` and, beside it, its rivals."""
        best = self._best(window)
        if best is None:
            return
        yield self._candidate(*best)
        matches = best[1]
        for side in (range(window.start, matches[0].at), range(matches[-1].at_stop, window.stop)):
            rival = self._best(side) if 2 * len(side) >= len(self.rows) else None
            if rival is not None:
                yield self._candidate(*rival)

    def _candidate(self, score: float, matches: Sequence[RowMatch]) -> MatchCandidate:
        filled, keys = self.search.nonblank_lines, self.search.keys
        steps = []
        compared: dict[int, LineComparison] = {}
        for match in matches:
            rows = self.rows[match.row : match.row_stop]
            first, last = filled[match.at], filled[match.at_stop - 1]
            steps.append(LineMapping(rows[0].old_line, rows[-1].old_line + 1, first, last + 1))
            is_pair = len(rows) == 1 == match.at_stop - match.at
            found = self.search.comparer.compare(rows[0].key, keys[first]) if is_pair else LineComparison(WRAPPED)
            compared |= {row.old_line: found for row in rows}
        missing = len(self.rows) - len(compared)
        return MatchCandidate(tuple(add_gaps(self.search, self.old, steps)), score / self.total, compared, missing)

    def _best(self, window: range) -> tuple[float, list[RowMatch]] | None:
        """Score and matches of the best alignment of all rows somewhere in ``window`` of the filled lines.

        None when none is there. Raises TooCostlyError.
        """
        keys = [self.search.keys[self.search.nonblank_lines[at]] for at in window]
        anchors = _anchors(self.keys, keys) if len(self.rows) * len(window) > MAX_WHOLE_CELLS else []
        score, matches = 0.0, list[RowMatch]()
        row, at = 0, 0
        for anchor_row, anchor_at in [*anchors, (len(self.rows), len(keys))]:
            is_last = anchor_row == len(self.rows)
            gap = _Gap(self, keys, range(row, anchor_row), range(at, anchor_at), row == 0, is_last)
            gained, found = gap.run()
            score += gained
            matches += found
            if not is_last:
                score += self.rows[anchor_row].weight
                matches.append(RowMatch(anchor_row, anchor_row + 1, anchor_at, anchor_at + 1))
            row, at = anchor_row + 1, anchor_at + 1
        start = window.start
        moved = [match._replace(at=match.at + start, at_stop=match.at_stop + start) for match in matches]
        return (score, moved) if moved else None


def _anchors(rows: Sequence[str], keys: Sequence[str]) -> list[tuple[int, int]]:
    """Lines unique on both sides, as far as they are in the same order."""
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


_PAIR, _MISS_ROW, _SKIP_LINE = -1, -2, -3


class _Gap:
    """Rows against lines of a window, both in order. ``is_head``: lines before the first
    row are free; ``is_tail``: lines after the last."""

    def __init__(
        self, whole: _Matcher, keys: Sequence[str], rows: range, ats: range, is_head: bool, is_tail: bool
    ) -> None:
        self.search = whole.search
        self.spend = whole.spend
        self.all_rows = whole.rows
        self.rows, self.ats = rows, ats
        self.keys = [keys[at] for at in ats]
        self.is_head, self.is_tail = is_head, is_tail
        self.is_free_after = not is_tail and rows.stop < len(whole.rows) and whole.rows[rows.stop].is_free

    def run(self) -> tuple[float, list[RowMatch]]:
        self.spend(len(self.rows) * len(self.keys))
        skips = [SKIP_COMMENT if is_comment(key) else SKIP for key in self.keys]
        width = len(self.keys)
        row_scores = [0.0] * (width + 1)
        if not self.is_head and not self._is_free(0):
            for column in range(width):
                row_scores[column + 1] = row_scores[column] - skips[column]
        table = [row_scores]
        moves: list[list[int]] = [[_SKIP_LINE] * (width + 1)]
        wraps = self._wraps
        for number in range(1, len(self.rows) + 1):
            row = self.all_rows[self.rows[number - 1]]
            gains = self._gains(row)
            before, scores, chosen = table[-1], [0.0] * (width + 1), [_MISS_ROW] * (width + 1)
            miss, is_free = MISS * row.weight, self._is_free(number)
            scores[0] = before[0] - miss
            for column in range(1, width + 1):
                best, move = before[column] - miss, _MISS_ROW
                skipped = scores[column - 1] - (0.0 if is_free else skips[column - 1])
                if skipped > best:
                    best, move = skipped, _SKIP_LINE
                gain = gains.get(column - 1)
                if gain is not None and before[column - 1] + gain >= best:
                    best, move = before[column - 1] + gain, _PAIR
                for up, left, value in wraps.get((number, column), ()):
                    if table[number - up][column - left] + value > best:
                        best, move = table[number - up][column - left] + value, up * 16 + left
                scores[column], chosen[column] = best, move
            table.append(scores)
            moves.append(chosen)
        last = table[-1]
        end = last.index(max(last)) if self.is_tail else width
        return last[end], self._traced(moves, end)

    def _is_free(self, number: int) -> bool:
        """Whether lines between row ``number - 1`` and row ``number`` of this gap were left out."""
        if number < len(self.rows):
            return self.all_rows[self.rows[number]].is_free
        return self.is_free_after

    def _gains(self, row: OldLine) -> dict[int, float]:
        gains: dict[int, float] = {}
        compare = self.search.comparer.compare
        alike = process.extract(row.key, self.keys, scorer=fuzz.ratio, score_cutoff=MIN_LIKENESS, limit=None)
        self.spend(COMPARISON_COST * len(alike))
        for key, likeness, column in alike:
            similarity = 1.0 if likeness == 100 and key == row.key else compare(row.key, key).similarity
            if similarity >= MIN_PAIR:
                gains[column] = row.weight * similarity
        for column in self._by_loose_key.get(lenient_line(row.key), ()):
            gains.setdefault(column, row.weight * LOOSE_SIMILARITY)
        return gains

    @cached_property
    def _by_loose_key(self) -> dict[str, list[int]]:
        columns: dict[str, list[int]] = {}
        for column, key in enumerate(self.keys):
            columns.setdefault(lenient_line(key), []).append(column)
        return columns

    @cached_property
    def _wraps(self) -> dict[tuple[int, int], list[tuple[int, int, float]]]:
        """Several rows that are one line, and lines that are one row, by where they end."""
        present = set(self.keys)
        squeezed = [_squeezed(key) for key in self.keys]
        rows = [self.all_rows[row] for row in self.rows]
        texts = [_squeezed(row.key) for row in rows]
        wraps: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        for start, row in enumerate(rows):
            if row.key in present:
                continue
            for column, line in enumerate(squeezed):
                if line != texts[start] and texts[start].startswith(line):
                    count = _run(texts[start], squeezed[column : column + MAX_WRAPPED])
                    if count:
                        ends = (start + 1, column + count)
                        wraps.setdefault(ends, []).append((1, count, row.weight * WRAPPED))
                elif line != texts[start] and line.startswith(texts[start]):
                    count = _run(line, texts[start : start + MAX_WRAPPED])
                    if count:
                        weight = sum(other.weight for other in rows[start : start + count])
                        wraps.setdefault((start + count, column + 1), []).append((count, 1, weight * WRAPPED))
        return wraps

    def _traced(self, moves: Sequence[Sequence[int]], end: int) -> list[RowMatch]:
        found: list[RowMatch] = []
        number, column = len(self.rows), end
        while number > 0:
            move = moves[number][column]
            if move == _MISS_ROW:
                number -= 1
            elif move == _SKIP_LINE:
                column -= 1
            else:
                up, left = (1, 1) if move == _PAIR else divmod(move, 16)
                row, at = self.rows.start + number, self.ats.start + column
                found.append(RowMatch(row - up, row, at - left, at))
                number, column = number - up, column - left
        return found[::-1]


def _squeezed(key: str) -> str:
    return key.replace(" ", "")


def _run(whole: str, parts: Sequence[str]) -> int:
    """How many of ``parts``, at least two, give ``whole`` when joined."""
    text = ""
    for count, part in enumerate(parts, start=1):
        text += part
        if count > 1 and _LONE_COMMA.sub("", text) == _LONE_COMMA.sub("", whole):
            return count
        if len(text) > len(whole) + MAX_WRAPPED:
            return 0
    return 0
