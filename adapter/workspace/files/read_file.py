"""Read ranges of lines in constant memory, text of PDFs, and media files."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence

from adapter.core.errors import ToolError
from adapter.core.text.lines import get_line_end, split_lines, strip_line_end
from adapter.core.text.plurals import pluralize
from adapter.editing.document import BYTE_ORDER_MARK
from adapter.tools.operations import FileText, Listing, Media, ReadText, Tree
from adapter.workspace.changes.text_codec import MAX_TEXT_BYTES, PROBE_BYTES, DecodedText, decode
from adapter.workspace.files import listing, media
from adapter.workspace.paths.resolved_path import ResolvedPath, read_at
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.workspace_context import WorkspaceContext

PIECE = 1024 * 1024
"""Lines of a large file are skipped in pieces of at most this length, in bytes."""
MAX_NAMED_LINES = 10
"""Maximum number of shortened lines listed in a note."""
SKIP_SECONDS = 10.0
"""Maximum time to skip the lines before the requested lines, in seconds: enough for more than a gigabyte."""
_LINE_ENDS = ("\n", "\r")


def read_text(context: WorkspaceContext, operation: ReadText) -> FileText | Media | Listing:
    """Read the requested lines, media file or directory listing. Raises ToolError if the lines do not exist."""
    return _read(context.root, operation, context.read_tracker.note, context.encoding)


def read_text_file(context: WorkspaceContext, path: str) -> FileText:
    """Read a whole text file. Raises ToolError if ``path`` is not a text file."""
    read = read_text(context, ReadText(path))
    assert isinstance(read, FileText)  # no media or listing was requested
    return read


def read_text_unrecorded(root: WorkspaceRoot, path: str) -> str:
    """Read a text file without recording that the model read it. Raises ToolError if ``path`` is not a text file."""
    read = _read(root, ReadText(path), lambda _parts, _data: None)
    assert isinstance(read, FileText)  # no media or listing was requested
    return read.text


def _read(
    root: WorkspaceRoot,
    operation: ReadText,
    note: Callable[[tuple[str, ...], bytes], None],
    encoding: str | None = None,
) -> FileText | Media | Listing:
    if operation.or_list:
        with root.locate(operation.path) as resolved:
            is_directory = resolved.is_directory
        if is_directory:
            return listing.list_tree(root, Tree(operation.path, order="directories_first"))
    if operation.context_lines < 0:
        raise ToolError(f"context must be at least 0 lines, got {operation.context_lines}")
    if operation.max_lines is not None and operation.max_lines < 1:
        raise ToolError(f"the limit must be at least 1 line, got {operation.max_lines}")
    with root.open_file(operation.path) as (descriptor, resolved):
        size = os.fstat(descriptor).st_size
        media_type = media.detect_media_type(read_at(descriptor, 64, 0))
        if media_type is not None:
            (kind, mime), display_path = media_type, resolved.display_path
            if kind in operation.media:
                data = _read_bytes(descriptor, resolved, size, media.MAX_MEDIA_BYTES)
                return Media(display_path, kind, mime, data)
            if kind != "pdf":
                raise media.build_refusal(display_path, kind, mime, size, read_at(descriptor, media.HEAD_BYTES, 0))
            data = _read_bytes(descriptor, resolved, size, media.MAX_PDF_BYTES)
            text, notes = media.read_pdf_text(data, display_path)
            return _select_lines(operation, split_lines(text), display_path, notes)
        if size > MAX_TEXT_BYTES:
            return _stream_lines(operation, descriptor, resolved, size, encoding)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_TEXT_BYTES)
        decoded = decode(data, resolved.display_path, encoding)
        note(resolved.parts, data)
    lines = split_lines(decoded.text.removeprefix(BYTE_ORDER_MARK))
    return _select_lines(operation, lines, resolved.display_path, _list_encoding_notes(decoded))


def _read_bytes(descriptor: int, resolved: ResolvedPath, size: int, limit: int) -> bytes:
    if size > limit:
        raise ToolError(f"{resolved.display_path} is too large ({size} bytes, limit {limit}); make it smaller first")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(limit)


def _list_encoding_notes(decoded: DecodedText) -> tuple[str, ...]:
    return (f"the encoding was guessed: {decoded.encoding}",) if decoded.guessed else ()


def _select_lines(operation: ReadText, lines: Sequence[str], display_path: str, notes: tuple[str, ...]) -> FileText:
    """Return the requested part of ``lines``, the lines of the whole file."""
    if operation.start_line is None and operation.end_line is None:
        first, last = min(1, len(lines)), len(lines)
    else:
        first, last = _find_line_range(operation, len(lines), display_path)
    end = last if operation.max_lines is None else min(last, first + operation.max_lines - 1)
    selected = lines[first - 1 : end] if first else []
    text, cut = _cut(selected, first, operation.max_line_characters)
    return FileText(display_path, text, first, end, len(lines), end < last, notes=(*notes, *cut))


def _find_line_range(operation: ReadText, total: int, display_path: str) -> tuple[int, int]:
    """Return the 1-based numbers of the first and last line to read, including the requested context."""
    start = 1 if operation.start_line is None else operation.start_line
    end = total if operation.end_line is None else operation.end_line
    lines = f"{display_path} has {pluralize(total, 'line')}"
    _check_range(operation, lines)
    if start > total:
        raise ToolError(f"{_describe_requested_line(operation, start)} is beyond the end: {lines}")
    return max(start - operation.context_lines, 1), min(end + operation.context_lines, total)


def _describe_requested_line(operation: ReadText, line: int) -> str:
    return f"line {line}" if operation.counts_from == 1 else f"offset {line - 1} (offsets count from 0)"


def _check_range(operation: ReadText, lines: str) -> None:
    start = 1 if operation.start_line is None else operation.start_line
    if start < 1:
        raise ToolError(f"line {start} does not exist: lines count from 1; {lines}")
    if operation.end_line is not None and operation.end_line < start:
        raise ToolError(f"end_line {operation.end_line} is before start_line {start}; {lines}")


def _cut(lines: Sequence[str], first: int, limit: int | None) -> tuple[str, tuple[str, ...]]:
    """Join the lines, each shortened to ``limit`` characters. Also return a note that lists the shortened lines."""
    if limit is None:
        return "".join(lines), ()
    parts: list[str] = []
    cut: list[int] = []
    for number, line in enumerate(lines, first):
        if len(line) > limit and len(strip_line_end(line)) > limit:
            cut.append(number)
            line = line[:limit] + get_line_end(line)
        parts.append(line)
    if not cut:
        return "".join(parts), ()
    named = ", ".join(map(str, cut[:MAX_NAMED_LINES])) + (" ..." if len(cut) > MAX_NAMED_LINES else "")
    plural = f"lines {named} were" if len(cut) > 1 else f"line {named} was"
    return "".join(parts), (f"{plural} cut to {limit} characters",)


def _stream_lines(
    operation: ReadText, descriptor: int, resolved: ResolvedPath, size: int, encoding: str | None
) -> FileText:
    """Read the requested lines of a file that is too large for memory. Lines before them are only counted."""
    large = f"{resolved.display_path} is large ({size} bytes)"
    if operation.start_line is None and operation.end_line is None and operation.max_lines is None:
        raise ToolError(f"{large} and cannot be read whole (limit {MAX_TEXT_BYTES} bytes); read a range of its lines")
    _check_range(operation, large)
    head = read_at(descriptor, PROBE_BYTES, 0)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        raise ToolError(f"{large} and is not UTF-8 text; use a command instead")
    start = 1 if operation.start_line is None else operation.start_line
    first = max(start - operation.context_lines, 1)
    last = None if operation.end_line is None else operation.end_line + operation.context_lines
    wanted = operation.max_lines if last is None else last - first + 1
    count = min(filter(None, (wanted, operation.max_lines)), default=None)
    data, skipped, at_end = _read_lines(descriptor, first, count)
    if skipped < first - 1 or (not data and at_end):
        requested = _describe_requested_line(operation, start)
        raise ToolError(f"{requested} is beyond the end: {resolved.display_path} has {pluralize(skipped, 'line')}")
    decoded = decode(data, resolved.display_path, encoding)
    lines = split_lines(decoded.text.removeprefix(BYTE_ORDER_MARK))
    selected = lines if count is None else lines[:count]
    end = first + len(selected) - 1
    total = end if at_end and len(selected) == len(lines) else None
    truncated = total is None and (last is None or end < last)
    text, cut = _cut(selected, first, operation.max_line_characters)
    notes = (*_list_encoding_notes(decoded), *cut)
    return FileText(resolved.display_path, text, first, end, total, truncated, notes=notes)


def _read_lines(descriptor: int, first: int, count: int | None) -> tuple[bytes, int, bool]:
    """Return ``count`` lines from line ``first`` as bytes, the number of lines skipped, and whether the file has ended.
    Raises ToolError if skipping takes too long."""
    skipped, deadline = 0, time.monotonic() + SKIP_SECONDS
    with open(descriptor, "rb", closefd=False) as raw:
        file = io.TextIOWrapper(raw, "latin-1", newline="")  # one character for each byte
        while skipped < first - 1:
            line = file.readline(PIECE)
            if not line:
                return b"", skipped, True
            skipped += line.endswith(_LINE_ENDS)
            if time.monotonic() > deadline:
                raise ToolError(
                    f"line {first} is too far into the file: the first {skipped} lines took {SKIP_SECONDS:g} s; "
                    "read earlier lines, or use a command such as tail"
                )
        lines: list[str] = []
        room = MAX_TEXT_BYTES
        while room > 0 and (count is None or len(lines) < count) and (line := file.readline(room)):
            lines.append(line)
            room -= len(line)
        at_end = not file.read(1)
        if not at_end and len(lines) > 1 and not lines[-1].endswith(_LINE_ENDS):
            lines.pop()  # return whole lines, unless the first line is too long
        return "".join(lines).encode("latin-1"), first - 1, at_end
