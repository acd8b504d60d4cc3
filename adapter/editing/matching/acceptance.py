"""Decide whether a fuzzy match is good enough to edit; when in doubt, reject it.

An edit in the wrong place costs far more than a rejection that shows the lines. `VETOES` lists every reason
against a match, in the order in which they are tried. Lines to remove must be there exactly, and so must those
that say where the change is: the lines beside it and the blocks that it is in. Other lines may differ as long as
the match scores high enough for its distinctive lines and clearly leads every other candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from adapter.core.text.diffs import LineChange, changes
from adapter.editing.document import format_line_list, format_line_range
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.fuzzy_match import REACH, WRAPPED, MatchCandidate
from adapter.editing.matching.line_mapping import LineMapping
from adapter.editing.matching.line_similarity import LOOSE_SIMILARITY
from adapter.editing.matching.normalize import (
    DISTINCTIVE_LETTERS,
    is_comment,
    is_distinctive,
    lenient_line,
    normalized_line,
)
from adapter.editing.repairs.interpretations import is_elision
from adapter.editing.repairs.reindent import indent_width

MIN_SCORES = ((4, 0.72), (2, 0.80), (1, 0.86), (0, 0.96))
"""Distinctive lines found, and the score that a match then needs."""
SURE_LETTERS = 16
"""Letters of a changed line that locates itself although the line beside it differs; ``address_family:`` does not."""
MIN_DISTINCTIVE_SIMILARITY = 0.85
MAX_DISTINCTIVE_PLACES = 2
"""A line that occurs more often than this does not say where it is."""
MIN_UNIQUE = 2
"""Exact lines that occur nowhere else, with which one kept line may differ."""
NEAR = 2
"""Lines around a match in which its own lines may be out of step."""
MAX_DRIFTED = 0.5
"""Share of the kept lines that may differ when the changed ones are beyond doubt."""
MARGIN = 0.06
"""Lead over the best rival that shows which match is meant."""
CLEAN_MARGIN = 0.3
"""Rivals this close must all have more flaws when the lead is smaller than ``MARGIN``."""
HINT_REACH = 200
"""Lines that a hint may be off."""


class RejectedMatch(NamedTuple):
    """``veto`` is the name of the row of `VETOES` that rejected a match."""

    veto: str
    reason: str


def accept_best_match(
    search: DocumentIndex,
    old: Sequence[str],
    new: Sequence[str],
    candidates: Sequence[MatchCandidate],
    hint: int | None,
) -> MatchCandidate | RejectedMatch:
    """Return the candidate that is meant, or why none is safe. ``candidates`` come best first."""
    match = _Features(search, old, new, candidates, hint)
    for name, find_reason in VETOES.items():
        if reason := find_reason(match):
            return RejectedMatch(name, reason)
    return match.best


def describe_match(search: DocumentIndex, old: Sequence[str], match: MatchCandidate) -> str:
    """Return one sentence about the differences that an accepted match tolerated."""
    differing = [index + 1 for index, found in match.compared.items() if found.similarity < 1]
    missing = [
        index + 1
        for index, line in enumerate(old)
        if normalized_line(line) and index not in match.compared and not is_elision(line)
    ]
    unmentioned = [
        step.line_start + 1
        for step in match.steps
        if step.is_unmentioned and any(search.keys[step.line_start : step.line_stop])
    ]
    parts = [
        f"{format_line_list(differing)} of the old text {'read' if len(differing) > 1 else 'reads'} differently there"
        if differing
        else "",
        f"{format_line_list(missing)} of the old text {_is(missing)} not there" if missing else "",
        f"{format_line_list(unmentioned)} of the file {_is(unmentioned)} not in the old text" if unmentioned else "",
        "'...' stood for the lines between" if any(step.is_elided for step in match.steps) else "",
    ]
    where = format_line_range(match.first_line + 1, match.last_line + 1)
    differences = ", ".join(filter(None, parts)) or "lines are broken differently"
    return f"the old text was matched to {where} although {differences}; the file's own lines were kept"


def _is(lines: Sequence[int]) -> str:
    return "are" if len(lines) > 1 else "is"


# --------------------------------------------------------------------------- features


class _Features:
    """The best candidate, its rivals, and the lines of it that the patch changes."""

    def __init__(
        self,
        search: DocumentIndex,
        old: Sequence[str],
        new: Sequence[str],
        candidates: Sequence[MatchCandidate],
        hint: int | None,
    ) -> None:
        self.search, self.old, self.candidates, self.hint = search, old, candidates, hint
        self.best = self._nearest_equal()
        self.compared = self.best.compared
        self.keys = [normalized_line(line) for line in old]
        self.filled = [row for row, key in enumerate(self.keys) if key]
        self.shown = [row for row in self.filled if not is_elision(old[row])]
        self.hunks = changes(old, new)
        self.removed = {row for hunk in self.hunks for row in _removed_rows(old, new, hunk)}
        self.lines = {step.old_start: step.line_start for step in self.best.steps if step.is_pair}
        self.unmentioned_code = [step for step in self.best.steps if step.is_unmentioned and self.has_code(step)]

    def _nearest_equal(self) -> MatchCandidate:
        """The best candidate; of several equals the one that the hint names."""
        best, hint = self.candidates[0], self.hint
        if hint is None:
            return best
        equals = [other for other in self.candidates if best.score - other.score < MARGIN and other.flaws <= best.flaws]
        return min(equals, key=lambda other: abs(other.first_line - hint))

    def has_code(self, step: LineMapping) -> bool:
        """Whether lines of the file other than blank lines and comments are in ``step``."""
        return any(key and not is_comment(key) for key in self.search.keys[step.line_start : step.line_stop])

    def places(self, row: int) -> Sequence[int]:
        return self.search.lines_with_key(self.keys[row])

    def actual(self, row: int) -> str:
        """The key of the file's line for ``row``, its own where none is paired with it."""
        return self.search.keys[self.lines[row]] if row in self.lines else self.keys[row]

    def is_moved(self, row: int) -> bool:
        return indent_width(self.old[row]) != indent_width(self.search.document.lines[self.lines[row]])

    def neighbours(self, hunk: LineChange) -> tuple[int | None, int | None]:
        """The nearest rows above and below a hunk that are not blank."""
        above = next((row for row in range(hunk.start - 1, -1, -1) if self.keys[row]), None)
        return above, next((row for row in range(hunk.end, len(self.old)) if self.keys[row]), None)

    def difference(self, row: int) -> str:
        """How a row of context differs in the file, empty when it is there."""
        found = self.compared.get(row)
        if is_elision(self.old[row]) or (found and not found.conflicts):
            return ""
        return "reads differently" if found else "is not"

    def is_located(self, row: int) -> bool:
        """Whether a row that was found says where it is."""
        found = self.compared[row]
        if found.conflicts or found.similarity < MIN_DISTINCTIVE_SIMILARITY or not is_distinctive(self.keys[row]):
            return False
        return max(len(self.places(row)), len(self.search.lines_with_key(self.actual(row)))) <= MAX_DISTINCTIVE_PLACES

    def count_unique(self) -> int:
        """Rows that occur exactly here and nowhere else."""
        exact = (row for row, found in self.compared.items() if found.similarity >= LOOSE_SIMILARITY)
        return sum(len(self.places(row)) == 1 for row in exact if self.is_located(row))

    def is_change_beyond_doubt(self) -> bool:
        """Whether every hunk touches exact lines that occur nowhere else, and there are several such lines."""
        return self.count_unique() >= MIN_UNIQUE and bool(self.hunks) and all(map(self.is_beyond_doubt, self.hunks))

    def is_beyond_doubt(self, hunk: LineChange, letters: int = DISTINCTIVE_LETTERS) -> bool:
        rows: Iterable[int | None] = range(hunk.start, hunk.end) if hunk.start < hunk.end else self.neighbours(hunk)
        block = [row for row in rows if row is not None and self.keys[row]]
        if any(row not in self.compared or self.compared[row].similarity < LOOSE_SIMILARITY for row in block):
            return False
        sure = (row for row in block if is_distinctive(self.keys[row], letters))
        return any(self.is_located(row) and len(self.places(row)) == 1 for row in sure)

    def is_hinted(self, first: int, others: Iterable[int]) -> bool:
        """Whether the line hint is near ``first`` and nearer to it than to all others."""
        if self.hint is None or abs(first - self.hint) > HINT_REACH:
            return False
        return all(abs(first - self.hint) < abs(other - self.hint) for other in others)


def _removed_rows(old: Sequence[str], new: Sequence[str], hunk: LineChange) -> range:
    """The rows that a hunk removes, or might as well: a block that ends as it began, or as the
    line before it does, can be taken out or put in one line further up or down."""
    moving = old[hunk.start : hunk.end] or new[hunk.new_start : hunk.new_end]
    if hunk.start < hunk.end and hunk.new_start < hunk.new_end:
        return range(hunk.start, hunk.end)
    up = down = 0
    while hunk.start - up > 0 and old[hunk.start - up - 1] == moving[-1 - up % len(moving)]:
        up += 1
    while hunk.end + down < len(old) and old[hunk.end + down] == moving[down % len(moving)]:
        down += 1
    return range(hunk.start - up, hunk.end + down)


# ----------------------------------------------------------------------------- vetoes


def _changed_line(match: _Features) -> str:
    """A line to be changed must be there, but for a slip that no other difference makes doubtful."""
    for row in match.filled:
        if row not in match.removed:
            continue
        if is_elision(match.old[row]):
            return "the new text drops the '...' of the old text, which stands for lines that are not shown"
        if row not in match.compared:
            return f"line {row + 1} of the old text is to be changed and is not there"
        key, actual = match.keys[row], match.actual(row)
        has_other_marks = len(match.filled) == 1 and _marks(key) != _marks(actual)
        if match.compared[row].conflicts or _brackets(match.old[row]) != _brackets(actual) or has_other_marks:
            return f"line {row + 1} of the old text is to be changed and reads differently there"
        if match.best.flaws and lenient_line(key) != lenient_line(actual):
            return f"line {row + 1} of the old text is to be changed and reads differently there, and so do others"
        if _is_moved_alone(match, row):
            return f"line {row + 1} of the old text is to be changed and is indented differently there"
    return ""


def _brackets(line: str) -> str:
    return re.sub(r"[^()\[\]{}]", "", line)


def _marks(key: str) -> str:
    return re.sub(r"\w", "", lenient_line(key))


def _is_moved_alone(match: _Features, row: int) -> bool:
    """A closing bracket or the like, at another depth while all distinctive lines keep theirs."""
    if row not in match.lines or is_distinctive(match.keys[row]) or not match.is_moved(row):
        return False
    distinctive = [row for row in match.lines if is_distinctive(match.keys[row])]
    return bool(distinctive) and not any(map(match.is_moved, distinctive))


def _elided_twin(match: _Features) -> str:
    """After a ``...`` the lines must be the only ones of their kind within reach."""
    for hunk in match.hunks:
        start = next((row for row in range(hunk.start - 1, -1, -1) if is_elision(match.old[row])), None)
        if start is None:
            continue
        stop = next((row for row in range(hunk.end, len(match.old)) if is_elision(match.old[row])), len(match.old))
        keys = [key for key in match.keys[start + 1 : stop] if key]
        step = next(step for step in match.best.steps if step.old_start <= start < step.old_stop)
        reach = range(step.line_start, step.line_stop + len(keys) + REACH)
        within = [first for first, _ in match.search.find_lines(keys) if first in reach]
        if len(within) > 1:
            return f"after the '...' the lines to change match {len(within)} places ({_listed(within)})"
    return ""


def _displaced(match: _Features) -> str:
    """A line that does not fit here and is found elsewhere shows that elsewhere is meant."""
    near = range(match.best.first_line - NEAR, match.best.last_line + NEAR + 1)
    for row in match.shown:
        places = match.places(row)
        found = match.compared.get(row)
        fits = found is not None and not found.conflicts and (found.similarity >= WRAPPED or not places)
        if fits or not is_distinctive(match.keys[row]) or any(line in near for line in places):
            continue
        if 0 < len(places) <= MAX_DISTINCTIVE_PLACES:
            return f"line {row + 1} of the old text stands elsewhere ({_listed(places)})"
    return ""


def _detached(match: _Features) -> str:
    """An unmentioned line of the file, right beside the change, must leave no doubt about the place."""
    for step in match.unmentioned_code:
        hunks = [hunk for hunk in match.hunks if step.old_start in (hunk.start, hunk.end)]
        if not all(match.is_beyond_doubt(hunk, SURE_LETTERS) for hunk in hunks):
            return f"line {step.line_start + 1} of the file, beside the change, is not in the old text"
    return ""


def _twin(match: _Features) -> str:
    """Where lines are missing on either side, the changed ones must not occur in several places."""
    if not match.unmentioned_code and not match.best.missing:
        return ""
    for hunk in match.hunks:
        above, below = match.neighbours(hunk)
        rows = range(hunk.start if above is None else above, hunk.end if below is None else below + 1)
        shown = (row for row in rows if match.keys[row] and not is_elision(match.old[row]))
        places = match.search.find_lines([match.keys[row] for row in shown])
        if len(places) > 1:
            where = _listed([first for first, _ in places])
            return f"the lines to change stand in {len(places)} places ({where}), and others do not fit"
    return ""


def _other_scope(match: _Features) -> str:
    """Lines above the change and indented less are what it is in: a function, a section, a key."""
    for hunk in match.hunks:
        rows = range(max(0, hunk.start - (hunk.start == hunk.end)), hunk.end)
        depth = min((indent_width(match.old[row]) for row in rows if match.keys[row]), default=0)
        for row in range(hunk.start - 1, -1, -1):
            if not match.keys[row] or indent_width(match.old[row]) >= depth:
                continue
            depth = indent_width(match.old[row])
            if difference := match.difference(row):
                return f"line {row + 1} of the old text, which the change is in, {difference} there"
    return ""


def _other_neighbour(match: _Features) -> str:
    """The lines right beside the change must be there, or the changed ones be beyond doubt themselves."""
    for hunk in match.hunks:
        for row in match.neighbours(hunk):
            difference = "" if row is None else match.difference(row)
            if row is not None and difference and not match.is_beyond_doubt(hunk, SURE_LETTERS):
                return f"line {row + 1} of the old text, beside the change, {difference} there"
    return ""


def _conflict(match: _Features) -> str:
    conflicting = [row for row, found in match.compared.items() if found.conflicts]
    drifted = len(conflicting) + sum(row not in match.compared for row in match.shown)
    if not conflicting or (drifted == 1 and match.count_unique() >= MIN_UNIQUE):
        return ""
    if drifted <= MAX_DRIFTED * len(match.shown) and match.is_change_beyond_doubt():
        return ""
    return f"line {conflicting[0] + 1} of the old text reads differently there"


def _nothing_exact(match: _Features) -> str:
    """Of several lines one at least must be there as it is written: slips do not befall all alike."""
    compared = match.compared.values()
    if len(compared) < 2 or any(found.similarity >= WRAPPED for found in compared):
        return ""
    return "each line of the old text reads differently there"


def _low_score(match: _Features) -> str:
    score = match.best.score
    distinctive = sum(map(match.is_located, match.compared))
    needed = next(needed for lines, needed in MIN_SCORES if distinctive >= lines)
    if score >= needed or _leaves_out_only_comments(match):
        return ""
    if score >= 1 - MAX_DRIFTED and match.is_change_beyond_doubt():
        return ""
    return f"it is only {max(0, round(100 * score))} % alike"


def _leaves_out_only_comments(match: _Features) -> bool:
    """Every line is there as written; only comments of the file are between."""
    is_there = all(row in match.lines and match.compared[row].similarity == 1 for row in match.shown)
    return is_there and not any(
        match.has_code(step) for step in match.best.steps if step.is_unmentioned or step.is_elided
    )


def _repeated(match: _Features) -> str:
    """The matched lines must be the only ones of their kind, or named by the hint."""
    keys = match.search.keys
    filled = [line for line in range(match.best.first_line, match.best.last_line + 1) if keys[line]]
    places = [first for first, _ in match.search.find_lines([keys[line] for line in filled])]
    if len(places) < 2 or match.is_hinted(filled[0], (first for first in places if first != filled[0])):
        return ""
    return f"the lines there stand in {len(places)} places ({_listed(places)})"


def _rivalled(match: _Features) -> str:
    """The match must lead every other candidate in score or in flaws, or be named by the hint."""
    best = match.best
    rivals = [other for other in match.candidates if other is not best and other.is_apart_from(best)]
    in_reach = [other for other in rivals if best.score - other.score < CLEAN_MARGIN]
    # Two that both differ in about as many lines: how much longer the differences of one are tells little.
    as_flawed = [other for other in in_reach if best.flaws > 0 and other.flaws <= best.flaws + 1]
    close = [other for other in rivals if best.score - other.score < MARGIN or other in as_flawed]
    if not close:
        return ""
    is_cleanest = not best.missing and all(other.flaws > best.flaws for other in in_reach)
    if is_cleanest and best.score >= close[0].score and not as_flawed:
        return ""
    if match.is_hinted(best.first_line, (other.first_line for other in close)):
        return ""
    places = sorted(candidate.first_line for candidate in (best, *close))
    return f"it resembles {len(places)} places alike ({_listed(places)})"


def _listed(lines: Sequence[int]) -> str:
    return format_line_list([line + 1 for line in lines])


Veto: TypeAlias = Callable[[_Features], str]
"""Return the reason against a match, or an empty string."""

LOW_SCORE = "low score"
VETOES: dict[str, Veto] = {
    "changed line": _changed_line,
    "elided twin": _elided_twin,
    "displaced": _displaced,
    "detached": _detached,
    "twin": _twin,
    "other scope": _other_scope,
    "other neighbour": _other_neighbour,
    "conflict": _conflict,
    "nothing exact": _nothing_exact,
    LOW_SCORE: _low_score,
    "repeated": _repeated,
    "rivalled": _rivalled,
}
