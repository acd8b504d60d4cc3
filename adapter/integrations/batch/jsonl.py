"""JSON lines: a file cut into blocks of whole lines, and a block read, each line keeping its bytes as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from adapter.core.events import Json, JsonObject
from adapter.integrations.batch.row_parser import RowParser, error_columns, unique_column_name
from adapter.integrations.batch.stats import BatchStats
from adapter.tools.coercion import type_name

BLOCK_BYTES = 4_000_000
"""Of lines that are read at a time: seconds of work, and what a killed run does again."""
LINE = "line"
"""The column of a line that is no JSON object."""


def iter_blocks(file: BinaryIO) -> Iterator[bytes]:
    """The file in whole lines; the same blocks each time."""
    while block := file.read(BLOCK_BYTES):
        yield block if block.endswith(b"\n") else block + file.readline()


def read_block(reader: RowParser, block: bytes) -> tuple[bytes, BatchStats]:
    """The lines of ``block`` with our columns added. Blank lines are left out."""
    counts = BatchStats()
    lines = [_read_line(reader, line, counts) for line in block.split(b"\n") if line.strip()]
    return b"".join(lines), counts


def _read_line(reader: RowParser, line: bytes, counts: BatchStats) -> bytes:
    try:
        row: Json = json.loads(line.decode().removeprefix("\ufeff"))
        wrong = None if isinstance(row, dict) else f"the line holds JSON of type {type_name(row)}, not an object"
    except (ValueError, RecursionError) as error:
        wrong = f"the line is no JSON: {error}"
    if wrong is not None:
        counts.add(columns := error_columns(wrong))
        return _dumped({LINE: line.decode("utf-8", "backslashreplace").rstrip("\r"), **columns}) + b"\n"
    counts.add(columns := reader.columns(row))
    if not row or not columns.keys().isdisjoint(row):
        return _dumped({unique_column_name(name, row): value for name, value in row.items()} | columns) + b"\n"
    # As it was written: numbers, escapes and keys that come twice stay.
    return line.rstrip()[:-1] + b", " + _dumped(columns)[1:] + b"\n"


def _dumped(value: JsonObject) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate: as an escape it can be written
        return json.dumps(value).encode()
