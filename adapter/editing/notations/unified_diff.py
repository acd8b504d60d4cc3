"""Unified diffs, as git, diff and models write them, read as patches.

::

    --- a/path
    +++ b/path
    @@ -3,2 +3,2 @@ def f():
     kept
    -old
    +new

The headers, the numbers and even the ``@@`` may be missing inside a ```` ```diff ````
fence or below a header. Counts are often wrong and are not read, with two
exceptions: ``-3,0`` inserts after line 3, and lines that are added without
any context are refused when the counts say that there was some. Numbers are
only hints. Of git's own lines, those of new, deleted and renamed files are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import FENCE
from adapter.editing.notations.parsed_edit import ParsedEdit, has_changes, parse_hunk

_HUNK = re.compile(r"@@(?=$|[ \t-])(?P<rest>.*)")
_NUMBERS = re.compile(r" ?-(?P<line>\d+)(?:,(?P<count>\d+))? \+\d+(?:,\d+)?(?: ?@@(?P<section>.*))?")
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
    """A line with ``@@``: the old text's first line and count, where it has them, and what else it says."""

    written: str
    line: int | None = None
    old_count: int | None = None
    section: str = ""


def parse_hunk_header(text: str) -> _Head | None:
    """What a line that begins a hunk says, None for another line."""
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
    """Whether ``lines`` hold a diff: a header or a hunk with changed lines, or a fence that says so."""
    if any(map(_GIT.fullmatch, lines)) and any(map(_RENAME.fullmatch, lines)):
        return True
    named = any(_is_header(lines, number) for number in range(len(lines)))
    return (named or any(map(parse_hunk_header, lines)) or any(map(_opens_diff, lines))) and has_changes(lines)


def parse_unified_diff(lines: Sequence[str]) -> list[ParsedEdit]:
    """The edits of a diff. Raises FormatError for a hunk that has no place."""
    return _DiffReader(lines).read()


def _is_header(lines: Sequence[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return lines[number].startswith("--- ") and following.startswith("+++ ")


def _opens_diff(line: str) -> bool:
    fence = FENCE.fullmatch(line)
    return fence is not None and fence["info"].strip().lower().split(" ")[0] in ("diff", "patch", "udiff")


class _DiffReader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.asked: list[ParsedEdit] = []
        self.edit = ParsedEdit(None)
        self.hunk: list[str] | None = None
        self.head: _Head | None = None
        self.fence = ""

    def read(self) -> list[ParsedEdit]:
        number = 0
        while number < len(self.lines):
            text = self.lines[number]
            if _is_header(self.lines, number):
                self._header(text[4:], self.lines[number + 1][4:])
                number += 1
            elif head := parse_hunk_header(text):
                self._close()
                self.hunk, self.head = [], head
            elif not self._is_git(text) and not self._is_fence(text) and self.hunk is not None:
                self.hunk.append(text)
            number += 1
        self._finish()
        return self.asked

    def _is_fence(self, text: str) -> bool:
        """The fence around a diff; in a hunk, one with a space before it is a line of the file."""
        fence = FENCE.fullmatch(text)
        if fence is None or (self.hunk is not None and text[0] in " \t"):
            return False
        if not self.fence and self.hunk is None:
            self.fence = fence["marks"]
            self.hunk = [] if _opens_diff(text) else None
        elif self.fence and fence["marks"].startswith(self.fence) and not fence["info"].strip():
            self._close()
            self.fence = ""
        return True

    def _is_git(self, text: str) -> bool:
        """A line of git's own, taken note of."""
        if git := _GIT.fullmatch(text):
            self._finish()
            self.edit = ParsedEdit(_paths(git["old"], git["new"])[1])
        elif rename := _RENAME.fullmatch(text):
            self._close()
            path = _unquoted(rename["path"])
            if rename["side"] == "from":
                if self.edit.patches or self.edit.moved_to:
                    self._finish()
                self.edit.path = path
            else:
                self.edit.moved_to = path
        elif _NOISE.match(text):
            self._close()
            if text.startswith("deleted file mode"):
                self.edit.action = "delete"
            elif text.startswith("new file mode"):
                self.edit.action = "add"
        else:
            return False
        return True

    def _header(self, before: str, after: str) -> None:
        """The two lines that name the file begin an edit, unless git's lines have begun it."""
        old, new = _paths(before, after)
        self._close()
        if self.edit.patches:
            self._finish()
        if old is None:
            self.edit.action = "add"
        elif new is None:
            self.edit.action = "delete"
        if self.edit.moved_to is None:
            self.edit.path = new or old
        self.hunk, self.head = [], None

    def _finish(self) -> None:
        self._close()
        edit = self.edit
        if edit.action == "add":
            edit.content = "".join(patch.new_text for patch in edit.patches)
        if edit.action != "update":
            edit.patches = []
        if edit.patches or edit.moved_to or (edit.action != "update" and edit.path):
            self.asked.append(edit)
        self.edit = ParsedEdit(None)

    def _close(self) -> None:
        """Add the hunk that has come to its end."""
        lines, head = _without_prose(self.hunk or []), self.head or _Head("without @@")
        self.hunk = self.head = None
        if not has_changes(lines):
            return
        hunk = parse_hunk(lines, head.line or None, (head.section,) if head.section else ())
        if self.edit.action == "add":
            is_closed = hunk.final_newline is not False
            hunk = replace(hunk, new_text=hunk.new_text if is_closed else hunk.new_text.removesuffix("\n"))
        elif not hunk.old_text:
            hunk = replace(hunk, start_line=_insertion_line(head), below=())
        self.edit.patches.append(hunk)


def _insertion_line(head: _Head) -> int:
    """Where lines without context go: ``-3,0`` is after line 3."""
    if head.line is not None and head.old_count == 0:
        return head.line + 1
    raise FormatError(
        f"the hunk {head.written!r} only adds lines and shows none around them: "
        "write the lines above and below its place, each after a space"
    )


def _without_prose(lines: Sequence[str]) -> list[str]:
    """A hunk without what follows it: blank lines, and sentences after one where every line above is marked."""
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    marked = max((number for number, text in enumerate(kept) if text[:1] in ("-", "+", " ", "\\")), default=-1)
    rest = kept[marked + 1 :]
    if rest and not rest[0] and all(text[:1] in ("-", "+", " ", "\\") or not text for text in kept[: marked + 1]):
        kept = kept[: marked + 1]
    return kept


# ----------------------------------------------------------------------------- paths


def _paths(before: str, after: str) -> tuple[str | None, str | None]:
    """The two names of a header, without git's prefixes; None for /dev/null."""
    old, new = _unquoted(before), _unquoted(after)
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


def _unquoted(written: str) -> str:
    """A path as git quotes it when it has unusual characters, and without the time that diff adds."""
    path = _TIME.sub("", written).strip()
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    data = b"".join(
        piece.encode() if index % 2 == 0 else _ESCAPED.get(piece) or bytes([int(piece, 8) & 255])
        for index, piece in enumerate(_OCTAL.split(path[1:-1]))
    )
    return data.decode("utf-8", "replace")
