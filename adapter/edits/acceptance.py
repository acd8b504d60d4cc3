"""Whether a rough match is good enough to edit: when in doubt, no.

An edit in the wrong place costs far more than a refusal that shows the lines.
So a candidate must be alike enough for the number of telling lines it has, be
clearly better than every other place, and hold exactly what is to be removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.edits.alignment import Candidate
from adapter.edits.document import line_list, line_range
from adapter.edits.folding import line_key
from adapter.edits.objections import objection
from adapter.edits.readings import is_elision
from adapter.edits.search import Search

MARGIN = 0.06
"""Lead over the best rival that shows which place is meant."""
CLEAN_MARGIN = 0.3
"""Rivals this close must all have more flaws when the lead is smaller than ``MARGIN``."""
HINT_REACH = 200
"""Lines that a hint may be off."""


def accepted(
    search: Search, old: Sequence[str], new: Sequence[str], candidates: Sequence[Candidate], hint: int | None
) -> Candidate | str:
    """The candidate that is meant, or why none is. ``candidates`` come best first."""
    best = candidates[0]
    best = _nearest(best, candidates, hint)
    return (
        objection(search, old, new, best) or _repetition(search, best, hint) or _rivalry(best, candidates, hint) or best
    )


def _repetition(search: Search, best: Candidate, hint: int | None) -> str:
    """Why the lines of ``best`` are not the only ones of their kind, or nothing."""
    filled = [line for line in range(best.first_line, best.last_line + 1) if search.keys[line]]
    places = [first for first, _ in search.find_lines([search.keys[line] for line in filled])]
    if len(places) < 2:
        return ""
    if hint is not None and abs(filled[0] - hint) <= HINT_REACH:
        distances = [abs(first - hint) for first in places if first != filled[0]]
        if all(abs(filled[0] - hint) < distance for distance in distances):
            return ""
    return f"the lines there stand in {len(places)} places ({line_list([first + 1 for first in places])})"


def _nearest(best: Candidate, candidates: Sequence[Candidate], hint: int | None) -> Candidate:
    """Among equals the one that the hint names."""
    if hint is None:
        return best
    equals = [other for other in candidates if best.score - other.score < MARGIN and other.flaws <= best.flaws]
    return min(equals, key=lambda other: abs(other.first_line - hint))


def _rivalry(best: Candidate, candidates: Sequence[Candidate], hint: int | None) -> str:
    """Why ``best`` is not alone, or nothing."""
    rivals = [other for other in candidates if other is not best and other.is_apart_from(best)]
    close = [other for other in rivals if best.score - other.score < MARGIN or _is_about_as_flawed(other, best)]
    if not close:
        return ""
    is_cleanest = not best.missing and all(
        other.flaws > best.flaws for other in rivals if best.score - other.score < CLEAN_MARGIN
    )
    if is_cleanest and best.score >= close[0].score and not any(_is_about_as_flawed(other, best) for other in close):
        return ""
    if hint is not None and abs(best.first_line - hint) <= HINT_REACH:
        distances = [abs(other.first_line - hint) for other in close]
        if all(abs(best.first_line - hint) < distance for distance in distances):
            return ""
    places = sorted(candidate.first_line + 1 for candidate in (best, *close))
    return f"it resembles {len(places)} places alike ({line_list(places)})"


def _is_about_as_flawed(rival: Candidate, best: Candidate) -> bool:
    """Both read differently, in about as many lines: how much longer those of one are tells little."""
    return best.flaws > 0 and rival.flaws <= best.flaws + 1 and best.score - rival.score < CLEAN_MARGIN


def described(search: Search, old: Sequence[str], candidate: Candidate) -> str:
    """What the accepted candidate tolerated, in one sentence."""
    differing = [index + 1 for index, found in candidate.compared.items() if found.similarity < 1]
    missing = [
        index + 1
        for index, line in enumerate(old)
        if line_key(line) and index not in candidate.compared and not is_elision(line)
    ]
    unmentioned = [
        step.line_start + 1
        for step in candidate.steps
        if step.is_unmentioned and any(search.keys[line] for line in range(step.line_start, step.line_stop))
    ]
    parts = [
        f"{line_list(differing)} of the old text {_reads(differing)} differently there" if differing else "",
        f"{line_list(missing)} of the old text {_is(missing)} not there" if missing else "",
        f"{line_list(unmentioned)} of the file {_is(unmentioned)} not in the old text" if unmentioned else "",
        "'...' stood for the lines between" if any(step.is_elided for step in candidate.steps) else "",
    ]
    where = line_range(candidate.first_line + 1, candidate.last_line + 1)
    said = ", ".join(part for part in parts if part) or "lines are broken differently"
    return f"the old text was matched to {where} although {said}; the file's own lines were kept"


def _reads(lines: Sequence[int]) -> str:
    return "read" if len(lines) > 1 else "reads"


def _is(lines: Sequence[int]) -> str:
    return "are" if len(lines) > 1 else "is"
