"""Parse the ``*** Begin Patch`` envelope of OpenAI's Codex.

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

``@@`` quotes a line somewhere above the hunk; the space after it may be missing. Several ``@@`` lines are nested,
outermost first. A hunk that only adds lines is inserted below the innermost quoted line, or at the end of the file if
no line is quoted. Whitespace around markers is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import FENCE
from adapter.editing.notations.parsed_edit import (
    TWO_FORMATS,
    ParsedEdit,
    close_lines,
    has_changes,
    is_no_newline_marker,
    parse_hunk,
)
from adapter.editing.notations.search_replace import has_blocks_or_hunks
from adapter.editing.notations.unified_diff import parse_hunk_header
from adapter.editing.repairs.reindent import get_indent
from adapter.tools.operations import FileAction

MAX_BELOW = 10
"""Maximum number of nested ``@@`` lines above a change."""

_ACTIONS: dict[str, FileAction] = {"update": "update", "modify": "update", "add": "add", "delete": "delete"}
_FILE = re.compile(r"\*\*\* ?(?P<verb>\w+) File:(?P<path>.*?\S)(?:[ \t]+\*{3})?[ \t]*")
_MOVE = re.compile(r"\*\*\* ?Move to:(?P<path>.*\S)[ \t]*")
_BEGIN = re.compile(r"\*\*\* ?Begin Patch[ \t]*(?:\*{3}[ \t]*)?")
_END = re.compile(r"\*\*\* ?End Patch[ \t]*(?:\*{3}[ \t]*)?")
_SPACELESS_HEAD = re.compile(r"^@@(?=[\w\[#/<])")
_END_OF_FILE = re.compile(r"\*\*\* ?End of File[ \t]*(?:\*{3}[ \t]*)?")


def is_apply_patch(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain the start of an envelope or the marker of a file."""
    stripped = [line.strip() for line in lines]
    files = filter(None, map(_FILE.fullmatch, stripped))
    return any(map(_BEGIN.fullmatch, stripped)) or any(file["verb"].lower() in _ACTIONS for file in files)


def parse_apply_patch(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return the edits of an envelope. Raises FormatError for a file without a change, and for edits in another format
    outside the envelope."""
    edits: list[ParsedEdit] = []
    outside: list[str] = []
    body: list[str] | None = None
    indent = min(map(get_indent, filter(str.strip, lines)), key=len, default="")
    lines = [line.removeprefix(indent) for line in lines]  # an envelope in a list or command is indented
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    for number, line in enumerate([*lines, "*** End Patch"]):
        text = line if body and number != last else line.strip()  # in a hunk, an indented marker is a context line
        file = _FILE.fullmatch(text)
        if file or _BEGIN.fullmatch(text) or _END.fullmatch(text):
            if body is not None:
                _complete_edit(edits[-1], body)
            body = None
        if file:
            edits.append(_start_edit(file))
            body = []
        else:
            (outside if body is None else body).append(line)
    if edits and has_blocks_or_hunks(outside):
        raise FormatError(TWO_FORMATS)
    return edits


def _start_edit(file: re.Match[str]) -> ParsedEdit:
    action = _ACTIONS.get(file["verb"].lower())
    if action is None:
        raise FormatError(f"unknown marker {file[0].strip()!r}; expected Update File, Add File or Delete File")
    return ParsedEdit(file["path"].strip(), action)


def _complete_edit(edit: ParsedEdit, body: list[str]) -> None:
    if edit.action == "add":
        edit.content = _build_new_file_content(edit, body)
    elif edit.action == "update":
        _read_hunks(edit, body)
        if not edit.patches and not edit.moved_to:
            raise FormatError(f"{edit.path} has no changes: write changed lines with a leading - or +")


def _build_new_file_content(edit: ParsedEdit, body: Sequence[str]) -> str:
    """Return the content of a new file. Raises FormatError if only some of its lines have a leading ``+``."""
    lines = list(body)
    is_closed = not any(map(is_no_newline_marker, lines))
    lines = [line for line in lines if not is_no_newline_marker(line)]
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) > 1 and FENCE.fullmatch(lines[0]) and FENCE.fullmatch(lines[-1]):
        lines = lines[1:-1]
    has_marker = [line.startswith("+") for line in lines if line.strip()]
    if any(has_marker) and not all(has_marker):
        line = next(line for line in lines if line.strip() and not line.startswith("+"))
        raise FormatError(f"{line[:60]!r} in the new file {edit.path} has no leading +, but other lines do; add it")
    text = close_lines(line.removeprefix("+") for line in lines)
    return text if is_closed else text.removesuffix("\n")


def _read_hunks(edit: ParsedEdit, body: Sequence[str]) -> None:
    hunk: list[str] = []
    below: list[str] = []
    line: int | None = None
    is_insertion = at_end = False
    for text in [*body, "@@"]:
        head = parse_hunk_header(_SPACELESS_HEAD.sub("@@ ", text))
        if head is not None:
            if has_changes(hunk):
                _add(edit, hunk, line, tuple(below), at_end, is_insertion)
            if len(below) > MAX_BELOW:
                raise FormatError(f"one change has {len(below)} lines with @@ above it; write only the innermost")
            below = [*([] if hunk else below), *([head.section] if head.section else [])]
            hunk, line, at_end, is_insertion = [], head.line, False, head.old_count == 0
        elif _END_OF_FILE.fullmatch(text):
            at_end = True
        elif move := None if hunk else _MOVE.fullmatch(text.strip()):
            edit.moved_to = move["path"].strip()
        elif not _is_decoration(text, is_first=not hunk):
            hunk.append(text)


def _is_decoration(text: str, is_first: bool) -> bool:
    """Return whether a line is a code fence or a diff header that the model added to the envelope."""
    if FENCE.fullmatch(text):
        return text[0] not in " \t"
    return is_first and text.startswith(("--- a/", "+++ b/", "--- /", "+++ /"))


def _add(
    edit: ParsedEdit, hunk: list[str], line: int | None, below: tuple[str, ...], at_end: bool, is_insertion: bool
) -> None:
    """Add a hunk. ``is_insertion``: its ``@@`` line has the counts of a diff that only inserts, below line ``line``."""
    while hunk and not hunk[-1]:
        hunk.pop()
    patch = parse_hunk(hunk, line or None, below, at_end)
    if not patch.old_text and is_insertion and line is not None and not below:
        patch = replace(patch, start_line=line + 1)
    elif not patch.old_text:
        patch = replace(patch, start_line=None, at_end=not below)
    edit.patches.append(patch)
