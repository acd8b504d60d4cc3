"""What counts as a line here: text up to a line feed, a carriage return and line feed, or a lone carriage return.

``str.splitlines`` also breaks at form feeds, U+2028 and others, which editors,
compilers and ``grep -n`` do not count, so nothing in this package uses it on files.
"""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LINE_END = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> list[str]:
    """The lines with their line ends; joined they give ``text`` back. No text, no lines."""
    return _LINE.findall(text)


def line_texts(text: str) -> list[str]:
    """The lines without their line ends, as many as `split_lines` gives."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def line_end(line: str) -> str:
    """The line end that ``line`` closes with, or an empty string."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1:] if line.endswith(("\n", "\r")) else ""


def without_end(line: str) -> str:
    return line[: len(line) - len(line_end(line))]


def to_lf(text: str) -> str:
    """``text`` with every line end as a line feed."""
    return _LINE_END.sub("\n", text) if "\r" in text else text
