"""Files read: text by ranges of lines, in flat memory however large the file; media as they are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from adapter.core.errors import ToolError
from adapter.core.text.lines import line_end, split_lines, without_end
from adapter.core.text.plurals import pluralize
from adapter.tools.operations import FileText, Listing, Media, ReadText, Tree
from adapter.workspace.changes.text_codec import MAX_TEXT_BYTES, PROBE_BYTES, DecodedText, decode
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.files import listing, media
from adapter.workspace.paths.resolved_path import ResolvedPath
from adapter.workspace.paths.resolver import WorkspaceRoot

BYTE_ORDER_MARK = "\ufeff"
BLOCK_BYTES = 256 * 1024
"""Read at once of a large file."""
MAX_NAMED_LINES = 10
"""Numbers of cut lines that a note names."""
PASSING_SECONDS = 10.0
"""For the lines before those that are asked for: some gigabytes."""


def read_text(desk: WorkspaceContext, operation: ReadText) -> FileText | Media | Listing:
    """The lines asked for, or what stands for them. Raises ToolError when the file has no such lines."""
    return _read(desk.root, operation, desk.seen.note, desk.encoding)


def text_of(desk: WorkspaceContext, path: str) -> FileText:
    """A whole text file. Raises ToolError for anything else."""
    read = read_text(desk, ReadText(path))
    assert isinstance(read, FileText)  # nothing else was asked for
    return read


def text_at(root: WorkspaceRoot, path: str) -> str:
    """The text of a file that the program itself reads: the model does not see it. Raises ToolError for no text."""
    read = _read(root, ReadText(path), lambda _parts, _data: None)
    assert isinstance(read, FileText)  # nothing else was asked for
    return read.text


def _read(
    root: WorkspaceRoot,
    operation: ReadText,
    note: Callable[[tuple[str, ...], bytes], None],
    encoding: str | None = None,
) -> FileText | Media | Listing:
    if operation.or_list:
        with root.locate(operation.path) as place:
            listed = place.is_directory
        if listed:
            return listing.list_tree(root, Tree(operation.path, order="directories_first"))
    if operation.context_lines < 0:
        raise ToolError(f"{operation.context_lines} lines of context are not possible; give 0 or more")
    if operation.max_lines is not None and operation.max_lines < 1:
        raise ToolError(f"a limit of {operation.max_lines} lines shows nothing; give 1 or more")
    with root.open_file(operation.path) as (descriptor, place):
        size = os.fstat(descriptor).st_size
        found = media.detect_media_type(os.pread(descriptor, 64, 0))
        if found is not None:
            kind, mime = found
            if kind in operation.media:
                return Media(place.shown, kind, mime, _bytes(descriptor, place, size, media.MAX_MEDIA_BYTES))
            if kind != "pdf":
                raise media.refusal(place.shown, kind, mime, size, os.pread(descriptor, media.HEAD_BYTES, 0))
            text, notes = media.pdf_text(_bytes(descriptor, place, size, media.MAX_PDF_BYTES), place.shown)
            return _selected(operation, split_lines(text), place.shown, notes)
        if size > MAX_TEXT_BYTES:
            return _streamed(operation, descriptor, place, size, encoding)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_TEXT_BYTES)
        decoded = decode(data, place.shown, encoding)
        note(place.parts, data)
    lines = split_lines(decoded.text.removeprefix(BYTE_ORDER_MARK))
    return _selected(operation, lines, place.shown, _encoding_notes(decoded))


def _bytes(descriptor: int, place: ResolvedPath, size: int, most: int) -> bytes:
    if size > most:
        raise ToolError(f"{place.shown} is too large to be given ({size} bytes, at most {most}); make it smaller first")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(most)


def _encoding_notes(decoded: DecodedText) -> tuple[str, ...]:
    return (f"the encoding was guessed: {decoded.encoding}",) if decoded.guessed else ()


def _selected(operation: ReadText, lines: Sequence[str], shown: str, notes: tuple[str, ...]) -> FileText:
    """The part of ``lines``, all of the file, that was asked for."""
    if operation.start_line is None and operation.end_line is None:
        first, last = min(1, len(lines)), len(lines)
    else:
        first, last = _line_range(operation, len(lines), shown)
    end = last if operation.max_lines is None else min(last, first + operation.max_lines - 1)
    given = lines[first - 1 : end] if first else []
    text, cut = _cut(given, first, operation.max_line_characters)
    return FileText(shown, text, first, end, len(lines), end < last, (*notes, *cut))


def _line_range(operation: ReadText, total: int, shown: str) -> tuple[int, int]:
    """The first and last line to give, 1-based, widened by the context."""
    start = 1 if operation.start_line is None else operation.start_line
    end = total if operation.end_line is None else operation.end_line
    lines = f"{shown} has {pluralize(total, 'line')}"
    _check_range(operation, lines)
    if start > total:
        raise ToolError(f"{_as_asked(operation, start)} is beyond the end: {lines}")
    return max(start - operation.context_lines, 1), min(end + operation.context_lines, total)


def _as_asked(operation: ReadText, line: int) -> str:
    return f"line {line}" if operation.counts_from == 1 else f"offset {line - 1} (lines count from 0 there)"


def _check_range(operation: ReadText, lines: str) -> None:
    start = 1 if operation.start_line is None else operation.start_line
    if start < 1:
        raise ToolError(f"line {start} is not there: lines count from 1; {lines}")
    if operation.end_line is not None and operation.end_line < start:
        raise ToolError(f"end_line {operation.end_line} is before start_line {start}; {lines}")


def _cut(lines: Sequence[str], first: int, most: int | None) -> tuple[str, tuple[str, ...]]:
    """The lines joined, none longer than ``most`` characters, and a note that names those that were."""
    if most is None:
        return "".join(lines), ()
    kept: list[str] = []
    cut: list[int] = []
    for number, line in enumerate(lines, first):
        if len(line) > most and len(without_end(line)) > most:
            cut.append(number)
            line = line[:most] + line_end(line)
        kept.append(line)
    if not cut:
        return "".join(kept), ()
    named = ", ".join(map(str, cut[:MAX_NAMED_LINES])) + (" ..." if len(cut) > MAX_NAMED_LINES else "")
    plural = f"lines {named} were" if len(cut) > 1 else f"line {named} was"
    return "".join(kept), (f"{plural} cut to {most} characters",)


def _streamed(operation: ReadText, descriptor: int, place: ResolvedPath, size: int, encoding: str | None) -> FileText:
    """Lines out of a file too large to be held; what lies before them is only counted, what follows is not read."""
    large = f"{place.shown} is large ({size} bytes)"
    if operation.start_line is None and operation.end_line is None and operation.max_lines is None:
        raise ToolError(f"{large} and is not read whole (at most {MAX_TEXT_BYTES} bytes); read a range of its lines")
    _check_range(operation, large)
    head = os.pread(descriptor, PROBE_BYTES, 0)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        raise ToolError(f"{large} and is no UTF-8 text; use a command on it")
    start = 1 if operation.start_line is None else operation.start_line
    first = max(start - operation.context_lines, 1)
    last = None if operation.end_line is None else operation.end_line + operation.context_lines
    wanted = operation.max_lines if last is None else last - first + 1
    count = min(filter(None, (wanted, operation.max_lines)), default=None)
    data, skipped, at_end = _line_bytes(descriptor, first, count)
    if skipped < first - 1 or (not data and at_end):
        asked = _as_asked(operation, start)
        raise ToolError(f"{asked} is beyond the end: {place.shown} has {pluralize(skipped, 'line')}")
    decoded = decode(data, place.shown, encoding)
    lines = split_lines(decoded.text.removeprefix(BYTE_ORDER_MARK))
    given = lines if count is None else lines[:count]
    end = first + len(given) - 1
    total = end if at_end and len(given) == len(lines) else None
    truncated = total is None and (last is None or end < last)
    text, cut = _cut(given, first, operation.max_line_characters)
    return FileText(place.shown, text, first, end, total, truncated, (*_encoding_notes(decoded), *cut))


def _line_bytes(descriptor: int, first: int, count: int | None) -> tuple[bytes, int, bool]:
    """The bytes of ``count`` lines from line ``first`` on, at most `MAX_TEXT_BYTES`; the number of
    lines passed over; and whether the end of the file was reached. Raises ToolError when it takes too long."""
    passed = 0
    block = b""
    deadline = time.monotonic() + PASSING_SECONDS
    while passed < first - 1:
        if time.monotonic() > deadline:
            raise ToolError(
                f"line {first} lies too far in: the first {passed} lines took {PASSING_SECONDS:g} s; "
                "read earlier lines, or use a command such as tail"
            )
        block = _next_block(descriptor)
        if not block:
            return b"", passed, True
        ends = _line_ends(block)
        if passed + ends >= first - 1:
            break
        passed += ends
    else:
        block = b""
    position = 0
    for _ in range(first - 1 - passed):
        position = _after_line(block, position)
    kept = bytearray(block[position:])
    found = _line_ends(kept)
    at_end = False
    while (count is None or found < count) and len(kept) < MAX_TEXT_BYTES:
        block = _next_block(descriptor)
        if not block:
            at_end = True
            break
        kept += block
        found += _line_ends(block)
    at_end = at_end or not os.pread(descriptor, 1, os.lseek(descriptor, 0, os.SEEK_CUR))
    if not at_end:  # whole lines only, unless one line is all there is
        final = max(kept.rfind(b"\n"), kept.rfind(b"\r")) + 1
        del kept[final or MAX_TEXT_BYTES :]
    return bytes(kept), first - 1, at_end


def _next_block(descriptor: int) -> bytes:
    """The next block, ended so that it splits no line end and no character of UTF-8."""
    block = os.read(descriptor, BLOCK_BYTES)
    if block.endswith(b"\r"):
        block += os.read(descriptor, 1)
    return block


def _line_ends(block: bytes | bytearray) -> int:
    """How many lines end in ``block``, by the rules of `adapter.core.text.lines`."""
    if b"\r" not in block:
        return block.count(b"\n")
    return block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")


def _after_line(block: bytes, position: int) -> int:
    """Where the line at ``position`` has ended."""
    feed = block.find(b"\n", position)
    back = block.find(b"\r", position, feed if feed >= 0 else None)
    if back < 0:
        return feed + 1
    return back + (2 if block[back + 1 : back + 2] == b"\n" else 1)
