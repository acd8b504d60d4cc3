"""Parse JSON lines in blocks of whole lines. Each line keeps its original bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from adapter.core.events import Json, JsonObject
from adapter.integrations.batch.row_parser import RowParser, build_error_columns, build_unique_column_name
from adapter.integrations.batch.stats import BatchStats
from adapter.tools.coercion import get_type_name

BLOCK_BYTES = 4_000_000
"""Block size in bytes. A block takes seconds to parse. If a run is killed, its unfinished blocks are parsed again."""
LINE = "line"
"""Column for the text of a line that is not a JSON object."""


def iter_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines. The blocks are the same in every run, so an interrupted run can
    resume."""
    while block := file.read(BLOCK_BYTES):
        yield block if block.endswith(b"\n") else block + file.readline()


def read_block(row_parser: RowParser, block: bytes) -> tuple[bytes, BatchStats]:
    """Parse the lines of ``block``. Return them with the result columns, without blank lines, and their totals."""
    counts = BatchStats(size=len(block))
    lines = [_read_line(row_parser, line, counts) for line in block.split(b"\n") if line.strip()]
    return b"".join(lines), counts


def _read_line(row_parser: RowParser, line: bytes, counts: BatchStats) -> bytes:
    try:
        row: Json = json.loads(line.decode().removeprefix("\ufeff"))
        problem = None if isinstance(row, dict) else f"the line must be a JSON object, got {get_type_name(row)}"
    except (ValueError, RecursionError) as error:
        problem = f"the line is not valid JSON: {error}"
    if problem is not None:
        counts.add(columns := build_error_columns(problem))
        return _dump_json({LINE: line.decode("utf-8", "backslashreplace").rstrip("\r"), **columns}) + b"\n"
    counts.add(columns := row_parser.build_columns(row))
    if not row or not columns.keys().isdisjoint(row):
        return _dump_json({build_unique_column_name(name, row): value for name, value in row.items()} | columns) + b"\n"
    # Keep the original bytes: numbers, escapes and duplicate keys.
    return line.rstrip()[:-1] + b", " + _dump_json(columns)[1:] + b"\n"


def _dump_json(value: JsonObject) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(value).encode()
