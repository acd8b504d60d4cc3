"""Whole files, each in a fence below its path or with the path in the fence, read as rewrites::

    path
    ```python
    all lines, or some with "# ... existing code ..." for those that stay
    ```

A text that is nothing but a fence is the file that it is given for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adapter.editing.notations.filename_detection import FENCE, bare_path, is_unambiguous_path
from adapter.editing.notations.parsed_edit import ParsedEdit, close_lines
from adapter.tools.operations import WholeFileRewrite

_INFO_PATH = re.compile(r"(?:[\w+#-]*[: ]\s*)?(?:(?:title|file|filename|path)=)?[\"']?(?P<path>[^\s\"'=]+)[\"']?")


MAX_UNCLOSED = 20
"""Fences that do not close; each is sought to the end of the text."""


class _Fence(NamedTuple):
    """The lines ``start:end`` inside a fence; ``path`` is None where none is named."""

    path: str | None
    start: int
    end: int


def is_whole_file(lines: Sequence[str]) -> bool:
    """Whether ``lines`` hold a fence below a path, or are one fence."""
    return bool(_listed(lines))


def parse_whole_files(lines: Sequence[str]) -> list[ParsedEdit]:
    """A rewrite for each fence that has a path."""
    return [
        ParsedEdit(fence.path, patches=[WholeFileRewrite("", close_lines(lines[fence.start : fence.end]))])
        for fence in _listed(lines)
    ]


def find_fences(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The lines ``start:end`` inside each fence."""
    return [(fence.start, fence.end) for fence in _fences(lines)]


def _listed(lines: Sequence[str]) -> list[_Fence]:
    fences = list(_fences(lines))
    named = [fence for fence in fences if fence.path is not None]
    if named or len(fences) != 1:
        return named
    around = (*lines[: fences[0].start - 1], *lines[fences[0].end + 1 :])
    return [] if any(line.strip() for line in around) else fences


def _fences(lines: Sequence[str]) -> Iterator[_Fence]:
    """The outermost fences; one that is not closed is none."""
    number = unclosed = 0
    while number < len(lines) and unclosed < MAX_UNCLOSED:
        opening = FENCE.fullmatch(lines[number])
        if opening is None or (end := _end(lines, number, opening["marks"])) is None:
            unclosed += opening is not None
            number += 1
            continue
        yield _Fence(_path(lines, number, opening["info"].strip()), number + 1, end)
        number = end + 1


def _end(lines: Sequence[str], start: int, marks: str) -> int | None:
    """The line that closes the fence, past fences in it that say a language."""
    depth = 1
    for number in range(start + 1, len(lines)):
        fence = FENCE.fullmatch(lines[number])
        if fence is None or not fence["marks"].startswith(marks):
            continue
        depth += 1 if fence["info"].strip() else -1
        if not depth:
            return number
    return None


def _path(lines: Sequence[str], number: int, info: str) -> str | None:
    inside = _INFO_PATH.fullmatch(info)
    if inside is not None and "." in inside["path"] and is_unambiguous_path(inside["path"]):
        return inside["path"]
    above = number - 1
    if above > 0 and not lines[above].strip():
        above -= 1
    path = bare_path(lines[above]) if above >= 0 else None
    return path if path is not None and is_unambiguous_path(path) else None
