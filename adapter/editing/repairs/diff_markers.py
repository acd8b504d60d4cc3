"""Strip diff markers and line numbers that a model copied from the display of a file.

Often only the old or only the new text has them. If only the new text has diff markers, its context lines without their
markers must occur in the old text. If the markers are ambiguous, the edit is rejected.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rapidfuzz import fuzz

from adapter.editing.repairs.reindent import find_indent_unit, get_indent, measure_indent

DIFF_NOTE = "diff markers were removed from the new text"
NUMBERS_NOTE = "line numbers were removed from the new text"
MIN_NEW_FORM = 60.0
"""Minimum similarity, in percent, between an added line and the removed line that it replaces."""


class AmbiguousDiffMarkers(Exception):
    """A ``+`` in the new text may be a marker or content. ``str(error)`` is the line that contains it."""


def strip_diff_markers(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield both texts without diff markers if the old text has them.

    The first result assumes that context lines have a marker, which is a space. If the old text has lines that begin
    with a space, the second result assumes that context lines have no marker.
    """
    before, after = old.split("\n"), new.split("\n")
    if not has_diff_markers(before) or (has_diff_markers(after) and not any(line.startswith("+") for line in after)):
        return  # lines with "- " are a list, not a diff
    stripped = _strip_full_markers(before, "-")
    yield "\n".join(stripped), "\n".join(_find_new_side(stripped, after))
    if any(line[:1] == " " for line in before):
        yield "\n".join(_strip_partial_markers(before, "-")), "\n".join(_strip_partial_markers(after, "+"))


def has_diff_markers(lines: Sequence[str]) -> bool:
    """Return whether every line starts with a space, ``-`` or ``+``, as in a diff."""
    return all(line[:1] in " -+" for line in lines) and any(line[:1] in ("-", "+") for line in lines)


def _strip_full_markers(lines: Sequence[str], mark: str) -> list[str]:
    """Return one side of a diff in which every line has a marker. ``mark``: ``-`` for the old side, ``+`` for the
    new."""
    return [line[1:] for line in lines if line[:1] in ("", " ", mark)]


def _strip_partial_markers(lines: Sequence[str], mark: str, width: int = 1) -> list[str]:
    """Return one side of a diff in which context lines have no marker. ``mark``: ``-`` for the old side, ``+`` for the
    new. ``width``: the width of a marker, in characters."""
    other = "-" if mark == "+" else "+"
    return [line[width:] if line[:1] == mark else line for line in lines if line[:1] != other]


def _find_new_side(old: Sequence[str], new: Sequence[str]) -> Sequence[str]:
    if has_diff_markers(new):
        return _strip_full_markers(new, "+")
    known = set(old) - {""}
    filled = [line for line in new if line.strip()]
    is_shifted = bool(filled) and all(line[:1] == " " for line in filled)
    if is_shifted and known.issuperset(line[1:] for line in filled) and not known.intersection(filled):
        return [line[1:] for line in new]  # only deletions: the context lines still have their space
    return _strip_partial_markers(new, "+") if any(line[:1] == "+" for line in new) else new


def strip_new_text_markers(old: str, new: str, view: str) -> tuple[str, str] | None:
    """Strip diff markers and line numbers that only the new text has. Return the new text and a note, or None if there
    is nothing to strip.

    ``view`` is the document. If it has lines that start with ``+``, such lines of the new text are kept. Raises
    AmbiguousDiffMarkers.
    """
    before, after = old.split("\n"), new.split("\n")
    if any(line[:1] in ("+", "-") for line in after) and not has_diff_markers(before):
        replacement = _strip_markers(before, after, view)
        if replacement is not None:
            return "\n".join(replacement), DIFF_NOTE
    kept = set(before) - {""}
    numberless = (text for text in strip_line_numbers(new).values() if kept.intersection(text.split("\n")))
    stripped = None if kept.intersection(after) else next(numberless, None)
    return None if stripped is None else (stripped, NUMBERS_NOTE)


def _strip_markers(old: Sequence[str], new: Sequence[str], view: str) -> Sequence[str] | None:
    added = [line for line in new if line[:1] == "+"]
    kept = [line for line in new if line[:1] not in ("+", "-")]
    has_removed = len(added) + len(kept) < len(new)
    if (
        has_diff_markers(new)
        and list_nonblank_lines(_strip_full_markers(new, "-")) == list_nonblank_lines(old)
        and (added or has_removed)
    ):
        return _strip_full_markers(new, "+")
    if not added or _find_plus_forms(added) & _find_plus_forms(_PLUS_LINE.findall(view)):
        return None  # the file has such lines
    if has_removed:
        widths = (
            width
            for width in (1, 2)
            if list_nonblank_lines(_strip_partial_markers(new, "-", width)) == list_nonblank_lines(old)
        )
        return next((_strip_partial_markers(new, "+", width) for width in widths), None)
    if not kept or not any(line.strip() for line in kept):
        return None if _may_be_a_list(added) else [line[1:] for line in new]
    if _is_subsequence(list_nonblank_lines([line[1:] for line in kept]), old) and not _is_subsequence(
        list_nonblank_lines(kept), old
    ):
        return _strip_full_markers(new, "+")
    if not _is_subsequence(list_nonblank_lines(kept), old):
        return None
    shift = _find_marker_width(old, new)
    if shift is None:
        raise AmbiguousDiffMarkers(added[0])
    return [_strip_plus(line, shift) if line[:1] == "+" else line for line in new]


_PLUS_LINE = re.compile(r"^\+.*", re.MULTILINE)


def _find_plus_forms(lines: Sequence[str]) -> set[int]:
    """Return the numbers of spaces (at most 2) that follow the ``+`` in ``lines``. Usually, 0 means a diff marker, 1 a
    list item, and 2 a diff marker before indented text."""
    return {len(line[1:3]) - len(line[1:3].lstrip()) for line in lines}


def list_nonblank_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines that are not blank, without trailing whitespace."""
    return [line.rstrip() for line in lines if line.strip()]


def _is_subsequence(lines: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether all ``lines`` occur in ``whole``, in order. Blank lines of ``whole`` are ignored."""
    rest = iter(list_nonblank_lines(whole))
    return all(line in rest for line in lines)


def _may_be_a_list(added: Sequence[str]) -> bool:
    return all(line[1:2] == " " and line[2:3].strip() for line in added)


def _find_marker_width(old: Sequence[str], new: Sequence[str]) -> int | None:
    """Return the markers' extra width: 1 for ``+`` and a space, 0 for ``+``, -1 if the ``+`` replaced a space. Return
    None if it is uncertain."""
    added = [line[1:] for line in new if line[:1] == "+" and line[1:].strip()]
    if not added or any(line[:1] == "\t" for line in added):
        return 0
    if "+ " in new:
        return 1  # an empty line
    filled = [line for line in old if line.strip()]
    votes = set(_list_votes(added, [line for line in filled if line not in new]) or _list_votes(added, filled))
    if not votes <= {0, 1, -1}:  # the changed lines are reindented
        votes = set()
    adds_stars = any(line.lstrip().startswith("*") for line in added)
    # the lines of a comment, " * text", are one column off the grid
    shown = [line for line in filled if adds_stars or not line.lstrip().startswith("*")]
    unit = find_indent_unit(map(get_indent, shown)) or 2
    widths = {measure_indent(line) for line in added}
    on_grid = [shift for shift in (0, 1, -1) if all(width >= shift and (width - shift) % unit == 0 for width in widths)]
    if votes:
        return _choose_single(list(votes), on_grid)
    depths = {*map(measure_indent, shown)}
    if _may_be_a_list(["+" + line for line in added]) and (depths <= {0} or not _is_next_to_margin(new)):
        return None  # "+ item" may be a list item
    known = [shift for shift in on_grid if any(width - shift in depths for width in widths)]
    fitting = known or [shift for shift in on_grid if shift >= 0 and unit > 1]
    nested = [shift for shift in fitting if len(fitting) > 1 and _is_nested(new, shift, unit)]
    return nested[0] if len(nested) == 1 else _choose_single(fitting, on_grid)


def _is_nested(new: Sequence[str], shift: int, unit: int) -> bool:
    """Return whether the added lines without markers fit the blocks of the context lines around them. A line after an
    opening bracket or colon is one ``unit`` deeper; a line that closes a bracket or follows a complete line is not. A
    list's items may be as deep as its key."""
    lines = [(line[:1] == "+", _strip_plus(line, shift) if line[:1] == "+" else line) for line in new]
    filled = [(is_added, line) for is_added, line in lines if line.strip()]
    return all(
        above.lstrip().startswith("- ") or _may_follow(above.rstrip(), below, unit)
        for (was_added, above), (is_added, below) in pairwise(filled)
        if was_added != is_added
    )


def _may_follow(above: str, below: str, unit: int) -> bool:
    """Return whether the indentation of ``below`` is plausible for the line after ``above``."""
    step, first = measure_indent(below) - measure_indent(above), below.lstrip()[0]
    if above.endswith((":", "{", "(", "[")):
        return step == (0 if first in "})]" else unit) or (step == 0 and above[-1] == ":" and first == "-")
    return step < 0 if first in "})]" else step <= 0


def _is_next_to_margin(lines: Sequence[str]) -> bool:
    """Return whether an added line is next to a line without indentation."""
    filled = [line for line in lines if line.strip()]
    pairs = [pair for pair in pairwise(filled) if (pair[0][:1] == "+") != (pair[1][:1] == "+")]
    return any(get_indent(line) == "" for pair in pairs for line in pair if line[:1] != "+")


def _choose_single(shifts: Sequence[int], on_grid: Sequence[int]) -> int | None:
    """Return the only one of ``shifts`` (see `_find_marker_width`). Return None if there are several, or if -1 may come
    from a two-character marker."""
    return shifts[0] if len(shifts) == 1 and (shifts[0] >= 0 or 1 not in on_grid) else None


def _list_votes(added: Sequence[str], lines: Sequence[str]) -> list[int]:
    """For each added line that is clearly similar to one of ``lines``, return the difference in indentation."""
    votes = []
    by_head: dict[str, list[str]] = defaultdict(list)  # "name:" is not "- name:"
    for other in lines:
        by_head[_get_head(other)].append(other)
    for line in added:
        same = by_head.get(_get_head(line), ())
        likes = [(fuzz.ratio(line.strip(), other.strip()), measure_indent(other)) for other in same]
        best = max(likes, default=(0.0, 0))
        if best[0] >= MIN_NEW_FORM and {depth for likeness, depth in likes if likeness == best[0]} == {best[1]}:
            votes.append(measure_indent(line) - best[1])
    return votes


def _get_head(line: str) -> str:
    """Return the first word of a line with the punctuation before it, or all of its punctuation."""
    return re.split(r"(?<=\w)\b", line.strip(), maxsplit=1)[0]


def _strip_plus(line: str, shift: int) -> str:
    if line == "+ ":
        return ""  # an empty line, at any marker width
    return " " + line[1:] if shift < 0 and line[1:].strip() else line[1 + max(shift, 0) :]


_NUMBERED = re.compile(r"[ \t]*(\d+)(?:(\t)|[ \t]?([|:\u2502\u2192])|(?=$))(.*)")


def strip_line_numbers(text: str) -> dict[bool, str]:
    """Strip ascending line numbers such as ``12| x``, ``12: x`` or the output of ``cat -n``, if every line has one.

    Return one or two results, the likelier first, or {} if a line has no number. A space after the number may belong to
    it or to the line: the result without this space has the key True, the result with it has the key False.
    """
    lines = text.split("\n")
    if not _NUMBERED.fullmatch(next((line for line in lines if line.strip()), "")):
        return {}
    matches = [(_NUMBERED.fullmatch(line) if line.strip() else None) for line in lines]
    numbered = [match for match in matches if match is not None]
    count = sum(1 for line in lines if line.strip())
    if not numbered or len(numbered) < count or not any(match[2] or match[3] for match in numbered):
        return {}
    numbers = [int(match[1]) for match in numbered]
    if any(after <= before for before, after in pairwise(numbers)):
        return {}
    has_blank = all(match[2] or match[4][:1] in ("", " ") for match in numbered) and not all(
        match[2] for match in numbered
    )
    ways = (True, False) if has_blank else (False,)
    return {strips: "\n".join(_strip_number(match, strips) if match else "" for match in matches) for strips in ways}


def _strip_number(match: re.Match[str], strips: bool) -> str:
    return match[4].removeprefix(" ") if strips and not match[2] else match[4]


def strip_line_numbers_from_pair(old: str, new: str) -> Iterator[tuple[str, str, int]]:
    """Yield both texts without line numbers, and the first line number, if the old text has line numbers.

    In the new text, only some of the lines may be numbered.
    """
    first = _NUMBERED.match(next((line for line in old.split("\n") if line.strip()), ""))
    for strips, stripped in strip_line_numbers(old).items():
        yield stripped, _strip_copied_numbers(old, new, strips), int(first[1]) if first else 1


def _strip_copied_numbers(old: str, new: str, strips: bool) -> str:
    """Strip line numbers from the new text if they have the old text's separator. If only some lines are numbered, only
    numbers near the line numbers of the old text are stripped. Other numbers may be content."""
    numbered_old = [match for line in old.split("\n") if (match := _NUMBERED.fullmatch(line))]
    mark = next(match[2] or match[3] for match in numbered_old if match[2] or match[3])
    last = int(numbered_old[-1][1]) + new.count("\n") + 1
    matches = [_NUMBERED.fullmatch(line) for line in new.split("\n")]
    numbered = [match for match in matches if match and (match[2] or match[3]) == mark]
    blank = [match for match in matches if match and not match[2] and not match[3]]
    is_every = bool(numbered) and len(numbered) + len(blank) == sum(bool(line.strip()) for line in new.split("\n"))
    near = {match for match in numbered if int(numbered_old[0][1]) <= int(match[1]) <= last}
    copied = {*numbered, *blank} if is_every else near
    pairs = zip(new.split("\n"), matches, strict=True)
    return "\n".join(_strip_number(match, strips) if match and match in copied else line for line, match in pairs)
