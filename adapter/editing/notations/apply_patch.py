"""The ``*** Begin Patch`` envelope of codex, read as patches.

::

    *** Begin Patch
    *** Update File: path
    *** Move to: new/path
    @@ class A:
    @@ def f():
     kept
    -old
    +new
    *** End of File
    *** Add File: path
    +content
    *** Delete File: path
    *** End Patch

``@@`` names a line above the hunk, at an unknown distance; several, one in
another. Lines that are only added go below that line, without one to the end
of the file. Blanks around the markers do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import FENCE
from adapter.editing.notations.parsed_edit import ParsedEdit, close_lines, has_changes, is_no_newline_marker, parse_hunk
from adapter.editing.notations.unified_diff import parse_hunk_header
from adapter.tools.operations import FileAction

MAX_BELOW = 10
"""Lines that are named above one change, one in another."""

_ACTIONS: dict[str, FileAction] = {"update": "update", "modify": "update", "add": "add", "delete": "delete"}
_FILE = re.compile(r"\*\*\* ?(?P<verb>\w+) File:(?P<path>.*\S)[ \t]*")
_MOVE = re.compile(r"\*\*\* ?Move to:(?P<path>.*\S)[ \t]*")
_BEGIN = re.compile(r"\*\*\* ?Begin Patch[ \t]*")
_END = re.compile(r"\*\*\* ?End Patch[ \t]*")
_END_OF_FILE = re.compile(r"\*\*\* ?End of File[ \t]*")


def is_apply_patch(lines: Sequence[str]) -> bool:
    """Whether ``lines`` hold the marker of a file, or begin an envelope."""
    stripped = [line.strip() for line in lines]
    files = filter(None, map(_FILE.fullmatch, stripped))
    return any(map(_BEGIN.fullmatch, stripped)) or any(file["verb"].lower() in _ACTIONS for file in files)


def parse_apply_patch(lines: Sequence[str]) -> list[ParsedEdit]:
    """The edits of an envelope. Raises FormatError for a file of which nothing is asked."""
    asked: list[ParsedEdit] = []
    body: list[str] | None = None
    if next(filter(str.strip, lines), "").startswith((" ", "\t")):
        from textwrap import dedent  # its patterns take a while

        lines = dedent("\n".join(lines)).split("\n")  # an envelope in a list or a command is indented as a whole
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    for number, line in enumerate([*lines, "*** End Patch"]):
        text = line if body and number != last else line.strip()  # in a hunk, a blank before it makes it a line
        file = _FILE.fullmatch(text)
        if file or _BEGIN.fullmatch(text) or _END.fullmatch(text):
            if body is not None:
                _fill(asked[-1], body)
            body = None
        if file:
            asked.append(_begun(file))
            body = []
        elif body is not None:
            body.append(line)
    return asked


def _begun(file: re.Match[str]) -> ParsedEdit:
    action = _ACTIONS.get(file["verb"].lower())
    if action is None:
        raise FormatError(f"{file[0].strip()!r} is no marker; expected Update File, Add File or Delete File")
    return ParsedEdit(file["path"].strip(), action)


def _fill(edit: ParsedEdit, body: list[str]) -> None:
    if edit.action == "add":
        edit.content = _content(edit, body)
    elif edit.action == "update":
        _read_hunks(edit, body)
        if not edit.patches and not edit.moved_to:
            raise FormatError(f"nothing is asked of {edit.path}: write what changes in lines that begin with - and +")


def _content(edit: ParsedEdit, body: Sequence[str]) -> str:
    """The lines of a new file: each after a ``+``, or, when none has one, as they stand."""
    lines = list(body)
    is_closed = not any(map(is_no_newline_marker, lines))
    lines = [line for line in lines if not is_no_newline_marker(line)]
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) > 1 and FENCE.fullmatch(lines[0]) and FENCE.fullmatch(lines[-1]):
        lines = lines[1:-1]
    marked = [line.startswith("+") for line in lines if line.strip()]
    if any(marked) and not all(marked):
        line = next(line for line in lines if line.strip() and not line.startswith("+"))
        raise FormatError(f"{line[:60]!r} in the new file {edit.path} has no + before it, other lines have; write one")
    text = close_lines(line.removeprefix("+") for line in lines)
    return text if is_closed else text.removesuffix("\n")


def _read_hunks(edit: ParsedEdit, body: Sequence[str]) -> None:
    hunk: list[str] = []
    below: list[str] = []
    line: int | None = None
    at_end = False
    for text in [*body, "@@"]:
        head = parse_hunk_header(text)
        if head is not None:
            if has_changes(hunk):
                _add(edit, hunk, line, tuple(below), at_end)
            if len(below) > MAX_BELOW:
                raise FormatError(f"{len(below)} lines with @@ stand above one change; write the innermost alone")
            below = [*([] if hunk else below), *([head.section] if head.section else [])]
            hunk, line, at_end = [], head.line, False
        elif _END_OF_FILE.fullmatch(text):
            at_end = True
        elif move := None if hunk else _MOVE.fullmatch(text.strip()):
            edit.moved_to = move["path"].strip()
        elif not _is_around(text, is_first=not hunk):
            hunk.append(text)


def _is_around(text: str, is_first: bool) -> bool:
    """A fence, or a header as diffs have it, which models write into an envelope."""
    if FENCE.fullmatch(text):
        return text[0] not in " \t"
    return is_first and text.startswith(("--- a/", "+++ b/", "--- /", "+++ /"))


def _add(edit: ParsedEdit, hunk: list[str], line: int | None, below: tuple[str, ...], at_end: bool) -> None:
    while hunk and not hunk[-1]:
        hunk.pop()
    patch = parse_hunk(hunk, line or None, below, at_end)
    if not patch.old_text:
        patch = replace(patch, start_line=None, at_end=not below)
    edit.patches.append(patch)
