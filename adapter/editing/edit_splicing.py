"""Insert the replacements of located patches into a text, and list the lines that they changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adapter.core.text.diffs import LineChange
from adapter.core.text.lines import count_common_prefix, split_lines
from adapter.editing.document import TextDocument
from adapter.editing.resolved_edits import ResolvedEdit


class LineEdit(NamedTuple):
    """An edit that replaces ``text[start:end]`` with ``replacement``. ``patch`` is the 0-based number of its patch, and
    ``order`` the 0-based number of the edit within the patch."""

    start: int
    end: int
    patch: int
    order: int
    replacement: str


def trim_context(document: TextDocument, edit: ResolvedEdit, patch: int, order: int) -> LineEdit:
    """Drop unchanged lines from both ends of an edit, so that patches with common context lines do not overlap."""
    start, end = document.get_text_offset(edit.match.start), document.get_text_offset(edit.match.end)
    old, new = split_lines(document.text[start:end]), split_lines(edit.replacement)
    head = count_common_prefix(old, new)
    tail = count_common_prefix(old[head:][::-1], new[head:][::-1])
    before = sum(map(len, old[:head]))
    after = sum(map(len, old[len(old) - tail :]))
    return LineEdit(start + before, end - after, patch, order, edit.replacement[before : len(edit.replacement) - after])


def splice_edits(text: str, changes: Sequence[LineEdit]) -> str:
    """Return ``text`` with the changes applied. They must be in text order and must not overlap."""
    parts: list[str] = []
    position = 0
    for change in changes:
        parts += (text[position : change.start], change.replacement)
        position = change.end
    return "".join([*parts, text[position:]])


def list_change_offsets(spliced: Sequence[LineEdit]) -> Iterator[int]:
    """Yield the offset of each change in the patched text."""
    shift = 0
    for change in spliced:
        yield change.start + shift
        shift += len(change.replacement) - (change.end - change.start)


def iter_changed_lines(text: str, spliced: Sequence[LineEdit]) -> list[LineChange]:
    """Return each change's range of lines in ``text`` and in the patched text. Changes in the same line share a
    range."""
    changes: list[LineChange] = []
    position = line = shift = 0
    for change in spliced:
        line += text.count("\n", position, change.start)
        end = line + text.count("\n", change.start, change.end)
        new_end = line + shift + change.replacement.count("\n")
        if changes and line < changes[-1].end:
            changes[-1] = changes[-1]._replace(end=end + 1, new_end=new_end + 1)
        else:
            changes.append(LineChange(line, end + 1, line + shift, new_end + 1))
        position, line, shift = change.end, end, new_end - end
    return changes
