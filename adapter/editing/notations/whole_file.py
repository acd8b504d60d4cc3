"""Parse whole files in code fences, with the path above the fence or in its info string::

    path
    ```python
    all lines; a comment like "# ... existing code ..." may replace unchanged ones
    ```

If the whole text is a single fence, a path is not necessary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adapter.editing.notations.filename_detection import FENCE, find_bare_path, is_unambiguous_path, opens_diff
from adapter.editing.notations.parsed_edit import ParsedEdit, close_lines
from adapter.tools.operations import WholeFileRewrite

_INFO_PATH = re.compile(r"(?:[\w+#-]*[: ]\s*)?(?:(?:title|file|filename|path)=)?[\"']?(?P<path>[^\s\"'=]+)[\"']?")
_EDIT_START = re.compile(r"<{5,9}(?: |$)|-{5,9} ?SEARCH|\*\*\* ?(?:Begin Patch|\w+ File:)|--- |\+\+\+ |@@|diff --git ")
_EDIT_END = re.compile(r">{5,9}(?: |$)|[-+]{5,9} ?REPLACE|\*\*\* ?End Patch")
MIN_TEXT = 3
"""Minimum number of non-blank lines above an edit for it to be part of a file's text."""
MAX_UNCLOSED = 20
"""Maximum number of unclosed fences, because each search for a closing fence reads the rest of the text."""


class _Fence(NamedTuple):
    """A fence around the lines ``start:end``. ``path`` is None if it does not name a file."""

    path: str | None
    start: int
    end: int


def is_whole_file(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain a fence with a path, or consist of a single fence."""
    return bool(_find_file_fences(lines))


def parse_whole_files(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return a rewrite for each fence with a path, or for the only fence."""
    return [
        ParsedEdit(fence.path, patches=[WholeFileRewrite("", close_lines(lines[fence.start : fence.end]))])
        for fence in _find_file_fences(lines)
    ]


def remove_files_with_edits(lines: Sequence[str]) -> list[str]:
    """Return ``lines`` without fenced files whose own text contains an edit, such as the patch in a test."""
    left, position = list[str](), 0
    for fence in _find_file_fences(lines):
        filled = [line for line in lines[fence.start : fence.end] if line]
        edit = next((number for number, line in enumerate(filled) if _EDIT_START.match(line)), 0)
        if edit >= MIN_TEXT and not _EDIT_END.match(filled[-1]) and not opens_diff(lines[fence.start - 1]):
            left += lines[position : fence.start]
            position = fence.end
    return [*left, *lines[position:]]


def find_fences(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the range ``start:end`` of the lines inside each fence."""
    return [(fence.start, fence.end) for fence in _find_fences(lines)]


def _find_file_fences(lines: Sequence[str]) -> list[_Fence]:
    fences = list(_find_fences(lines))
    with_path = [fence for fence in fences if fence.path is not None]
    if with_path or len(fences) != 1:
        return with_path
    outside = (*lines[: fences[0].start - 1], *lines[fences[0].end + 1 :])
    return [] if any(line.strip() for line in outside) else fences


def _find_fences(lines: Sequence[str]) -> Iterator[_Fence]:
    """Yield the outermost closed fences."""
    number = unclosed = 0
    while number < len(lines) and unclosed < MAX_UNCLOSED:
        opening = FENCE.fullmatch(lines[number])
        if opening is None or (end := _find_closing_fence(lines, number, opening["marks"])) is None:
            unclosed += opening is not None
            number += 1
            continue
        yield _Fence(_find_fence_path(lines, number, opening["info"].strip()), number + 1, end)
        number = end + 1


def _find_closing_fence(lines: Sequence[str], start: int, marks: str) -> int | None:
    """Return the line that closes the fence at ``start``, skipping nested fences with an info string."""
    depth = 1
    for number in range(start + 1, len(lines)):
        fence = FENCE.fullmatch(lines[number])
        if fence is None or not fence["marks"].startswith(marks):
            continue
        depth += 1 if fence["info"].strip() else -1
        if not depth:
            return number
    return None


def _find_fence_path(lines: Sequence[str], number: int, info: str) -> str | None:
    info_path = _INFO_PATH.fullmatch(info)
    if info_path is not None and "." in info_path["path"] and is_unambiguous_path(info_path["path"]):
        return info_path["path"]
    line_above = number - 1
    if line_above > 0 and not lines[line_above].strip():
        line_above -= 1
    path = find_bare_path(lines[line_above]) if line_above >= 0 else None
    return path if path is not None and is_unambiguous_path(path) else None
