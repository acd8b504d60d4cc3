"""Decide whether a fuzzy match is good enough to edit. In case of doubt, it is rejected.

An edit at the wrong location costs far more than a rejection that shows the lines. `VETOES` lists the reasons to reject
a match, in the order in which they are checked. Lines to remove must match exactly, and so must the lines that locate
the change: adjacent lines and enclosing blocks. Other lines may be missing if the match scores high enough for its
number of distinctive lines and clearly leads all other candidates. `stale_context` locates changes whose context has
changed further.

In this module, a *row* is a line of the old text, a *line* is a line of the document, and a *key* is the normalized
text of either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from adapter.core.text.diffs import LineChange, find_changes
from adapter.editing.document import format_line_indexes
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.fuzzy_match import REACH, MatchCandidate
from adapter.editing.matching.indentation_scope import find_enclosing, find_owners, has_owner, has_same_guard
from adapter.editing.matching.line_alignment import WRAPPED
from adapter.editing.matching.normalize import (
    is_comment,
    is_distinctive,
    loosen_line,
    normalize_line,
)
from adapter.editing.repairs.omission_markers import is_elision
from adapter.editing.repairs.reindent import measure_indent

MIN_SCORES = ((4, 0.72), (2, 0.80), (1, 0.86), (0, 0.96))
"""Minimum score of a match, by the number of distinctive lines in it: 0.72 for four or more, and so on."""
MIN_DISTINCTIVE_SIMILARITY = 0.85
MAX_DISTINCTIVE_PLACES = 2
"""Maximum number of occurrences in the document of a line that identifies a location."""
NEAR = 2
"""Maximum distance, in lines, between a match and its lines that occur out of order."""
MARGIN = 0.06
"""Minimum lead in score over the second best candidate."""
HINT_REACH = 200
"""Maximum distance, in lines, between a line hint (a line number given by the model) and the only location of a
change."""
MAX_OFF = 5
"""Maximum distance, in lines, between a line hint and the match that it selects over others."""
COPIED_LEAD, COUNTED_LEAD = 4, 20
"""Factor by which other matches must be farther from the line hint than the nearest match: for line numbers copied from
a listing, and for line numbers in a diff.

Models guess a diff's line numbers, and their errors often exceed the distance between two similar blocks.
"""


class RejectedMatch(NamedTuple):
    """A rejected match; ``veto`` is the key of the veto in `VETOES`."""

    veto: str
    reason: str


def accept_best_match(match: MatchFeatures) -> MatchCandidate | RejectedMatch:
    """Return the match to edit, or the reason why no match is safe."""
    for name, find_reason in VETOES.items():
        if reason := find_reason(match):
            return RejectedMatch(name, reason)
    return match.best


def find_nearest(distances: Sequence[int], lead: int) -> int | None:
    """Return the index of the match that a line hint refers to, or None if the hint could also refer to another match.

    ``distances`` has the distance, in lines, of each match from the hint. All other distances must exceed the smallest
    distance by the factor ``lead``.
    """
    nearest = min(distances)
    index = distances.index(nearest)
    others = (*distances[:index], *distances[index + 1 :])
    return index if nearest <= MAX_OFF and min(others, default=1) >= max(lead * nearest, 1) else None


class MatchFeatures:
    """The features of a fuzzy match that the checks in `VETOES` use.

    Args:
        old: The lines of the old text.
        new: The lines of the new text.
        candidates: All fuzzy matches, best first.
        hint: The 0-based line at which the old text should be, or None.
        lead: The factor `COPIED_LEAD` or `COUNTED_LEAD`.
    """

    def __init__(
        self,
        search: DocumentIndex,
        old: Sequence[str],
        new: Sequence[str],
        candidates: Sequence[MatchCandidate],
        hint: int | None,
        lead: int,
    ) -> None:
        self.search, self.old, self.candidates, self.hint, self.lead = search, old, candidates, hint, lead
        self.best = self._find_nearest_equal()
        self.compared = self.best.compared
        self.keys = [normalize_line(line) for line in old]
        self.nonblank = [row for row, key in enumerate(self.keys) if key]
        self.shown = [row for row in self.nonblank if not is_elision(old[row])]
        self.hunks = find_changes(old, new)
        self.removed = {row for hunk in self.hunks for row in _find_removed_rows(old, new, hunk)}
        self.lines = {step.old_start: step.line_start for step in self.best.steps if step.is_pair}

    def _find_nearest_equal(self) -> MatchCandidate:
        """Return the best candidate, or the one nearest to the line hint if several are equally good."""
        best, hint = self.candidates[0], self.hint
        if hint is None:
            return best
        equals = [
            other
            for other in self.candidates
            if best.score - other.score < MARGIN and other.mismatches <= best.mismatches
        ]
        return min(equals, key=lambda other: abs(other.first_line - hint))

    def find_places(self, row: int) -> Sequence[int]:
        return self.search.find_lines_with_key(self.keys[row])

    def get_actual(self, row: int) -> str:
        """Return the normalized text of the document's line that is paired with the old line ``row``, or of the old
        line itself if it has no pair."""
        return self.search.keys[self.lines[row]] if row in self.lines else self.keys[row]

    def find_neighbors(self, hunk: LineChange) -> tuple[int | None, int | None]:
        """Return the indexes of the nearest non-blank old lines above and below a hunk, or None for a missing one."""
        above = next((row for row in range(hunk.start - 1, -1, -1) if self.keys[row]), None)
        return above, next((row for row in range(hunk.end, len(self.old)) if self.keys[row]), None)

    def describe_difference(self, row: int) -> str:
        """Describe how the context line ``old[row]`` differs from the file. Return an empty string if it matches."""
        comparison = self.compared.get(row)
        if is_elision(self.old[row]) or (comparison and not comparison.conflicts):
            return ""
        return "does not match the file" if comparison else "is not in the file"

    def is_hinted(self, first: int, others: Iterable[int]) -> bool:
        """Return whether the line hint points to the line ``first``, rather than to one of ``others``."""
        if self.hint is None:
            return False
        return find_nearest([abs(line - self.hint) for line in (first, *others)], self.lead) == 0


def _find_removed_rows(old: Sequence[str], new: Sequence[str], hunk: LineChange) -> range:
    """Return the range of old lines that a hunk removes, which is empty if it only inserts. The range also includes
    adjacent lines that equal the removed or inserted ones, because the model may have meant them."""
    moving = old[hunk.start : hunk.end] or new[hunk.new_start : hunk.new_end]
    up = down = 0
    while hunk.start - up > 0 and old[hunk.start - up - 1] == moving[-1 - up % len(moving)]:
        up += 1
    while hunk.end + down < len(old) and old[hunk.end + down] == moving[down % len(moving)]:
        down += 1
    return range(hunk.start - up, hunk.end + down)


def _check_changed_lines(match: MatchFeatures) -> str:
    """Require every changed line to be in the file. A typo is tolerated if all other lines match."""
    for row in match.nonblank:
        if row not in match.removed:
            continue
        if is_elision(match.old[row]):
            return "the new text drops the '...' of the old text, which stands for lines that are not shown"
        line = f"line {row + 1} of the old text, which is to change,"
        if row not in match.compared:
            return f"{line} is not in the file"
        key, actual = match.keys[row], match.get_actual(row)
        if match.compared[row].conflicts or (row in match.lines and _keep_marks(key) != _keep_marks(actual)):
            return f"{line} does not match the file"
        if match.best.mismatches and loosen_line(key) != loosen_line(actual):
            return f"{line} does not match the file, and neither do others"
    return ""


def _keep_marks(key: str) -> str:
    return re.sub(r"\w", "", loosen_line(key))


def _check_elided_twin(match: MatchFeatures) -> str:
    """Reject the match if a ``...`` next to the change may also represent the lines to change."""
    for hunk in match.hunks:
        above = next((row for row in range(hunk.start - 1, -1, -1) if is_elision(match.old[row])), None)
        below = next((row for row in range(hunk.end, len(match.old)) if is_elision(match.old[row])), None)
        first, stop = 0 if above is None else above + 1, len(match.old) if below is None else below
        keys = [key for key in match.keys[first:stop] if key]
        places = [place for place, _ in match.search.find_lines(keys)]
        for row, side in ((above, "after"), (below, "before")):
            if row is None:
                continue
            step = next(step for step in match.best.steps if step.old_start <= row < step.old_stop)
            reach = range(step.line_start, step.line_stop + len(keys) + REACH)
            if side == "before":
                reach = range(step.line_start - len(keys) - REACH, step.line_stop)
            within = [place for place in places if place in reach]
            if len(within) > 1:
                return (
                    f"{side} the '...' the lines to change match {len(within)} places ({format_line_indexes(within)})"
                )
    return ""


def _check_displaced(match: MatchFeatures) -> str:
    """Reject the match if a line that differs here occurs elsewhere, which suggests another location."""
    near = range(match.best.first_line - NEAR, match.best.last_line + NEAR + 1)
    for row in match.shown:
        places = match.find_places(row)
        comparison = match.compared.get(row)
        fits = comparison is not None and not comparison.conflicts and (comparison.similarity >= WRAPPED or not places)
        if fits or not is_distinctive(match.keys[row]) or any(line in near for line in places):
            continue
        if 0 < len(places) <= MAX_DISTINCTIVE_PLACES:
            return f"line {row + 1} of the old text occurs elsewhere ({format_line_indexes(places)})"
    return ""


def _check_scope(match: MatchFeatures) -> str:
    """Require the lines that enclose the change, and its guard (such as ``#ifdef``), to match the old text."""
    for hunk in match.hunks:
        rows = range(max(0, hunk.start - (hunk.start == hunk.end)), hunk.end)
        depth = min((measure_indent(match.old[row]) for row in rows if match.keys[row]), default=0)
        at, lines = next((row for row in rows if match.keys[row]), hunk.start), match.search.document.lines
        for row in find_enclosing(match.old, at, depth):
            difference = match.describe_difference(row)
            owners = find_owners(lines, match.lines[at]) if difference and at in match.lines else ()
            if difference and not has_owner(owners, match.keys[row]):
                return f"line {row + 1} of the old text, which encloses the change, {difference}"
        if at in match.lines and not has_same_guard(match.old, at, lines, match.lines[at]):
            return f"the condition above line {at + 1} of the old text does not match the file"
    return ""


def _check_neighbors(match: MatchFeatures) -> str:
    """Require the lines next to a change to match."""
    for hunk in match.hunks:
        for row in match.find_neighbors(hunk):
            difference = "" if row is None else match.describe_difference(row)
            if row is not None and difference:
                return f"line {row + 1} of the old text, next to the change, {difference}"
    return ""


def _check_conflicts(match: MatchFeatures) -> str:
    row = next((row for row, found in match.compared.items() if found.conflicts), None)
    return "" if row is None else f"line {row + 1} of the old text does not match the file"


def _check_any_exact(match: MatchFeatures) -> str:
    """Require at least one of several lines to match exactly, because typos do not affect every line."""
    compared = match.compared.values()
    if len(compared) < 2 or any(found.similarity >= WRAPPED for found in compared):
        return ""
    return "every line of the old text differs from the file"


def _check_score(match: MatchFeatures) -> str:
    score = match.best.score
    alike = (row for row, found in match.compared.items() if found.similarity >= MIN_DISTINCTIVE_SIMILARITY)
    distinctive = sum(is_distinctive(match.keys[row]) for row in alike)
    needed = next(needed for lines, needed in MIN_SCORES if distinctive >= lines)
    if score >= needed or _leaves_out_only_comments(match):
        return ""
    return f"a similarity of {max(0, round(100 * score))} % is too low"


def _leaves_out_only_comments(match: MatchFeatures) -> bool:
    """Return whether every line matches exactly, and the old text omits only comments."""
    is_there = all(row in match.lines and match.compared[row].similarity == 1 for row in match.shown)
    steps = (step for step in match.best.steps if step.is_unmentioned or step.is_elided)
    keys = (key for step in steps for key in match.search.keys[step.line_start : step.line_stop])
    return is_there and all(not key or is_comment(key) for key in keys)


def _check_repeated(match: MatchFeatures) -> str:
    """Require the matched lines to be unique or near the line hint."""
    keys = match.search.keys
    nonblank = [line for line in range(match.best.first_line, match.best.last_line + 1) if keys[line]]
    places = [first for first, _ in match.search.find_lines([keys[line] for line in nonblank])]
    if len(places) < 2 or match.is_hinted(nonblank[0], (first for first in places if first != nonblank[0])):
        return ""
    return f"the matched lines occur in {len(places)} places ({format_line_indexes(places)})"


def _check_rivals(match: MatchFeatures) -> str:
    """Require that the match clearly scores higher than all other candidates, is the only one without a difference in
    meaning, or is nearest to the line hint."""
    best = match.best
    rivals = [other for other in match.candidates if other is not best and other.is_apart_from(best)]
    close = [other for other in rivals if best.score - other.score < MARGIN]
    is_cleanest = not best.mismatches and all(other.mismatches for other in close)
    if not close or is_cleanest:
        return ""
    if match.is_hinted(best.first_line, (other.first_line for other in close)):
        return ""
    places = sorted(candidate.first_line for candidate in (best, *close))
    return f"it is equally similar to {len(places)} places ({format_line_indexes(places)})"


Veto: TypeAlias = Callable[[MatchFeatures], str]
"""A check that returns the reason to reject a match, or an empty string."""

LOW_SCORE = "low score"
VETOES: dict[str, Veto] = {
    "changed line": _check_changed_lines, "elided twin": _check_elided_twin, "displaced": _check_displaced,
    "other scope": _check_scope, "other neighbor": _check_neighbors, "conflict": _check_conflicts,
    "nothing exact": _check_any_exact, LOW_SCORE: _check_score, "repeated": _check_repeated, "rivalled": _check_rivals,
}  # fmt: skip
