"""What a model copied into its texts from how they were shown: diff marks and line numbers.

Often only one of the two texts has them. Where the old text has none, its lines show what
is a mark in the new one: what is left when the marks are taken off must be lines that were
kept. Where that leaves a doubt nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rapidfuzz import fuzz

from adapter.editing.repairs.reindent import indent_of, indent_unit, indent_width

DIFF_NOTE = "diff markers in the new text were left off"
NUMBERS_NOTE = "line numbers in the new text were left off"


MIN_NEW_FORM = 75.0
"""Percent alike from which an added line is the new form of a removed one."""


class AmbiguousDiffMarkers(Exception):
    """A line of the new text begins with what may be a mark or may be meant. ``str(error)`` is the line."""


# --------------------------------------------------------------------- both texts


def strip_diff_markers(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Both texts without diff marks, if the old one has them: of lines that are kept, too, or only of the others."""
    before, after = old.split("\n"), new.split("\n")
    if not has_diff_markers(before) or (has_diff_markers(after) and not any(line.startswith("+") for line in after)):
        return  # a list of "- items" is no diff
    bare = _side(before, "-")
    yield "\n".join(bare), "\n".join(_new_side(bare, after))
    if any(line[:1] == " " for line in before):
        yield "\n".join(_stripped(before, "-")), "\n".join(_stripped(after, "+"))


def has_diff_markers(lines: Sequence[str]) -> bool:
    """Every line begins as in a diff: with a space, ``-`` or ``+``."""
    return all(line[:1] in " -+" for line in lines) and any(line[:1] in ("-", "+") for line in lines)


def _side(lines: Sequence[str], mark: str) -> list[str]:
    """One side of a diff in which every line is marked."""
    return [line[1:] for line in lines if line[:1] in ("", " ", mark)]


def _stripped(lines: Sequence[str], mark: str, width: int = 1) -> list[str]:
    """One side of a diff in which lines that are kept have no mark."""
    other = "-" if mark == "+" else "+"
    return [line[width:] if line[:1] == mark else line for line in lines if line[:1] != other]


def _new_side(old: Sequence[str], new: Sequence[str]) -> Sequence[str]:
    if has_diff_markers(new):
        return _side(new, "+")
    known = set(old) - {""}
    filled = [line for line in new if line.strip()]
    is_shifted = bool(filled) and all(line[:1] == " " for line in filled)
    if is_shifted and known.issuperset(line[1:] for line in filled) and not known.intersection(filled):
        return [line[1:] for line in new]  # lines were only taken out: the kept ones have their blank still
    return _stripped(new, "+") if any(line[:1] == "+" for line in new) else new


# -------------------------------------------------------------------- the new text


def strip_new_text_markers(old: str, new: str, view: str) -> tuple[str, str] | None:
    """The new text without marks that the old one does not have, and a note; None when it has none.

    ``view``: the document; where lines of it begin with ``+``, such lines are meant. Raises Unmarkable.
    """
    before, after = old.split("\n"), new.split("\n")
    if any(line[:1] in ("+", "-") for line in after) and not has_diff_markers(before):
        written = _without_marks(before, after, view)
        if written is not None:
            return "\n".join(written), DIFF_NOTE
    bare_ways = strip_line_numbers(new)
    if bare_ways and not strip_line_numbers(old):
        for bare in bare_ways.values():
            kept = set(before) - {""}
            lines = bare.split("\n")
            if kept.intersection(lines) and not kept.intersection(after):
                return bare, NUMBERS_NOTE
    return None


def _without_marks(old: Sequence[str], new: Sequence[str], view: str) -> Sequence[str] | None:
    added = [line for line in new if line[:1] == "+"]
    kept = [line for line in new if line[:1] not in ("+", "-")]
    has_removed = len(added) + len(kept) < len(new)
    if has_diff_markers(new) and _filled(_side(new, "-")) == _filled(old) and (added or has_removed):
        return _side(new, "+")
    if not added or "\n+" in "\n" + view:
        return None
    if has_removed:
        widths = (width for width in (1, 2) if _filled(_stripped(new, "-", width)) == _filled(old))
        return next((_stripped(new, "+", width) for width in widths), None)
    if not kept or not any(line.strip() for line in kept):
        return None if _may_be_a_list(added) else [line[1:] for line in new]
    if _is_part(_filled([line[1:] for line in kept]), old) and not _is_part(_filled(kept), old):
        return _side(new, "+")
    if not _is_part(_filled(kept), old):
        return None
    shift = _shift(old, new)
    if shift is None:
        raise AmbiguousDiffMarkers(added[0])
    return [_unplussed(line, shift) if line[:1] == "+" else line for line in new]


def _filled(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def _is_part(lines: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether ``lines`` stand in ``whole``, in order."""
    rest = iter(_filled(whole))
    return all(line in rest for line in lines)


def _may_be_a_list(added: Sequence[str]) -> bool:
    return all(line[1:2] == " " and line[2:3].strip() for line in added)


def _shift(old: Sequence[str], new: Sequence[str]) -> int | None:
    """Blanks that the marks have beyond themselves: 1 for ``+ ``, -1 where the mark took the place of a
    blank; None when neither the lines that were changed nor the indentation of all tell."""
    added = [line[1:] for line in new if line[:1] == "+" and line[1:].strip()]
    if not added or any(line[:1] == "\t" for line in added):
        return 0
    votes = {0, 1, -1}.intersection(_votes(added, [line for line in old if line.strip() and line not in new]))
    unit = indent_unit(indent_of(line) for line in old if line.strip()) or 2
    widths = {indent_width(line) for line in added}
    on_grid = [shift for shift in (0, 1, -1) if all((width - shift) % unit == 0 for width in widths)]
    if votes:
        return _sure(list(votes), on_grid)
    depths = {indent_width(line) for line in old if line.strip()}
    if depths == {0} and _may_be_a_list(["+" + line for line in added]):
        return None  # "+ item" is an item of a list, too
    known = [shift for shift in on_grid if any(width - shift in depths for width in widths)]
    fitting = known or [shift for shift in on_grid if shift >= 0 and unit > 1]
    return _sure(fitting, on_grid)


def _sure(shifts: Sequence[int], on_grid: Sequence[int]) -> int | None:
    """The only one of some shifts; none where the mark took the place of a blank, or is two wide before lines that
    are moved."""
    return shifts[0] if len(shifts) == 1 and (shifts[0] >= 0 or 1 not in on_grid) else None


def _votes(added: Sequence[str], removed: Sequence[str]) -> Iterator[int]:
    """What the indentation of an added line says that is clearly the new form of a removed one."""
    for line in added:
        same = [other for other in removed if other.split()[0] == line.split()[0]]  # "name:" is not "- name:"
        likes = [(fuzz.ratio(line.strip(), other.strip()), indent_width(other)) for other in same]
        best = max(likes, default=(0.0, 0))
        if best[0] >= MIN_NEW_FORM and {depth for likeness, depth in likes if likeness == best[0]} == {best[1]}:
            yield indent_width(line) - best[1]


def _unplussed(line: str, shift: int) -> str:
    if line == "+ ":
        return ""  # an empty line, however wide the marks are
    return " " + line[1:] if shift < 0 and line[1:].strip() else line[1 + max(shift, 0) :]


# ------------------------------------------------------------------- line numbers

_NUMBERED = re.compile(r"[ \t]*(\d+)(?:(\t)|[ \t]?([|:\u2502\u2192])|(?=$))(.*)")


def strip_line_numbers(text: str) -> dict[bool, str]:
    """``12| x``, ``12: x`` or the output of ``cat -n`` on every line, counting up: the lines alone. A blank
    behind the mark may be part of the mark or of the line: by whether it is left off, the likelier way first."""
    lines = text.split("\n")
    if not _NUMBERED.fullmatch(next((line for line in lines if line.strip()), "")):
        return {}
    matches = [(_NUMBERED.fullmatch(line) if line.strip() else None) for line in lines]
    found = [match for match in matches if match is not None]
    count = sum(1 for line in lines if line.strip())
    if not found or len(found) < count or not any(match[2] or match[3] for match in found):
        return {}
    numbers = [int(match[1]) for match in found]
    if any(after <= before for before, after in pairwise(numbers)):
        return {}
    has_blank = all(match[2] or match[4][:1] in ("", " ") for match in found) and not all(match[2] for match in found)
    ways = (True, False) if has_blank else (False,)
    return {strips: "\n".join(_numberless(match, strips) if match else "" for match in matches) for strips in ways}


def _numberless(match: re.Match[str], strips: bool) -> str:
    return match[4].removeprefix(" ") if strips and not match[2] else match[4]


def strip_line_numbers_from_pair(old: str, new: str) -> Iterator[tuple[str, str, int]]:
    """Both texts without line numbers, if the old one has them, and the first number; also where only
    some lines of the new text are numbered."""
    first = _NUMBERED.match(next((line for line in old.split("\n") if line.strip()), ""))
    of_new = strip_line_numbers(new)
    for strips, bare in strip_line_numbers(old).items():
        written = of_new.get(strips, next(iter(of_new.values()), None))
        yield bare, _partly_numbered(old, new, strips) if written is None else written, int(first[1]) if first else 1


def _partly_numbered(old: str, new: str, strips: bool) -> str:
    """Lines that were copied with their numbers lose them; the mark must be that of the old text. Where every line
    has one, new ones have any number: models do not know it."""
    shown = [match for line in old.split("\n") if (match := _NUMBERED.fullmatch(line))]
    mark = next(match[2] or match[3] for match in shown if match[2] or match[3])
    last = int(shown[-1][1]) + new.count("\n") + 1
    matches = [_NUMBERED.fullmatch(line) for line in new.split("\n")]
    numbered = [match for match in matches if match and (match[2] or match[3]) == mark]
    is_every = len(numbered) == sum(bool(line.strip()) for line in new.split("\n"))
    copied = {match for match in numbered if is_every or int(shown[0][1]) <= int(match[1]) <= last}
    pairs = zip(new.split("\n"), matches, strict=True)
    return "\n".join(_numberless(match, strips) if match and match in copied else line for line, match in pairs)
