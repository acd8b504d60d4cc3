"""Old text that stands in the document only roughly: lines missing, left out, wrapped or misspelt.

Lines that stand in both, and lines that are very alike, say where to look
(*seeds*). There the old lines are aligned with those of the document (`rows`).
Nothing is decided here: `objections` and `acceptance` judge the candidates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rapidfuzz import fuzz, process

from adapter.edits.rows import WRAPPED, Match, Rows, TooCostlyError, rows_of
from adapter.edits.search import Search
from adapter.edits.similarity import MAX_COMPARED, Comparison
from adapter.edits.steps import Step, with_gaps
from adapter.values.fields import frozen

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


@frozen
class Candidate:
    """A stretch of the document that may be meant. ``score`` is 1 when every line is
    there; ``compared`` says how each old line that was found fits."""

    steps: tuple[Step, ...]
    score: float
    compared: dict[int, Comparison]
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

    def is_apart_from(self, other: Candidate) -> bool:
        return self.last_line < other.first_line or other.last_line < self.first_line


def align(search: Search, old: Sequence[str], hint: int | None) -> list[Candidate]:
    """The candidates for ``old``, best first; ``hint`` is a 0-based line. Empty when it would cost too much."""
    aligner = _Aligner(search, old)
    if not aligner.rows or len(aligner.rows) > MAX_ROWS or not search.filled:
        return []
    found: dict[tuple[int, int], Candidate] = {}
    try:
        for window in aligner.windows(hint):
            for candidate in aligner.candidates(window):
                span = (candidate.first_line, candidate.last_line)
                if span not in found or found[span].score < candidate.score:
                    found[span] = candidate
    except TooCostlyError:
        return []
    return sorted(found.values(), key=lambda candidate: (-candidate.score, candidate.first_line))


class _Aligner:
    def __init__(self, search: Search, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.rows = rows_of(old)
        self.aligned = Rows(search, self.rows)
        self.keys = [row.key for row in self.rows]
        self.total = sum(row.weight for row in self.rows)

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
            yield range(max(0, start - slack), min(len(self.search.filled), start + size + slack + reach))

    def _votes(self, hint: int | None) -> dict[int, float]:
        """Where the text would start, by how much of it says so."""
        votes: dict[int, float] = defaultdict(float)
        seeded = 0.0
        absent: list[int] = []
        for number, row in enumerate(self.rows):
            places = self.search.places(row.key)
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
            votes[bisect_left(self.search.filled, line) - number] += weight / len(lines)

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

    def candidates(self, window: range) -> Iterator[Candidate]:
        """The best alignment in ``window`` and, beside it, its rivals."""
        best = self.aligned.best(window)
        if best is None:
            return
        yield self._candidate(*best)
        matches = best[1]
        for side in (range(window.start, matches[0].at), range(matches[-1].at_stop, window.stop)):
            rival = self.aligned.best(side) if 2 * len(side) >= len(self.rows) else None
            if rival is not None:
                yield self._candidate(*rival)

    def _candidate(self, score: float, matches: Sequence[Match]) -> Candidate:
        filled = self.search.filled
        steps = []
        compared: dict[int, Comparison] = {}
        for match in matches:
            first, last = self.rows[match.row].old_line, self.rows[match.row_stop - 1].old_line
            steps.append(Step(first, last + 1, filled[match.at], filled[match.at_stop - 1] + 1))
            for row in range(match.row, match.row_stop):
                compared[self.rows[row].old_line] = self._comparison(match, row)
        missing = len(self.rows) - len(compared)
        return Candidate(tuple(with_gaps(self.search, self.old, steps)), score / self.total, compared, missing)

    def _comparison(self, match: Match, row: int) -> Comparison:
        if match.row_stop - match.row == 1 == match.at_stop - match.at:
            return self.search.comparer.compare(self.keys[row], self._key_at(match.at))
        return Comparison(WRAPPED)

    def _key_at(self, at: int) -> str:
        return self.search.keys[self.search.filled[at]]
