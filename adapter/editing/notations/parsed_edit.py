"""The edits of a single file that are being parsed, and their hunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from adapter.editing.repairs.reindent import get_indent
from adapter.tools.operations import FileAction, Hunk, Patch

_NO_NEWLINE_WORDS = "no newline at end of"
TWO_FORMATS = "the text has edits in two formats; write all of them in one format"


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
    """Convert lines with diff markers to a hunk. A line without a marker is treated as a context line.

    ``line`` is the hunk's ``start_line``. ``below`` and ``at_end`` are as in `Hunk`.

    The hunk's ``others`` are alternatives: all context lines lack their marker, each changed line has it twice, or only
    unindented added lines lack it.
    """
    readings = [lines]
    if _may_lack_markers(lines):
        is_context = [text[:1] not in ("-", "+") and not is_no_newline_marker(text) for text in lines]
        readings.append([" " * bare + text for text, bare in zip(lines, is_context, strict=True)])
    if all(text[:2] in ("--", "++") for text in lines if text[:1] in ("-", "+")):
        readings.append([text[1:] if text[:1] in ("-", "+") else text for text in lines])
    bare = {number for number, text in enumerate(lines) if text[:1] not in ("", " ", "\t", "-", "+", "\\")}
    if bare and any(text[:1] == " " for text in lines) and all(_is_between_added(lines, number) for number in bare):
        readings.append(["+" * (number in bare) + text for number, text in enumerate(lines)])
    hunks = [_parse_marked_lines(reading, line, below, at_end) for reading in readings]
    return replace(hunks[0], others=tuple(hunks[1:]))


def _is_between_added(lines: Sequence[str], number: int) -> bool:
    return 0 < number < len(lines) - 1 and lines[number - 1][:1] == lines[number + 1][:1] == "+"


def _may_lack_markers(lines: Sequence[str]) -> bool:
    """Return whether the spaces before context lines may be indentation rather than markers: a context line has none,
    or the added lines are indented like the other lines."""
    context = [text for text in lines if text[:1] not in ("-", "+", "\\") and text.strip()]
    old = [*context, *(text[1:] for text in lines if text[:1] == "-")]
    added = (get_indent(text[1:]) for text in lines if text[:1] == "+" and text[1:].strip())
    is_bare = any(text[:1] != " " for text in context)
    return any(text[:1] == " " for text in context) and (is_bare or {*map(get_indent, old)}.issuperset(added))


def _parse_marked_lines(lines: Sequence[str], line: int | None, below: tuple[str, ...], at_end: bool) -> Hunk:
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
