"""Parse unified diffs as written by git, diff and models.

::

    --- a/path
    +++ b/path
    @@ -3,2 +3,2 @@ def f():
     kept
    -old
    +new

Headers, line numbers and even ``@@`` may be missing inside a ```` ```diff ```` fence or below a header. Line numbers
are only hints. The line counts in ``@@`` lines are often wrong and are ignored, with three exceptions:

- ``-3,0`` inserts after line 3.
- Added lines without context are rejected if the counts claim that the hunk has context.
- Changed lines that look like a header belong to the hunk if it is not complete yet.

Git's extended headers are parsed for new, deleted and renamed files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import FENCE
from adapter.editing.notations.parsed_edit import ParsedEdit, has_changes, parse_hunk

_HUNK = re.compile(r"(?:@@(?=$|[ \t-])|@@@(?= ?-[\d,]+ \+))(?P<rest>.*)")
_NUMBERS = re.compile(r" ?-(?P<line>\d+)(?:,(?P<count>\d+))? \+\d+(?:,\d+)?(?: ?@@@?(?P<section>.*))?")
_GIT = re.compile(r'diff --git (?P<old>"?a/.+?"?) (?P<new>"?b/.+"?)')
_NOISE = re.compile(
    r"(?:diff |index [0-9a-f]+\.\.|(?:old|new|deleted file|new file) mode|(?:dis)?similarity |Index: |={60,})"
)
_RENAME = re.compile(r"rename (?P<side>from|to) (?P<path>.+)")
_TIME = re.compile(r"(?:\t| \d{4}-\d\d-\d\d[ T]\d\d:).*")
_OCTAL = re.compile(r'\\([0-7]{3}|["\\tn])')
_ESCAPED = {'"': b'"', "\\": b"\\", "t": b"\t", "n": b"\n"}
_GIT_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"))


class _Head(NamedTuple):
    """A parsed ``@@`` line: the whole line, the first line and the line count of the old text, and the heading."""

    written: str
    line: int | None = None
    old_count: int | None = None
    section: str = ""


def parse_hunk_header(text: str) -> _Head | None:
    """Parse a line that starts a hunk. Return None for any other line."""
    match = _HUNK.fullmatch(text)
    if match is None:
        return None
    numbers = _NUMBERS.fullmatch(match["rest"])
    if numbers is None:
        rest = match["rest"].strip()
        section = rest.rsplit("@@", 1)[-1] if rest.startswith(("-", "...")) else rest.removesuffix("@@")
        return _Head(text, section="" if section.startswith(("-", "...")) else section.strip())
    count = None if numbers["count"] is None else int(numbers["count"])
    return _Head(text, int(numbers["line"]), count, (numbers["section"] or "").strip())


def is_unified_diff(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain a diff: changed lines with a header, an ``@@`` line or a diff fence."""
    if any(map(_GIT.fullmatch, lines)) and any(map(_RENAME.fullmatch, lines)):
        return True
    return has_hunks(lines) or (any(map(_opens_diff, lines)) and has_changes(lines))


def has_hunks(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain changed lines, and a header or an ``@@`` line."""
    has_header = any(_is_header(lines, number) for number in range(len(lines)))
    return (has_header or any(map(parse_hunk_header, lines))) and has_changes(lines)


def parse_unified_diff(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return the edits of a diff. Raises FormatError for a hunk that has neither context nor a line number."""
    return _DiffParser(lines).parse()


def _is_header(lines: Sequence[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return lines[number].startswith("--- ") and following.startswith("+++ ")


def _opens_diff(line: str) -> bool:
    fence = FENCE.fullmatch(line)
    return fence is not None and fence["info"].strip().lower().split(" ")[0] in ("diff", "patch", "udiff")


class _DiffParser:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.edits: list[ParsedEdit] = []
        self.edit = ParsedEdit(None)
        self.hunk: list[str] | None = None
        self.head: _Head | None = None
        self.fence = ""

    def parse(self) -> list[ParsedEdit]:
        number = 0
        while number < len(self.lines):
            text = self.lines[number]
            if _is_header(self.lines, number) and not self._is_in_hunk(number):
                self._start_file(text[4:], self.lines[number + 1][4:])
                number += 1
            elif head := parse_hunk_header(text):
                self._finish_hunk()
                self.hunk, self.head = [], head
            elif not self._consume_git_line(text) and not self._consume_fence(text) and self.hunk is not None:
                self.hunk.append(text)
            number += 1
        self._finish_edit()
        return self.edits

    def _is_in_hunk(self, number: int) -> bool:
        """Return whether header-like lines are changed lines, because the hunk is incomplete and no ``@@`` follows."""
        if self.hunk is None or self.head is None or self.head.old_count is None:
            return False
        old_count = sum(text[:1] in ("", " ", "-") for text in self.hunk)
        below = self.lines[number + 2] if number + 2 < len(self.lines) else ""
        return old_count < self.head.old_count and parse_hunk_header(below) is None

    def _consume_fence(self, text: str) -> bool:
        """Handle a code fence around the diff. Return False for other lines, and for an indented fence in a hunk."""
        fence = FENCE.fullmatch(text)
        if fence is None or (self.hunk is not None and text[0] in " \t"):
            return False
        if not self.fence and self.hunk is None:
            self.fence = fence["marks"]
            self.hunk = [] if _opens_diff(text) else None
        elif self.fence and fence["marks"].startswith(self.fence) and not fence["info"].strip():
            self._finish_hunk()
            self.fence = ""
        return True

    def _consume_git_line(self, text: str) -> bool:
        """Handle a line of git's extended header. Return False for any other line."""
        if git := _GIT.fullmatch(text):
            self._finish_edit()
            self.edit = ParsedEdit(_parse_header_paths(git["old"], git["new"])[1])
        elif rename := _RENAME.fullmatch(text):
            self._finish_hunk()
            path = _unquote_path(rename["path"])
            if rename["side"] == "from":
                if self.edit.patches or self.edit.moved_to:
                    self._finish_edit()
                self.edit.path = path
            else:
                self.edit.moved_to = path
        elif _NOISE.match(text):
            self._finish_hunk()
            if text.startswith("deleted file mode"):
                self.edit.action = "delete"
            elif text.startswith("new file mode"):
                self.edit.action = "add"
        else:
            return False
        return True

    def _start_file(self, before: str, after: str) -> None:
        """Start the edit of the file that the header lines name, unless git's header has already started it."""
        old, new = _parse_header_paths(before, after)
        self._finish_hunk()
        if self.edit.patches:
            self._finish_edit()
        if old is None:
            self.edit.action = "add"
        elif new is None:
            self.edit.action = "delete"
        if self.edit.moved_to is None:
            self.edit.path = new or old
        self.hunk, self.head = [], None

    def _finish_edit(self) -> None:
        self._finish_hunk()
        edit = self.edit
        if edit.action == "add":
            edit.content = "".join(patch.new_text for patch in edit.patches)
        if edit.action != "update":
            edit.patches = []
        if edit.patches or edit.moved_to or (edit.action != "update" and edit.path):
            self.edits.append(edit)
        self.edit = ParsedEdit(None)

    def _finish_hunk(self) -> None:
        """Add the current hunk to the current edit."""
        lines, head = _strip_prose(self.hunk or []), self.head or _Head("without @@")
        self.hunk = self.head = None
        if not has_changes(lines):
            return
        hunk = parse_hunk(lines, head.line or None, (head.section,) if head.section else ())
        if self.edit.action == "add":
            is_closed = hunk.final_newline is not False
            hunk = replace(hunk, new_text=hunk.new_text if is_closed else hunk.new_text.removesuffix("\n"))
        elif not hunk.old_text:
            hunk = replace(hunk, start_line=_find_insertion_line(head), below=())
        self.edit.patches.append(hunk)


def _find_insertion_line(head: _Head) -> int:
    """Return the line before which to insert: ``-3,0`` inserts after line 3. Raises FormatError without counts."""
    if head.line is not None and head.old_count == 0:
        return head.line + 1
    raise FormatError(
        f"the hunk {head.written!r} only adds lines and has no context: "
        "write the lines above and below them, each with a leading space"
    )


def _strip_prose(lines: Sequence[str]) -> list[str]:
    """Drop trailing blank lines, and the text that follows a diff whose lines all have a marker."""
    lines_left = list(lines)
    while lines_left and not lines_left[-1]:
        lines_left.pop()
    last_marked = max(
        (number for number, text in enumerate(lines_left) if text[:1] in ("-", "+", " ", "\\")), default=-1
    )
    rest = lines_left[last_marked + 1 :]
    if (
        rest
        and not rest[0]
        and all(text[:1] in ("-", "+", " ", "\\") or not text for text in lines_left[: last_marked + 1])
    ):
        lines_left = lines_left[: last_marked + 1]
    return lines_left


def _parse_header_paths(before: str, after: str) -> tuple[str | None, str | None]:
    """Return the old and the new path of a header, without git's prefixes. None means /dev/null."""
    old, new = _unquote_path(before), _unquote_path(after)
    for left, right in _GIT_PREFIXES:
        if old.startswith(left) and new.startswith(right):
            return old[2:], new[2:]
    if old == "/dev/null":
        return None, new.removeprefix("b/")
    if new == "/dev/null":
        return old.removeprefix("a/"), None
    if old.removeprefix("a/") == new or old == new.removeprefix("b/"):
        shorter = min(old, new, key=len)
        return shorter, shorter
    return old, new


def _unquote_path(written: str) -> str:
    """Undo git's quoting of unusual characters, and drop the timestamp that ``diff`` adds."""
    path = _TIME.sub("", written).strip()
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    data = b"".join(
        piece.encode() if index % 2 == 0 else _ESCAPED.get(piece) or bytes([int(piece, 8) & 255])
        for index, piece in enumerate(_OCTAL.split(path[1:-1]))
    )
    return data.decode("utf-8", "replace")
