"""Parse SEARCH/REPLACE blocks, which are written below the path of their file.

::

    path
    <<<<<<< SEARCH
    old
    =======
    new
    >>>>>>> REPLACE

Variants: ``------- SEARCH`` and ``+++++++ REPLACE`` (Cline), ``:start_line:12`` above the old text (Roo Code), and git
conflict markers: ``<<<<<<< HEAD``, ``>>>>>>> other`` and, in diff3 style, a part below ``||||||| base``, which is
ignored. Without ``=======`` lines, ``------- REPLACE`` may both divide and end a block.

Old and new text may contain lines that look like markers. A block ends at the first REPLACE line. If it has several
possible dividers, each is tried against the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import find_path, find_path_above
from adapter.editing.notations.parsed_edit import TWO_FORMATS, ParsedEdit, close_lines
from adapter.editing.notations.unified_diff import has_hunks
from adapter.tools.operations import Hunk

_SEARCH = re.compile(r"(?P<marks><{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)>?(?:[ \t:]+(?P<path>\S.*)|\s*)")
_CONFLICT = re.compile(r"(?P<marks><{5,9})(?: .*)?\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_BASE = re.compile(r"\|{5,9}(?: .*)?\s*")
_REPLACE = re.compile(r"(?:>{5,9}|\+{5,9}) ?(?:REPLACE|UPDATED)\b.*")
_DASHED = re.compile(r"-{5,9} ?REPLACE\s*")
_OTHER_END = re.compile(r">{5,9}(?: .*)?\s*")
_ESCAPED = re.compile(r"\\(?=(?:<{5,9}|>{5,9}|={5,9}|-{5,9})(?:\s|$))")
_HINT = re.compile(r":(?P<end>start|end)_line:\s*(?P<line>\d+)\s*|-{5,9}\s*")
MAX_DIVISIONS = 20
"""Maximum number of ways to divide a block. Each of them is matched against the file."""


def is_search_replace(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain a block, or the start of one."""
    lines = _normalize_dashed(lines)
    if not any(map(_DIVIDER.fullmatch, lines)):
        return False
    return any(_SEARCH.fullmatch(line) or _CONFLICT.fullmatch(line) for line in lines)


def has_blocks_or_hunks(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain a block, or the hunks of a diff."""
    return is_search_replace(lines) or has_hunks(lines)


def parse_search_replace(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return the edits of all blocks, grouped by file. Raises FormatError if a block has no end or no divider, or if
    there are hunks of a diff between the blocks."""
    lines = _normalize_dashed(lines)
    edits: dict[str | None, ParsedEdit] = {}
    path: str | None = None
    outside: list[str] = []
    number = previous = 0
    while number < len(lines):
        search = _SEARCH.fullmatch(lines[number])
        if search is None and _REPLACE.fullmatch(lines[number]):
            marker = repr(lines[number].strip())
            where = f"is the second {marker} in one block" if previous else f"is {marker} without a SEARCH line above"
            raise FormatError(
                f"line {number + 1} {where}; if the old or new text itself contains such a line, use old_text and "
                "new_text instead"
            )
        if search is None and not _CONFLICT.fullmatch(lines[number]):
            outside.append(lines[number])
            number += 1
            continue
        label = find_path(search["path"]) if search and search["path"] else None
        path = label or find_path_above(lines[previous:number], number - previous) or path
        end = _find_end(lines, number, search is not None)
        edits.setdefault(path, ParsedEdit(path)).patches.append(_parse_block(lines[number:end], number + 1))
        number = previous = end + 1
    if edits and has_hunks(outside):
        raise FormatError(TWO_FORMATS)
    return list(edits.values())


def _normalize_dashed(lines: Sequence[str]) -> Sequence[str]:
    """Replace ``------- REPLACE`` lines that divide and end blocks with the usual markers."""
    dashed = [number for number, line in enumerate(lines) if _DASHED.fullmatch(line)]
    if not dashed or len(dashed) % 2 or any(map(_DIVIDER.fullmatch, lines)):
        return lines
    replacements = dict(zip(dashed, ["=======", ">>>>>>> REPLACE"] * (len(dashed) // 2), strict=True))
    return [replacements.get(number, line) for number, line in enumerate(lines)]


def _find_end(lines: Sequence[str], start: int, is_search: bool) -> int:
    """Return the number of the line that closes the block at ``start``. Raises FormatError if there is none."""
    following = range(start + 1, len(lines))
    next_search = next((number for number in following if _SEARCH.fullmatch(lines[number])), len(lines))
    within = range(start + 1, next_search)
    others = (number for number in within if _OTHER_END.fullmatch(lines[number]))
    if not is_search and (end := next(others, None)) is not None:
        return end
    if (end := next((number for number in within if _REPLACE.fullmatch(lines[number])), None)) is not None:
        return end
    found = list(others)
    if len(found) == 1:
        return found[0]
    raise FormatError(f"a SEARCH block at line {start + 1} has no >>>>>>> REPLACE line; complete the block")


def _parse_block(body: Sequence[str], line: int) -> Hunk:
    """Convert the lines of a block, except the last, to a hunk with all possible divisions."""
    divisions = _find_divisions(body[1:], has_base=_SEARCH.fullmatch(body[0]) is None)
    hunks = list(islice(divisions, MAX_DIVISIONS + 1))
    if not hunks:
        raise FormatError(f"a SEARCH block at line {line} has no ======= line between the old and the new text")
    if len(hunks) > MAX_DIVISIONS:
        raise FormatError(
            f"the block at line {line} has too many ======= lines; give its texts as old_text and new_text"
        )
    return replace(hunks[0], others=tuple(hunks[1:])) if len(hunks) > 1 else hunks[0]


def _find_divisions(body: Sequence[str], has_base: bool) -> Iterator[Hunk]:
    for number, text in enumerate(body):
        if not _DIVIDER.fullmatch(text):
            continue
        old, new = list(body[:number]), body[number + 1 :]
        base = next((at for at, line in enumerate(old) if has_base and _BASE.fullmatch(line)), len(old))
        yield _build_hunk(old[:base], new)
        if any(map(_ESCAPED.match, (*old, *new))):
            yield _build_hunk([_ESCAPED.sub("", line) for line in old[:base]], [_ESCAPED.sub("", line) for line in new])


def _build_hunk(old: Sequence[str], new: Sequence[str]) -> Hunk:
    """Convert the halves of a block to a hunk without line hints (``:start_line:12``) and a dashed line above."""
    first, start = _skip_hints(old)
    first_new = _skip_hints(new)[0] if first else 0
    return Hunk(close_lines(old[first:]), close_lines(new[first_new:]), start)


def _skip_hints(lines: Sequence[str]) -> tuple[int, int | None]:
    """Return the number of lines with hints, such as ``:start_line:12``, and the start line that they give."""
    first = 0
    start: int | None = None
    while first < len(lines) and (hint := _HINT.fullmatch(lines[first])):
        if not hint["end"]:  # a dashed line without hints belongs to the file
            first += first > 0
            break
        start = int(hint["line"]) if hint["end"] == "start" else start
        first += 1
    return first, start
