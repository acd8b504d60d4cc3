"""What a model is told when a patch does not fit, so that its next try does.

Each refusal says why, shows the real lines with their numbers, and names the
next step in the parameters of the tool that was called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.edits.alignment import Candidate
from adapter.edits.closest import closest_block
from adapter.edits.document import line_list, line_range
from adapter.edits.folding import line_key
from adapter.edits.objections import ONLY_ALIKE
from adapter.edits.readings import is_elision
from adapter.edits.search import MAX_PLACES, Search
from adapter.edits.stages import Place
from adapter.operations import Patch, PatchNames
from adapter.text.visible import visible

SHOWN_LINES = 12
"""Of the file, in the refusal of an edit."""
SHOWN_CHARACTERS = 160
"""Of a line, in the refusal of an edit."""
SHOWN_PLACES = 4
MIN_SCORE = 0.5
"""Of an alignment that is worth showing; below it the closest lines are looked for one by one."""


def ambiguous(search: Search, places: Sequence[Place], patch: Patch, names: PatchNames, hint: int | None) -> str:
    """The places, and how to tell them apart with the parameters that there are."""
    count = f"more than {MAX_PLACES}" if len(places) >= MAX_PLACES else str(len(places))
    head = f"{names.old_text} matches {count} places ({_places(search, places)})"
    advice = "add a surrounding line"
    if hint is not None:
        given = f"{names.start_line or 'line'} {hint}" if patch.end_line is None else f"end_line {patch.end_line}"
        return f"{head} and {given} does not tell which; {advice}"
    if names.start_line:
        advice += f" or pass {names.start_line}"
    if names.replace_all:
        advice += f", or set {names.replace_all} to change all of them"
    return f"{head}; {advice}"


def _places(search: Search, places: Sequence[Place]) -> str:
    listed = line_list([place.first_line + 1 for place in places])
    if len(places) > SHOWN_PLACES:
        return listed
    inside = [search.enclosing(place.first_line) for place in places]
    if len(set(inside)) < 2:
        return listed
    shown = [
        f"{place.first_line + 1} in {_clipped(owner)!r}" if owner else str(place.first_line + 1)
        for place, owner in zip(places, inside, strict=True)
    ]
    return f"{listed}: {', '.join(shown)}"


def absent(search: Search, old: Sequence[str], candidate: Candidate | None, reason: str, names: PatchNames) -> str:
    """Not found: the closest block and its first difference."""
    lines = search.document.lines[: search.document.line_count]
    if candidate is not None and candidate.score >= MIN_SCORE:
        first, last = candidate.first_line, candidate.last_line
        difference = _aligned_difference(search, old, candidate, names)
        alike = 100 * candidate.score
    else:
        block = closest_block(search, [line_key(line) for line in old])
        if block is None:
            return (
                f"{names.old_text} was not found. Nothing in the file resembles it: "
                f"read the file again and copy {names.old_text} from it"
            )
        first, last, alike = block.first_line, block.first_line + block.size - 1, block.similarity
        reason = "" if reason.startswith(ONLY_ALIKE) else reason  # that was said of another place
        difference = _first_difference(lines, old, first, names)
    because = f": {reason}" if reason else ""
    where = f"Closest is {line_range(first + 1, last + 1)} ({alike:.0f} % alike)"
    return "\n".join(
        [
            f"{names.old_text} was not found. {where}{because}:",
            *_numbered(search, first, last),
            *difference,
            f"Copy {names.old_text} from the file exactly, without line numbers",
        ]
    )


def nearly(search: Search, place: Place, names: PatchNames) -> str:
    """Not found exactly: the lines that would have been taken if slips were tolerated."""
    first, last = place.first_line, place.last_line
    head = f"{names.old_text} is not in the file exactly as it was given; {line_range(first + 1, last + 1)}"
    return "\n".join(
        [
            f"{head} {'is' if first == last else 'are'} nearly the same (tabs and blanks at ends are marked):",
            *_numbered(search, first, last, _seen),
            f"Copy {names.old_text} from there, with every blank and without line numbers",
        ]
    )


def _seen(line: str) -> str:
    """A line with its tabs and the blanks at its end made visible."""
    body = line.lstrip(" \t")
    return _marked(line[: len(line) - len(body)].replace("\t", "\u2192") + body)


def _numbered(search: Search, first: int, last: int, shown: Callable[[str], str] = str) -> list[str]:
    lines = search.document.lines
    listed = [
        f"{line + 1}: {_clipped(shown(lines[line]))}" for line in range(first, min(last + 1, first + SHOWN_LINES))
    ]
    return [*listed, f"... to line {last + 1}"] if last - first + 1 > SHOWN_LINES else listed


def _aligned_difference(search: Search, old: Sequence[str], candidate: Candidate, names: PatchNames) -> list[str]:
    for step in candidate.steps:
        if step.is_unmentioned or step.is_elided:
            continue
        for index in range(step.old_start, step.old_stop):
            if not line_key(old[index]) or is_elision(old[index]):
                continue
            if step.is_missing:
                return [f"Line {index + 1} of {names.old_text} is not there: {_clipped(old[index].strip())}"]
            if step.is_pair and line_key(old[index]) != search.keys[step.line_start]:
                return _pair(old[index], search.document.lines[step.line_start], step.line_start, names)
    return []


def _first_difference(lines: Sequence[str], wanted: Sequence[str], first: int, names: PatchNames) -> list[str]:
    for step, line in enumerate(wanted):
        actual = lines[first + step] if first + step < len(lines) else None
        if actual is None:
            return [f"The file ends before line {step + 1} of {names.old_text}: {_clipped(line)}"]
        if line_key(actual) != line_key(line):
            return _pair(line, actual, first + step, names)
    return ["The lines differ only in blanks."]


def _pair(written: str, actual: str, line: int, names: PatchNames) -> list[str]:
    width = max(len(names.old_text), len("file")) + 1
    return [
        f"First difference at line {line + 1}:",
        f"- {names.old_text + ':':<{width}} {_clipped(_marked(written))}",
        f"+ {'file:':<{width}} {_clipped(_marked(actual))}",
    ]


def _marked(line: str) -> str:
    """Tabs and blanks at the end made visible: they are what cannot be seen in an answer."""
    body = line.rstrip(" \t")
    return body + line[len(body) :].replace(" ", "\u00b7").replace("\t", "\u2192")


def _clipped(line: str) -> str:
    shown = visible(line, keep="\t")
    return shown if len(shown) <= SHOWN_CHARACTERS else shown[:SHOWN_CHARACTERS] + "..."
