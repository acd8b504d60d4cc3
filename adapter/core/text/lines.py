"""Split text into lines, which end at a line feed, a carriage return and line feed, or a lone carriage return.

``str.splitlines`` also splits at form feeds, U+2028 and others. Editors, compilers and ``grep -n`` do not count these
as line ends, so this package never uses it on files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLOCK = 500
"""Number of items compared at a time."""


def split_lines(text: str) -> list[str]:
    """Split ``text`` into lines that include their line endings. An empty string has no lines."""
    return _LINE.findall(text)


def split_line_texts(text: str) -> list[str]:
    """Split ``text`` into the lines of `split_lines`, without their line endings."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def get_line_end(line: str) -> str:
    """Return the line ending of ``line``, or ""."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1:] if line.endswith(("\n", "\r")) else ""


def strip_line_end(line: str) -> str:
    return line[: len(line) - len(get_line_end(line))]


def to_lf(text: str) -> str:
    """Convert every line ending to a line feed."""
    return _LINE_END.sub("\n", text) if "\r" in text else text


def count_common_prefix(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the number of items (lines, characters, ...) that are equal at the start of both."""
    shorter, index = min(len(left), len(right)), 0
    while index + _BLOCK <= shorter and left[index : index + _BLOCK] == right[index : index + _BLOCK]:
        index += _BLOCK  # many times faster than one item at a time
    while index < shorter and left[index] == right[index]:
        index += 1
    return index
