"""Edits of a single file during parsing, and their hunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from adapter.tools.operations import FileAction, Hunk, Patch

_NO_NEWLINE_WORDS = "no newline at end of"


@dataclass
class ParsedEdit:
    """An edit of one file. ``path`` is None if the text does not name the file. ``content`` is the content of a new
    file."""

    path: str | None
    action: FileAction = "update"
    patches: list[Patch] = field(default_factory=list)
    content: str = ""
    moved_to: str | None = None


def close_lines(lines: Iterable[str]) -> str:
    """Join ``lines``, each with a line feed at its end."""
    return "".join(line + "\n" for line in lines)


def is_no_newline_marker(line: str) -> bool:
    r"""Return whether a line is ``\ No newline at end of file``, possibly with a common misspelling."""
    return line.lstrip().startswith("\\") and _NO_NEWLINE_WORDS in line.lower()


def parse_hunk(
    lines: Sequence[str], line: int | None = None, below: tuple[str, ...] = (), at_end: bool = False
) -> Hunk:
    """Convert lines with diff markers to a hunk. A line without a marker is treated as a context line."""
    old: list[str] = []
    new: list[str] = []
    unclosed: set[str] = set()
    last = " "
    for written in lines:
        if is_no_newline_marker(written):
            unclosed.update("-+" if last == " " else last)
            continue
        last = written[:1] if written[:1] in ("-", "+") else " "
        text = written[1:] if written[:1] in (" ", "-", "+") else written
        if last != "+":
            old.append(text)
        if last != "-":
            new.append(text)
    has_newline = "+" not in unclosed if len(unclosed) == 1 else None
    is_last = at_end or bool(unclosed)
    texts = close_lines(old), close_lines(new)
    return Hunk(*texts, line, below=below, at_end=is_last, final_newline=has_newline, in_order=True)


def has_changes(lines: Sequence[str]) -> bool:
    return any(line[:1] in ("-", "+") for line in lines)
