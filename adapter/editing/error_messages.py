"""Messages that explain to a model why an edit was rejected, so that its next attempt succeeds.

Each message gives the reason, shows the file's lines with their numbers, and names the next step, using the called
tool's names for its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from adapter.core.text.display_escaping import escape_for_display
from adapter.editing.document import format_line_indexes, format_line_range
from adapter.editing.matching.acceptance import LOW_SCORE, RejectedMatch
from adapter.editing.matching.document_index import MAX_PLACES, MIN_LIKENESS, DocumentIndex
from adapter.editing.matching.fuzzy_match import MatchCandidate
from adapter.editing.matching.line_similarity import MAX_COMPARED
from adapter.editing.matching.normalize import normalize_line
from adapter.editing.matching.strategies import TextMatch
from adapter.editing.repairs.omission_markers import is_elision
from adapter.tools.operations import ParameterNames, Patch

SHOWN_LINES = 12
"""Maximum number of file lines in a message."""
SHOWN_CHARACTERS = 160
"""Maximum length of a shown line, in characters."""
SHORT = 60
"""Maximum length, in characters, of a line that a message quotes only to identify a place."""
SHOWN_PLACES = 4
MAX_DISTANCE = 20
"""Maximum distance, in lines, to a line above a match that distinguishes the match from others."""
MIN_SCORE = 0.5
"""Minimum score of a fuzzy match that is shown. If the score is lower, the most similar lines are shown instead."""
MAX_WANTED = 200
"""Maximum number of old lines that are compared with the file to find the most similar block."""
MAX_ANCHORS = 3
"""Number of old lines that are compared with the file's lines. The longest are chosen, as the most distinctive."""
MAX_ANCHOR_PLACES = 4
"""Maximum number of similar file lines that are considered for each of the `MAX_ANCHORS` old lines."""


def build_ambiguous_match_message(
    search: DocumentIndex, matches: Sequence[TextMatch], patch: Patch, names: ParameterNames, hint: int | None
) -> str:
    """List the matches of an old text, and suggest how to select one with the tool's parameters.

    ``hint``: the 1-based line number that the model gave, or None.
    """
    count = f"more than {MAX_PLACES}" if len(matches) >= MAX_PLACES else str(len(matches))
    head = f"{names.old_text} matches {count} places ({_format_matches(search, matches)})"
    advice = "add a surrounding line"
    if hint is not None:
        given = f"{names.start_line or 'line'} {hint}" if patch.end_line is None else f"end_line {patch.end_line}"
        return f"{head} and {given} does not identify one of them; {advice}"
    if names.start_line:
        advice += f" or pass {names.start_line}"
    if names.replace_all:
        advice += f", or set {names.replace_all} to change all of them"
    return f"{head}; {advice}"


def _format_matches(search: DocumentIndex, matches: Sequence[TextMatch]) -> str:
    """List the matches' lines, each with the function or line above that distinguishes it."""
    line_list = format_line_indexes([place.first_line for place in matches])
    lines = [place.first_line for place in matches[:SHOWN_PLACES]]
    owners = [search.find_enclosing_key(line) for line in lines]
    if len(set(owners)) > 1:
        places = [f" in {_truncate(owner, SHORT)!r}" if owner else "" for owner in owners]
    else:
        places = _describe_lines_above(search, lines)
    shown = [f"{line + 1}{place}" for line, place in zip(lines, places, strict=True)]
    rest = ", ..." if len(matches) > SHOWN_PLACES else ""
    return f"{line_list}: {', '.join(shown)}{rest}" if any(places) else line_list


def _describe_lines_above(search: DocumentIndex, lines: Sequence[int]) -> list[str]:
    """Describe each line by a line above it that distinguishes it from the other lines. The distance is the same for
    all lines."""
    for distance in range(1, MAX_DISTANCE + 1):
        above = [
            f" below {_truncate(search.keys[line - distance], SHORT)!r}" if line >= distance else " at the start"
            for line in lines
        ]
        if len(set(above)) == len(above) and " below ''" not in above:
            return above
    return [""] * len(lines)


def build_not_found_message(
    search: DocumentIndex,
    old: Sequence[str],
    match: MatchCandidate | None,
    rejected: RejectedMatch | None,
    names: ParameterNames,
) -> str:
    """Show the most similar block of the file, and its first difference from ``old``, the lines of the old text.

    ``match``: the best fuzzy match, or None. ``rejected``: the rejected fuzzy match, with the reason, or None.
    """
    reason = "" if rejected is None else rejected.reason
    if match is not None and match.score >= MIN_SCORE:
        first, last, similarity = match.first_line, match.last_line, 100 * match.score
        difference = _describe_aligned_difference(search, old, match, names)
    else:
        block = _find_closest_block(search, [normalize_line(line) for line in old])
        if block is None:
            return _describe_unlike_file(search, names)
        first, last, similarity = block.first_line, block.last_line, block.similarity
        if rejected is not None and rejected.veto == LOW_SCORE:
            reason = ""  # the reason is about another block
        difference = _describe_first_difference(search, old, first, names)
    because = f", but {reason}" if reason else ""
    where = f"The closest match is {format_line_range(first + 1, last + 1)} ({similarity:.0f} % similar)"
    shown = [*_format_numbered_lines(search, first, last), *difference]
    step = f"Copy {names.old_text} from the file exactly, without line numbers"
    return "\n".join([f"{names.old_text} was not found. {where}{because}:", *shown, step])


def _describe_unlike_file(search: DocumentIndex, names: ParameterNames) -> str:
    """Explain that nothing in the file is similar. A short file is shown, so that the model need not read it."""
    unlike, lines = f"{names.old_text} was not found, and nothing in the file resembles it", search.document.lines
    if len(lines) > SHOWN_LINES or not any(map(str.strip, lines)):
        return f"{unlike}; read the file again and copy {names.old_text} from it"
    shown = _format_numbered_lines(search, 0, len(lines) - 1 - (lines[-1] == ""))
    return "\n".join([f"{unlike}, which is:", *shown, f"Copy {names.old_text} from there, without line numbers"])


def build_near_miss_message(search: DocumentIndex, place: TextMatch, names: ParameterNames) -> str:
    """Show lines that differ from the old text only in details, for a patch that requires a verbatim match."""
    first, last = place.first_line, place.last_line
    where = f"{format_line_range(first + 1, last + 1)} {'is' if first == last else 'are'} nearly the same"
    head = f"{names.old_text} does not occur verbatim in the file; {where} (tabs and trailing spaces are marked):"
    shown = _format_numbered_lines(search, first, last, _with_visible_tabs)
    step = f"Copy {names.old_text} from there, with all whitespace and without line numbers"
    return "\n".join([head, *shown, step])


def describe_match(search: DocumentIndex, old: Sequence[str], match: MatchCandidate) -> str:
    """Describe the tolerated differences of an accepted match in one sentence."""
    differing = [index for index, found in match.compared.items() if found.similarity < 1]
    unmatched = [index for index, line in enumerate(old) if normalize_line(line) and index not in match.compared]
    missing = [index for index in unmatched if not is_elision(old[index])]
    unmentioned = [
        step.line_start
        for step in match.steps
        if step.is_unmentioned and any(search.keys[step.line_start : step.line_stop])
    ]
    kinds = (
        (differing, "of the old text", "differs", "differ", "from the file"),
        (missing, "of the old text", "is", "are", "not in the file"),
        (unmentioned, "of the file", "is", "are", "not in the old text"),
    )
    parts = [
        f"{format_line_indexes(lines)} {of} {one if len(lines) == 1 else many} {rest}"
        for lines, of, one, many, rest in kinds
        if lines
    ]
    parts += ["'...' stood for the lines between"] if any(step.is_elided for step in match.steps) else []
    where = format_line_range(match.first_line + 1, match.last_line + 1)
    differences = ", ".join(parts) or "lines are wrapped differently"
    return f"the old text was matched to {where} although {differences}; the file's own lines were kept"


class _Block(NamedTuple):
    similarity: float
    """Similarity in percent."""
    first_line: int
    last_line: int


def _find_closest_block(search: DocumentIndex, old_keys: Sequence[str]) -> _Block | None:
    """Return the block of lines that is most similar to the old lines; None if no block is similar enough."""
    compared = [key[:MAX_COMPARED] for key in old_keys[:MAX_WANTED]]
    last = search.document.line_count - len(compared)
    longest = sorted((row for row, key in enumerate(compared) if key), key=lambda row: -len(compared[row]))
    starts = {
        max(0, min(line - row, last))
        for row in longest[:MAX_ANCHORS]
        for _, _, line in search.find_similar(compared[row])[:MAX_ANCHOR_PLACES]
    }
    blocks = [_build_block(search, compared, start) for start in sorted(starts)]
    best = max(blocks, key=lambda block: (block.similarity, -block.first_line), default=None)
    return best if best and best.similarity >= MIN_LIKENESS else None


def _build_block(search: DocumentIndex, old_keys: Sequence[str], start: int) -> _Block:
    window = search.keys[start : min(start + len(old_keys), search.document.line_count)]
    weights = [len(line) + 1 for line in old_keys]
    alike = sum(
        fuzz.ratio(line, other) * weight for line, other, weight in zip(old_keys, window, weights, strict=False)
    )
    return _Block(alike / sum(weights), start, start + len(window) - 1)


def _format_numbered_lines(
    search: DocumentIndex, first: int, last: int, shown: Callable[[str], str] = str
) -> list[str]:
    lines = search.document.lines[first : min(last + 1, first + SHOWN_LINES)]
    shown_lines = [f"{number}: {_truncate(shown(line))}" for number, line in enumerate(lines, start=first + 1)]
    return [*shown_lines, f"... to line {last + 1}"] if last - first + 1 > SHOWN_LINES else shown_lines


def _describe_aligned_difference(
    search: DocumentIndex, old: Sequence[str], match: MatchCandidate, names: ParameterNames
) -> list[str]:
    for step in match.steps:
        for index in range(step.old_start, step.old_stop):
            if step.is_elided or not normalize_line(old[index]) or is_elision(old[index]):
                continue
            if step.is_missing:
                return [f"Line {index + 1} of {names.old_text} is missing there: {_truncate(old[index].strip())}"]
            if step.is_pair and normalize_line(old[index]) != search.keys[step.line_start]:
                return _describe_difference(search, old[index], step.line_start, names)
    return []


def _describe_first_difference(
    search: DocumentIndex, old_keys: Sequence[str], first: int, names: ParameterNames
) -> list[str]:
    for row, line in enumerate(old_keys):
        if first + row >= search.document.line_count:
            return [f"The file ends before line {row + 1} of {names.old_text}: {_truncate(line)}"]
        if search.keys[first + row] != normalize_line(line):
            return _describe_difference(search, line, first + row, names)
    return ["The lines differ only in whitespace."]


def _describe_difference(search: DocumentIndex, written: str, line: int, names: ParameterNames) -> list[str]:
    width = max(len(names.old_text), len("file")) + 1
    return [
        f"First difference at line {line + 1}:",
        f"- {names.old_text + ':':<{width}} {_truncate(_with_visible_end(written))}",
        f"+ {'file:':<{width}} {_truncate(_with_visible_end(search.document.lines[line]))}",
    ]


def _with_visible_end(line: str) -> str:
    """Mark trailing spaces and tabs, which are invisible in a message."""
    body = line.rstrip(" \t")
    return body + line[len(body) :].replace(" ", "\u00b7").replace("\t", "\u2192")


def _with_visible_tabs(line: str) -> str:
    """Mark leading tabs and trailing whitespace."""
    body = line.lstrip(" \t")
    return _with_visible_end(line[: len(line) - len(body)].replace("\t", "\u2192") + body)


def _truncate(line: str, limit: int = SHOWN_CHARACTERS) -> str:
    shown = escape_for_display(line, keep="\t")
    return shown if len(shown) <= limit else shown[:limit] + "..."
