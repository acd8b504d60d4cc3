"""Search lines by regular expression, with limits on time and memory.

Ripgrep is not used even if it is installed. It opens files by path, so if another process replaces a directory with a
link, the search leaves the workspace. It treats ignore files, encodings and expressions differently. Running it first,
to select the files to search here, would take as much time as it saves.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import split_line_texts, to_lf
from adapter.core.text.safe_regex import clip_searched_part, compile_for_text, compile_pattern, find_required_texts
from adapter.tools.operations import Grep, GrepMatch, GrepResult
from adapter.workspace.changes.text_codec import PROBE_BYTES, decode, is_binary
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.gitignore import COMMON_DIRECTORIES
from adapter.workspace.paths.globs import GlobMatcher
from adapter.workspace.paths.open_flags import OPEN_FILE
from adapter.workspace.paths.resolved_path import ResolvedPath, open_regular, read_at
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import Walk

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Maximum size of a searched file, in bytes. Larger files are mostly data or logs, and are listed in a note."""
FIRST_BYTES = 64 * 1024
"""Number of bytes that are read first, and are sufficient for most files."""
MAX_HITS = 5_000
"""Maximum number of matches, far more than fit in a 50 KB result."""
MAX_LINE_CHARACTERS = 500
"""Maximum number of characters shown of a matching line."""
PATTERN_SECONDS = 2.0
"""Maximum processor time per line, in seconds. The regex package measures processor time, not wall time."""
TEXT_SECONDS = 0.5
"""Maximum processor time to search a file as a whole, in seconds. After that, it is searched line by line."""
SEARCH_SECONDS = 20.0
"""Maximum duration of a search, in seconds. The matches found by then are returned."""
GIT_ALONE = frozenset({".git"})
"""Directories left out even if ignored files are searched, because they contain only git's own data."""
_MARKS = (b"\xff\xfe", b"\xfe\xff")


def grep(root: WorkspaceRoot, operation: Grep) -> GrepResult:
    """Return the matching lines, file by file in the requested order, with the requested context.

    Binary files are skipped. Ignored files and common build directories are searched only if the operation requests
    it, or if ``path`` is such a file.
    """
    if operation.max_results is not None and operation.max_results < 1:
        raise ToolError(f"the limit must be at least 1 match, got {operation.max_results}")
    search = _GrepSearch(operation)
    with root.locate(operation.path) as resolved:
        single = resolved.is_file
        if single:
            search.search_entry(resolved.name, resolved.dirfd, "/".join(resolved.parts))
            if not search.files and not search.notes and _is_binary(resolved):
                search.notes.append(f"{resolved.display_path} was not searched: it is binary")
    if not single:
        skip = GIT_ALONE if operation.ignored else COMMON_DIRECTORIES
        ignore = [GlobMatcher(pattern) for pattern in operation.leave_out]
        walk = Walk(root, operation.path, None, skip, not operation.ignored, ignore, search.may_include)
        for node in walk:
            if not node.is_file or not search.includes(node.path, node.name):
                continue
            search.search_entry(node.name, node.dirfd, "/".join((*walk.parts, node.path)) if walk.parts else node.path)
            if search.is_over:
                break
        search.notes += walk.notes
    return search.build_result()


def _is_binary(resolved: ResolvedPath) -> bool:
    with open_regular(resolved) as descriptor:
        head = read_at(descriptor, PROBE_BYTES, 0)
        return is_binary(head) and not head.startswith(_MARKS)


@dataclass(slots=True)
class _FileMatches:
    """The matches in one file. ``modified``: its modification time in nanoseconds."""

    path: str
    count: int
    modified: int
    hits: list[GrepMatch]


class _GrepSearch:
    def __init__(self, operation: Grep) -> None:
        self.operation = operation
        self.files: list[_FileMatches] = []
        self.notes: list[str] = []
        self.is_over = False
        self._hit_count = 0
        pattern, ignore_case = operation.pattern, not operation.case_sensitive
        self._pattern = compile_pattern(pattern, ignore_case)
        self._in_text = compile_for_text(pattern, ignore_case)
        texts = find_required_texts(pattern)
        known = "".join(texts).isascii()
        # Byte strings, at least one of which is in every file with a match; empty if unknown.
        self._needles = tuple((text.lower() if ignore_case else text).encode() for text in texts) if known else ()
        self._file_patterns = [GlobMatcher(each) for each in operation.file_patterns]
        self._deadline = time.monotonic() + SEARCH_SECONDS

    def includes(self, path: str, name: str) -> bool:
        """Return whether a file pattern matches the name or the path, which is relative to the start of the search."""
        if not self._file_patterns:
            return True
        return any(matcher.matches(name) or matcher.matches(path) for matcher in self._file_patterns)

    def may_include(self, name: str) -> bool:
        """Return False only if ``includes`` would return False for every path with this name."""
        return not self._file_patterns or any(matcher.may_match(name) for matcher in self._file_patterns)

    def search_entry(self, name: str, dirfd: int, path: str) -> None:
        """Search the entry ``name`` of an open directory if it is a regular file that still exists."""
        try:
            descriptor = calls.open_file(name, dirfd, OPEN_FILE)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):  # deleted, or replaced by a link meanwhile
                self.notes.append(
                    f"{escape_for_display(path)} was not searched: {os.strerror(error.errno or 0).lower()}"
                )
            return
        try:
            data = os.read(descriptor, FIRST_BYTES)  # these bytes rule out most files
            if len(data) == FIRST_BYTES or self._may_match(data):
                status = os.fstat(descriptor)
                data = self._read_whole(data, descriptor, status, path) if stat.S_ISREG(status.st_mode) else b""
                if data and self._may_match(data):
                    self._search_data(data, escape_for_display(path), status.st_mtime_ns)
        except BlockingIOError:  # replaced by a pipe meanwhile
            return
        finally:
            os.close(descriptor)
        if time.monotonic() > self._deadline:
            self._stop(escape_for_display(path))

    def _read_whole(self, head: bytes, descriptor: int, status: os.stat_result, path: str) -> bytes:
        if status.st_size <= MAX_FILE_BYTES:
            return head + os.read(descriptor, status.st_size - len(head)) if len(head) < status.st_size else head
        if not is_binary(head):
            self.notes.append(
                f"{escape_for_display(path)} was not searched: {status.st_size} bytes, more than {MAX_FILE_BYTES}"
            )
        return b""

    def _may_match(self, data: bytes) -> bool:
        """Return False only if no match is possible, because a required text is missing."""
        if not self._needles or data.startswith(_MARKS) or b"\0" in data[:PROBE_BYTES]:
            return True
        if self.operation.case_sensitive:
            return any(needle in data for needle in self._needles)
        # beyond ASCII, bytes.lower() does not cover all case variants
        if not data.isascii():
            return True
        lowered = data.lower()
        return any(needle in lowered for needle in self._needles)

    def _search_data(self, data: bytes, display_path: str, modified: int) -> None:
        try:
            text = decode(data, display_path).text
        except ToolError:  # binary
            return
        if "\r" in text:
            text = to_lf(text)
        matches = self._find_matches(text, display_path)
        if not matches:
            return
        room = max(0, (MAX_HITS if self.operation.order == "newest" else self._max_hits) - self._hit_count)
        lines = split_line_texts(text) if self.operation.context_lines and room else []
        hits = [self._build_hit(display_path, number, line, lines) for number, line in matches[:room]]
        self._hit_count += len(hits)
        self.files.append(_FileMatches(display_path, len(matches), modified, hits))

    def build_result(self) -> GrepResult:
        if self.operation.order == "newest":
            self.files.sort(key=lambda file: (-file.modified, file.path))
        total = sum(file.count for file in self.files)
        hits = [hit for file in self.files for hit in file.hits][: self._max_hits]
        if total > len(hits) and self._max_hits == MAX_HITS:
            self.notes.append(f"only the first {MAX_HITS} matches are included; give a more specific pattern")
        files = tuple((file.path, file.count) for file in self.files)
        return GrepResult(tuple(hits), total, files, notes=tuple(self.notes))

    @property
    def _max_hits(self) -> int:
        limit = self.operation.max_results
        return MAX_HITS if limit is None else min(limit, MAX_HITS)

    def _find_matches(self, text: str, display_path: str) -> list[tuple[int, str]]:
        """Return the matching lines with their 1-based numbers."""
        if self._in_text is not None:
            try:
                return self._find_matches_in_text(self._in_text, text, display_path)
            except TimeoutError:
                pass
        lines: list[tuple[int, str]] = []
        for number, line in enumerate(split_line_texts(text), 1):
            if self._is_match(line, display_path):
                lines.append((number, line))
            if not number % 1_000 and time.monotonic() > self._deadline:
                break
        return lines

    def _find_matches_in_text(self, pattern: regex.Pattern[str], text: str, display_path: str) -> list[tuple[int, str]]:
        """Search the whole text for candidate lines, then check each line separately."""
        lines: list[tuple[int, str]] = []
        number, counted, position = 1, 0, 0
        while position < len(text):
            match = pattern.search(text, position, timeout=TEXT_SECONDS)
            if match is None or (match.start() == len(text) and text[-1] == "\n"):
                break  # no line follows the last line feed
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.start())
            end = len(text) if end < 0 else end
            number += text.count("\n", counted, start)
            counted = start
            line = text[start:end]
            if self._is_match(line, display_path):
                lines.append((number, line))
            position = end + 1
        return lines

    def _is_match(self, line: str, display_path: str) -> bool:
        try:
            return self._pattern.search(clip_searched_part(self._pattern, line), timeout=PATTERN_SECONDS) is not None
        except TimeoutError:
            raise ToolError(
                f"the pattern took too long on a line of {display_path}; avoid nested repeats such as (a+)+"
            ) from None

    def _stop(self, display_path: str) -> None:
        if not self.is_over:
            self.is_over = True
            self.notes.append(f"the search stopped after {SEARCH_SECONDS:g} s in {display_path}; give a narrower path")

    def _build_hit(self, display_path: str, number: int, line: str, lines: Sequence[str]) -> GrepMatch:
        around = self.operation.context_lines
        before = tuple(map(_clip, lines[max(number - 1 - around, 0) : number - 1]))
        after = tuple(map(_clip, lines[number : number + around]))
        return GrepMatch(display_path, number, _clip(line), before, after)


def _clip(line: str) -> str:
    shown = escape_for_display(line, keep="\t")
    return shown if len(shown) <= MAX_LINE_CHARACTERS else shown[:MAX_LINE_CHARACTERS] + "..."
