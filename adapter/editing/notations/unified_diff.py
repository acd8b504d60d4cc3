"""Parse unified diffs as written by git, diff and models.

::

    --- a/path
    +++ b/path
    @@ -3,2 +3,2 @@ def f():
     kept
    -old
    +new

Headers, line numbers and even ``@@`` may be missing inside a ```` ```diff ```` fence or below a header, or if the text
has nothing but one hunk. Line numbers are only hints. The line counts in ``@@`` lines are often wrong and are ignored,
with these exceptions:

- ``-3,0`` inserts after line 3.
- Added lines without context are rejected if the counts claim that the hunk has context.
- Changed lines that look like a header belong to the hunk if it is not complete yet.
- A complete hunk may be followed by text that contains list items, a mail signature or half a header.
- A file is new or deleted if one side has the time 0 and no lines.

Git's extended headers are parsed for new, deleted and renamed files. Copies and binary files are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import NamedTuple

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import FENCE, opens_diff
from adapter.editing.notations.parsed_edit import ParsedEdit, has_changes, is_no_newline_marker, parse_hunk

_HUNK = re.compile(r"(?:@@(?=$|[ \t-])|@@@(?= ?-[\d,]+ \+))(?P<rest>.*)")
_NUMBERS = re.compile(
    r" ?-(?P<line>\d{1,9})(?:,(?P<old>\d{1,9}))? \+\d+(?:,(?P<new>\d{1,9}))?(?: ?@@@?(?P<section>.*))?"
)
_MODE = re.compile(r"(?P<action>new|deleted) file mode")
_NOISE = re.compile(
    r"(?:diff |index [0-9a-f]+\.\.|(?:old|new|deleted file|new file) mode|(?:dis)?similarity |Index: |={60,})"
)
_RENAME = re.compile(r"rename (?P<side>from|to) (?P<path>.+)")
_UNSUPPORTED = re.compile(r"GIT binary patch|Binary files .+ differ|copy from .+")
_WHOLE_FILE = re.compile(f"{_MODE.pattern}|{_RENAME.pattern}|{_UNSUPPORTED.pattern}")
_TIME = re.compile(
    r"(?:\t|(?<! ) +(?:\d{4}-\d\d-\d\d[ T]\d\d:|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d "
    r"|\((?:revision \d+|working copy)\))).*"
)
_TIME_0 = re.compile(r"[^\t]*[\t ](?:1969-12-31|1970-01-01) \d\d:\d\d:00(?:\.0+)?(?: .*)?")
_LIST_ITEM = re.compile(r"[-+] \S")
_OCTAL = re.compile(r'\\([0-7]{3}|["\\tn])')
_ESCAPED = {'"': b'"', "\\": b"\\", "t": b"\t", "n": b"\n"}
_GIT_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"))


class _Head(NamedTuple):
    """A parsed ``@@`` line: the whole line, the first line of the old text, both line counts, and the heading."""

    written: str
    line: int | None = None
    old_count: int | None = None
    new_count: int | None = None
    section: str = ""

    def find_end(self, lines: Sequence[str]) -> int | None:
        """Return the number of ``lines`` that reach both counts, or None if there are too few."""
        old, new = self.old_count, self.new_count
        if old is None or new is None:
            return None
        for end, text in enumerate([*lines, ""]):
            if is_no_newline_marker(text):
                continue
            if old == new == 0:
                return end
            old -= text[:1] != "+"
            new -= text[:1] != "-"
        return None


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
    old, new = (int(numbers[side] or 1) for side in ("old", "new"))
    return _Head(text, int(numbers["line"]), old, new, (numbers["section"] or "").strip())


def is_unified_diff(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain a diff: changed lines with a header, an ``@@`` line or a diff fence."""
    if any(line.startswith("diff --git ") for line in lines) and any(map(_WHOLE_FILE.match, lines)):
        return True
    return has_hunks(lines) or (any(map(opens_diff, lines)) and has_changes(lines))


def has_hunks(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain changed lines, and a header or an ``@@`` line."""
    has_header = any(_is_header(lines, number) for number in range(len(lines)))
    return (has_header or any(map(parse_hunk_header, lines))) and has_changes(lines)


def parse_unified_diff(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return the edits of a diff. Raises FormatError for a hunk that has neither context nor a line number."""
    return _DiffParser(lines).parse()


def is_bare_hunk(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` are exactly one hunk, which removes and adds lines."""
    marks = {line[:1] for line in lines if line.strip()}
    has_header = any(line.startswith(("--- ", "+++ ")) for line in lines)
    return {"-", "+"} <= marks <= {"-", "+", " "} and not has_header


def parse_bare_hunk(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return the edit of a hunk without a header."""
    return parse_unified_diff(["@@", *dropwhile(lambda line: not line.strip(), lines)])


def _is_header(lines: Sequence[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return lines[number].startswith("--- ") and following.startswith("+++ ")


class _DiffParser:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.edits: list[ParsedEdit] = []
        self.edit = ParsedEdit(None)
        self.hunk: list[str] | None = None
        self.head: _Head | None = None
        self.old_left = 0  # lines of the old text that the hunk lacks according to its head
        self.fence = ""

    def parse(self) -> list[ParsedEdit]:
        number = 0
        while number < len(self.lines):
            text = self.lines[number]
            if header := self._read_header(number):
                number += len(header) - 1
                self._start_file(header, self.lines[number + 1 : number + 2])
            elif head := parse_hunk_header(text):
                self._finish_hunk()
                self.hunk, self.head, self.old_left = [], head, head.old_count or 0
            elif not self._consume_git_line(text) and not self._consume_fence(text) and self.hunk is not None:
                self.hunk.append(text)
                self.old_left -= text[:1] in ("", " ", "-")
            number += 1
        self._finish_edit()
        return self.edits

    def _read_header(self, number: int) -> Sequence[str]:
        """Return the one or two lines of the header that starts here, or an empty list if there is no header."""
        text, following, below = (*self.lines[number : number + 3], "", "")[:3]
        if _is_header(self.lines, number):
            is_in_hunk = self.old_left > 0 and parse_hunk_header(below) is None
            return () if is_in_hunk else (text, following)
        is_reversed = following.startswith("--- ")
        if not text.startswith(("--- ", "+++ ")) or not parse_hunk_header(below if is_reversed else following):
            return ()
        if self.hunk or self.head:
            hunk, head = self.hunk or [], self.head or _Head("")
            if head.find_end(hunk) != len(hunk) or " " in text[4:]:
                return ()
        return () if "/dev/null" in text else (following, text) if is_reversed else (text,)

    def _consume_fence(self, text: str) -> bool:
        """Handle a code fence around the diff. Return False for other lines, and for an indented fence in a hunk."""
        fence = FENCE.fullmatch(text)
        if fence is None or (self.hunk is not None and text[0] in " \t"):
            return False
        if self.hunk and (fence["info"].strip() or not self.fence):
            return False
        if not self.fence and self.hunk is None:
            self.fence = fence["marks"]
            self.hunk = [] if opens_diff(text) else None
        elif self.fence and fence["marks"].startswith(self.fence) and not fence["info"].strip():
            self._finish_hunk()
            self.fence = ""
        return True

    def _consume_git_line(self, text: str) -> bool:
        """Handle a line of git's extended header. Return False for any other line. Raises FormatError for a copy or a
        binary file."""
        if text.startswith("diff -"):
            self._finish_edit()
            self.edit = ParsedEdit(_parse_git_path(text))
        elif self.hunk is None and self.edit.path is not None and _UNSUPPORTED.fullmatch(text):
            raise FormatError(f"{text[:80]!r} cannot be applied: send only changes to text, and whole new files")
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
            if mode := _MODE.match(text):
                self.edit.action = "add" if mode["action"] == "new" else "delete"
        else:
            return False
        return True

    def _start_file(self, header: Sequence[str], below: Sequence[str]) -> None:
        """Start the edit of the file that the header lines name, unless git's header has already started it."""
        before, after = header[0][4:], header[-1][4:]
        if len(header) == 1:
            before, after = (prefix + re.sub(r"\A[ab]/", "", before) for prefix in ("a/", "b/"))
        old, new = _parse_header_paths(before, after)
        head = next(filter(None, map(parse_hunk_header, below)), _Head(""))
        if head.old_count == 0 and _TIME_0.fullmatch(before):
            old = None
        elif head.new_count == 0 and _TIME_0.fullmatch(after):
            new = None
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
        if edit.patches or edit.moved_to or (edit.action != "update" and edit.path is not None):
            edit.path = edit.path or None
            self.edits.append(edit)
        self.edit = ParsedEdit(None)

    def _finish_hunk(self) -> None:
        """Add the current hunk to the current edit."""
        written, head = self.hunk or [], self.head or _Head("without @@")
        lines = _strip_prose(written)
        self.hunk, self.head, self.old_left = None, None, 0
        if not has_changes(lines):
            return
        line, below = head.line or None, (head.section,) if head.section else ()
        hunk = parse_hunk(lines, line, below)
        if end := _find_text_below(written, head):
            lines = written[:end]
            shorter = parse_hunk(lines, line, below)
            is_new = self.edit.action == "add"
            hunk = shorter if is_new else replace(hunk, others=(*hunk.others, shorter, *shorter.others))
        if self.edit.action == "add":
            if not _is_marked(lines[-1]):
                raise FormatError(f"{lines[-1][:60]!r} in a new file has no leading +, but other lines do; add it")
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
    """Drop trailing blank lines and code fences, and text after a diff whose lines all have a marker."""
    left = list(lines)
    while left and left[-1] in ("", "```"):
        left.pop()
    end = next((number for number in range(len(left), 0, -1) if _is_marked(left[number - 1])), 0)
    is_text = not any(left[end : end + 1]) and all(_is_marked(text) or not text for text in left[:end])
    return left[:end] if is_text else left


def _is_marked(text: str) -> bool:
    return text.startswith((" ", "-", "+", "\\"))


def _find_text_below(lines: Sequence[str], head: _Head) -> int | None:
    """Return the number of lines before the text or mail signature that follows a complete hunk, or None."""
    end = head.find_end(lines)
    first, second = (*(text for text in lines[end:] if text), "", "")[:2]
    if first.startswith("--") and not first.strip("- "):
        return end if second and not _is_marked(second) else None
    is_text = all(_LIST_ITEM.match(text) for text in lines[end:] if text[:1] in ("-", "+"))
    return end if first and not _is_marked(first) and is_text else None


def _parse_git_path(line: str) -> str:
    """Return the path of a ``diff --git`` line, or an empty string if the two paths differ or cannot be separated."""
    paths = line.removeprefix("diff --git ")
    middle = len(paths) // 2
    old, new = _parse_header_paths(paths[:middle], paths[middle + 1 :])
    return new if new and old == new else ""


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
