"""Messages that tell a model why an edit was rejected, so that its next try succeeds.

Each message says why, shows the real lines with their numbers, and names the next step in the parameters of
the tool that was called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from adapter.core.text.display_escaping import escape_for_display
from adapter.editing.document import format_line_list, format_line_range
from adapter.editing.matching.acceptance import LOW_SCORE, RejectedMatch
from adapter.editing.matching.document_index import MAX_PLACES, MIN_LIKENESS, DocumentIndex
from adapter.editing.matching.fuzzy_match import MatchCandidate
from adapter.editing.matching.line_similarity import MAX_COMPARED
from adapter.editing.matching.normalize import normalized_line
from adapter.editing.matching.strategies import TextMatch
from adapter.editing.repairs.interpretations import is_elision
from adapter.tools.operations import ParameterNames, Patch

SHOWN_LINES = 12
"""Of the file, in one message."""
SHOWN_CHARACTERS = 160
"""Of a line, in one message."""
SHOWN_PLACES = 4
MIN_SCORE = 0.5
"""Of an alignment that is worth showing; below it the closest lines are sought one by one."""
MAX_WANTED = 200
"""Lines of the old text that are compared to find the closest block."""
MAX_ANCHORS = 3
"""Lines of the old text that are sought for that: the longest are the most distinctive."""
MAX_ANCHOR_PLACES = 4
"""Lines of the file that each of these may be, the most similar."""


def ambiguous_match_message(
    search: DocumentIndex, places: Sequence[TextMatch], patch: Patch, names: ParameterNames, hint: int | None
) -> str:
    """List the places, and say how to tell them apart with the parameters that the tool has."""
    count = f"more than {MAX_PLACES}" if len(places) >= MAX_PLACES else str(len(places))
    head = f"{names.old_text} matches {count} places ({_listed(search, places)})"
    advice = "add a surrounding line"
    if hint is not None:
        given = f"{names.start_line or 'line'} {hint}" if patch.end_line is None else f"end_line {patch.end_line}"
        return f"{head} and {given} does not tell which; {advice}"
    if names.start_line:
        advice += f" or pass {names.start_line}"
    if names.replace_all:
        advice += f", or set {names.replace_all} to change all of them"
    return f"{head}; {advice}"


def _listed(search: DocumentIndex, places: Sequence[TextMatch]) -> str:
    listed = format_line_list([place.first_line + 1 for place in places])
    inside = [search.enclosing(place.first_line) for place in places[: SHOWN_PLACES + 1]]
    if len(places) > SHOWN_PLACES or len(set(inside)) < 2:
        return listed
    shown = [
        f"{place.first_line + 1} in {_clipped(owner)!r}" if owner else str(place.first_line + 1)
        for place, owner in zip(places, inside, strict=True)
    ]
    return f"{listed}: {', '.join(shown)}"


def not_found_message(
    search: DocumentIndex,
    old: Sequence[str],
    match: MatchCandidate | None,
    rejected: RejectedMatch | None,
    names: ParameterNames,
) -> str:
    """Show the closest block, why it was rejected, and its first difference."""
    reason = "" if rejected is None else rejected.reason
    if match is not None and match.score >= MIN_SCORE:
        first, last, similarity = match.first_line, match.last_line, 100 * match.score
        difference = _aligned_difference(search, old, match, names)
    else:
        block = _closest_block(search, [normalized_line(line) for line in old])
        if block is None:
            return (
                f"{names.old_text} was not found. Nothing in the file resembles it: "
                f"read the file again and copy {names.old_text} from it"
            )
        first, last, similarity = block.first_line, block.last_line, block.similarity
        if rejected is not None and rejected.veto == LOW_SCORE:
            reason = ""  # it is about another block
        difference = _first_difference(search, old, first, names)
    because = f": {reason}" if reason else ""
    where = f"Closest is {format_line_range(first + 1, last + 1)} ({similarity:.0f} % alike)"
    return "\n".join(
        [
            f"{names.old_text} was not found. {where}{because}:",
            *_numbered(search, first, last),
            *difference,
            f"Copy {names.old_text} from the file exactly, without line numbers",
        ]
    )


def near_miss_message(search: DocumentIndex, place: TextMatch, names: ParameterNames) -> str:
    """Show the lines that would have matched if slips were tolerated."""
    first, last = place.first_line, place.last_line
    head = f"{names.old_text} is not in the file exactly as it was given; {format_line_range(first + 1, last + 1)}"
    return "\n".join(
        [
            f"{head} {'is' if first == last else 'are'} nearly the same (tabs and blanks at ends are marked):",
            *_numbered(search, first, last, _with_visible_tabs),
            f"Copy {names.old_text} from there, with every blank and without line numbers",
        ]
    )


# --------------------------------------------------------------------- closest block


class _Block(NamedTuple):
    similarity: float
    """In percent."""
    first_line: int
    last_line: int


def _closest_block(search: DocumentIndex, wanted: Sequence[str]) -> _Block | None:
    """The lines most like ``wanted``, line keys. One pass over the lines for each anchor."""
    sought = [key[:MAX_COMPARED] for key in wanted[:MAX_WANTED]]
    last = search.document.line_count - len(sought)
    longest = sorted((row for row, key in enumerate(sought) if key), key=lambda row: -len(sought[row]))
    starts = {
        max(0, min(line - row, last))
        for row in longest[:MAX_ANCHORS]
        for _, _, line in search.similar(sought[row])[:MAX_ANCHOR_PLACES]
    }
    blocks = [_block(search, sought, start) for start in sorted(starts)]
    best = max(blocks, key=lambda block: (block.similarity, -block.first_line), default=None)
    return best if best and best.similarity >= MIN_LIKENESS else None


def _block(search: DocumentIndex, wanted: Sequence[str], start: int) -> _Block:
    window = search.keys[start : min(start + len(wanted), search.document.line_count)]
    weights = [len(line) + 1 for line in wanted]
    alike = sum(fuzz.ratio(line, other) * weight for line, other, weight in zip(wanted, window, weights, strict=False))
    return _Block(alike / sum(weights), start, start + len(window) - 1)


# -------------------------------------------------------------------- lines as shown


def _numbered(search: DocumentIndex, first: int, last: int, shown: Callable[[str], str] = str) -> list[str]:
    lines = search.document.lines[first : min(last + 1, first + SHOWN_LINES)]
    listed = [f"{number}: {_clipped(shown(line))}" for number, line in enumerate(lines, start=first + 1)]
    return [*listed, f"... to line {last + 1}"] if last - first + 1 > SHOWN_LINES else listed


def _aligned_difference(
    search: DocumentIndex, old: Sequence[str], match: MatchCandidate, names: ParameterNames
) -> list[str]:
    for step in match.steps:
        for index in range(step.old_start, step.old_stop):
            if step.is_elided or not normalized_line(old[index]) or is_elision(old[index]):
                continue
            if step.is_missing:
                return [f"Line {index + 1} of {names.old_text} is not there: {_clipped(old[index].strip())}"]
            if step.is_pair and normalized_line(old[index]) != search.keys[step.line_start]:
                return _pair(search, old[index], step.line_start, names)
    return []


def _first_difference(search: DocumentIndex, wanted: Sequence[str], first: int, names: ParameterNames) -> list[str]:
    for row, line in enumerate(wanted):
        if first + row >= search.document.line_count:
            return [f"The file ends before line {row + 1} of {names.old_text}: {_clipped(line)}"]
        if search.keys[first + row] != normalized_line(line):
            return _pair(search, line, first + row, names)
    return ["The lines differ only in blanks."]


def _pair(search: DocumentIndex, written: str, line: int, names: ParameterNames) -> list[str]:
    width = max(len(names.old_text), len("file")) + 1
    return [
        f"First difference at line {line + 1}:",
        f"- {names.old_text + ':':<{width}} {_clipped(_with_visible_end(written))}",
        f"+ {'file:':<{width}} {_clipped(_with_visible_end(search.document.lines[line]))}",
    ]


def _with_visible_end(line: str) -> str:
    """Mark tabs and blanks at the end, which cannot be seen in an answer."""
    body = line.rstrip(" \t")
    return body + line[len(body) :].replace(" ", "\u00b7").replace("\t", "\u2192")


def _with_visible_tabs(line: str) -> str:
    """Mark tabs at the beginning, too."""
    body = line.lstrip(" \t")
    return _with_visible_end(line[: len(line) - len(body)].replace("\t", "\u2192") + body)


def _clipped(line: str) -> str:
    shown = escape_for_display(line, keep="\t")
    return shown if len(shown) <= SHOWN_CHARACTERS else shown[:SHOWN_CHARACTERS] + "..."
