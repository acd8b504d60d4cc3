"""Resolve a patch whose old text matches only approximately, either as a whole or change by change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adapter.editing.error_messages import build_not_found_message, describe_match
from adapter.editing.matching.acceptance import HINT_REACH, MatchFeatures, RejectedMatch, accept_best_match
from adapter.editing.matching.already_applied import find_roughly_applied
from adapter.editing.matching.fuzzy_match import MatchCandidate, find_fuzzy_matches
from adapter.editing.matching.match_task import MatchTask
from adapter.editing.matching.stale_context import find_anchored_changes
from adapter.editing.matching.strategies import TextMatch, match_from_lines, match_whole_lines, split_view_lines
from adapter.editing.repairs.interpretations import Interpretation
from adapter.editing.repairs.omission_markers import is_elision, may_be_elision
from adapter.editing.repairs.reindent import get_indent
from adapter.editing.resolved_edits import Rejection, Resolution, ResolvedEdit

MAX_ALIGNED = 6
"""Maximum number of interpretations of a patch that are aligned with the document."""


def resolve_fuzzily(task: MatchTask, alternatives: Sequence[Interpretation], old_text: str) -> Resolution:
    """Return the edits for the best alignment of all interpretations, or a rejection with the most similar lines."""
    tried: list[tuple[Interpretation, list[str], list[MatchCandidate]]] = []
    for alternative in dict.fromkeys((*alternatives[: MAX_ALIGNED - 1], alternatives[-1])):
        interpretation = _with_plain_elisions(task, alternative)
        old = split_view_lines(interpretation.old)
        if candidates := find_fuzzy_matches(task.search, old, task.find_hinted_index(interpretation)):
            tried.append((interpretation, old, candidates))
    if not tried:
        message = build_not_found_message(task.search, split_view_lines(old_text), None, None, task.names)
        return Rejection("not found", message)
    interpretation, old, candidates = max(tried, key=lambda one: one[2][0].score)
    new, hint = _with_same_elisions(old, split_view_lines(interpretation.new)), task.find_hinted_index(interpretation)
    best = accept_best_match(MatchFeatures(task.search, old, new, candidates, hint, task.lead))
    edits: tuple[ResolvedEdit, ...] = ()
    if isinstance(best, RejectedMatch):
        candidate = candidates[0]
        edits = _resolve_anchored(task, interpretation, candidate)
        if not edits:
            return Rejection("not found", build_not_found_message(task.search, old, candidate, best, task.names))
    else:
        candidate = best
    line = find_roughly_applied(task.search, candidate, old, new)
    if line is not None:
        return Rejection(
            "already applied",
            f"already applied: the result of {task.names.new_text} is already present at line {line + 1}",
        )
    if edits:
        return edits
    written = replace(interpretation, new="\n".join(new) + "\n" if new else "")
    match = match_from_lines(task.document, written, candidate.steps, "aligned")
    return task.build(match, (describe_match(task.search, old, candidate),), interpretation)


def _with_plain_elisions(task: MatchTask, interpretation: Interpretation) -> Interpretation:
    """Replace comments like ``// unchanged`` in the old and new text with ``...``, unless the file contains them."""
    written = filter(may_be_elision, interpretation.old.split("\n"))
    omissions = {line.strip() for line in written if not task.is_in_file(line)}
    old, new = (
        "\n".join(f"{get_indent(line)}..." if line.strip() in omissions else line for line in text.split("\n"))
        for text in (interpretation.old, interpretation.new)
    )
    return replace(interpretation, old=old, new=new)


def _resolve_anchored(
    task: MatchTask, interpretation: Interpretation, best: MatchCandidate
) -> tuple[ResolvedEdit, ...]:
    """Return the edits if all changes are located with certainty near ``best``, although their context differs."""
    if task.patch.replace_all:
        return ()
    edits: list[ResolvedEdit] = []
    hint = task.find_hint(interpretation)
    texts = split_view_lines(interpretation.old), split_view_lines(interpretation.new)
    for change in find_anchored_changes(task.search, *texts):
        matches = match_whole_lines(task.search, replace(interpretation, old=change.old, new=change.new))
        match = next(match for match in matches if _find_first_nonblank(task, match) == change.first)
        is_far = hint is not None and task.measure_distance(match, hint) > HINT_REACH
        if is_far or match.last_line < best.first_line or best.last_line < match.first_line:
            return ()
        built = task.build(replace(match, strictness="aligned"), (change.note,), interpretation)
        if isinstance(built, Rejection):
            return ()
        edits += built
    return tuple(edits)


def _find_first_nonblank(task: MatchTask, match: TextMatch) -> int:
    return next(line for line in range(match.first_line, match.last_line + 1) if task.search.keys[line])


def _with_same_elisions(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return ``new`` with its omission lines (such as ``# ...``) spelled as in ``old``, so that they count as kept."""
    spelled = iter([line for line in old if is_elision(line)])
    return [next(spelled, line) if is_elision(line) else line for line in new]
