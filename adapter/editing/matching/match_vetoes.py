"""Reasons to reject the only match of an old text: the patch is already applied, or meant for another place."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeAlias

from adapter.editing.document import format_line_list, format_line_range
from adapter.editing.matching.already_applied import find_applied_lines, find_enclosing_new_text, find_verbatim_copies
from adapter.editing.matching.match_task import NEAR_HINT, MatchTask
from adapter.editing.matching.normalize import is_distinctive, list_keys, normalize_line
from adapter.editing.matching.strategies import TextMatch, are_whole_lines, match_whole_lines, split_view_lines
from adapter.editing.repairs.interpretations import Interpretation
from adapter.editing.repairs.reindent import get_indent
from adapter.editing.resolved_edits import Rejection

MIN_REPEATED = 3
"""Minimum number of lines that, both at the end of a new text and below its match, count as a repetition."""
VERBATIM_REACH = 8
"""Maximum number of additional lines between the lines of an old text that occur verbatim elsewhere."""


def check_already_there(task: MatchTask, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
    """Reject the patch if its new text contains its old text and the match is inside a copy of the new text."""
    if not interpretation.new.strip():
        return None
    line = find_enclosing_new_text(task.search, match, interpretation.old, interpretation.new, task.patch.replace_all)
    if line is None:
        return None
    return Rejection(
        "already applied",
        f"already applied: {task.names.new_text} is already present at line {line + 1}; to apply it again, add "
        f"surrounding lines to {task.names.old_text}",
    )


def _check_applied_near_hint(task: MatchTask, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
    """Reject the patch if its new text occurs nearer to the line hint than the only match of the old text."""
    hint = task.find_hint(interpretation)
    if hint is None or task.measure_distance(match, hint) == 0:
        return None
    matches = [first for first, _ in find_applied_lines(task.search, interpretation.old, interpretation.new)]
    matches = matches or find_verbatim_copies(task.search, match, interpretation.new)
    nearest = min(matches, key=lambda first: abs(first + 1 - hint), default=None)
    if nearest is None or abs(nearest + 1 - hint) >= min(task.measure_distance(match, hint), NEAR_HINT + 1):
        return None
    return Rejection(
        "already applied",
        f"already applied: {task.names.new_text} is already present at line {nearest + 1}, and {task.names.old_text} "
        f"occurs only at line {match.first_line + 1}; to edit that as well, give its line number",
    )


def _check_hinted_twin(task: MatchTask, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
    """Reject the match if other lines, at the line hint, differ from the old text only in whitespace."""
    hint = task.find_hint(interpretation)
    if hint is None or task.is_hinted(match, interpretation):
        return None
    twins = match_whole_lines(task.search, interpretation)
    twin = next((other for other in twins if task.is_hinted(other, interpretation)), None)
    if twin is None:
        return None
    return Rejection(
        "ambiguous",
        f"{task.names.old_text} occurs at line {match.first_line + 1} and, except for whitespace, at line "
        f"{twin.first_line + 1}, near the given line {hint}; copy {task.names.old_text} exactly from the intended "
        "place, and give its line number",
    )


def _check_applied_elsewhere(task: MatchTask, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
    """Reject an approximate match if the new text already occurs elsewhere: the patch was probably applied there."""
    if match.strictness == "exact" or task.is_hinted(match, interpretation):
        return None
    view = task.document.view
    if match.is_exact_layout and are_whole_lines(view, match.start, view[match.start : match.end]):
        return None
    ranges = find_applied_lines(task.search, interpretation.old, interpretation.new)
    lines = [first + 1 for first, last in ranges if first > match.last_line or last < match.first_line]
    if not lines:
        return None
    return Rejection(
        "ambiguous",
        f"{task.names.new_text} is already present ({format_line_list(lines)}), and {task.names.old_text} only "
        f"roughly matches line {match.first_line + 1}; to edit it, copy {task.names.old_text} from there exactly",
    )


def _check_verbatim_elsewhere(task: MatchTask, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
    """Reject a reindented match if all old lines, or all but one, occur verbatim elsewhere."""
    if match.strictness == "exact" or match.is_exact_layout or task.is_hinted(match, interpretation):
        return None
    lines = [line.rstrip() for line in split_view_lines(interpretation.old) if line.strip()]
    span = range(match.first_line, match.last_line + 1)
    first = next(filter(str.strip, task.document.lines[span.start : span.stop]), "")
    if get_indent(first) == get_indent(lines[0]):
        return None
    line = task.search.find_verbatim(list(filter(is_distinctive, lines)), len(lines) + VERBATIM_REACH, span)
    if line is None:
        return None
    return Rejection(
        "ambiguous",
        f"{task.names.old_text} matches {format_line_range(match.first_line + 1, match.last_line + 1)} except for "
        f"whitespace, but most of its lines occur exactly as written from line {line + 1} on; "
        f"copy {task.names.old_text} exactly from the intended place",
    )


def _check_lines_below(task: MatchTask, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
    """Reject the patch if its new text ends with the lines below the match, which would then be there twice."""
    old, new = (list_keys(text.split("\n")) for text in (interpretation.old, interpretation.new))
    keys = map(normalize_line, islice(task.document.lines, match.last_line + 1, None))
    below = list(islice(filter(None, keys), len(new)))
    sizes = (size for size in range(len(below), MIN_REPEATED - 1, -1) if new[-size] == below[0])
    size = next((size for size in sizes if new[-size:] == below[:size]), 0)
    if not size or old[-1:] == new[-1:] or not any(map(is_distinctive, new[-size:])):
        return None
    return Rejection(
        "invalid",
        f"the last {size} lines of {task.names.new_text} are already below line {match.last_line + 1}: add them to "
        f"the end of {task.names.old_text} too, or leave them out",
    )


MatchVeto: TypeAlias = Callable[[MatchTask, TextMatch, Interpretation], Rejection | None]

MATCH_VETOES: tuple[MatchVeto, ...] = (
    check_already_there, _check_applied_near_hint, _check_hinted_twin, _check_applied_elsewhere,
    _check_verbatim_elsewhere, _check_lines_below,
)  # fmt: skip
"""All vetoes, in the order in which they are checked."""
