"""Parse Arrow tables from Parquet files and saved Hugging Face datasets, and write Parquet files and JSON lines.

This needs pyarrow, which is imported only for such files.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import replace_surrogates
from adapter.integrations.batch import arrow_worker
from adapter.integrations.batch.json_to_arrow import MAX_COLUMNS, ColumnShape, RowDecoder, build_metadata, to_json
from adapter.integrations.batch.jsonl import iter_blocks
from adapter.integrations.batch.row_parser import COLUMNS, RowParser, build_error_columns, build_unique_column_name
from adapter.integrations.batch.stats import BatchStats
from adapter.workspace.sandbox.bounded_worker import JobError, stream_bounded

BATCH_ROWS = 256
"""Number of rows that are decoded at a time. It is small, because rows may be long."""
BLOCK_BYTES, BLOCK_ROWS = 4_000_000, 8_192
"""Maximum size of a block, in bytes and in rows. Each block becomes a row group of the output."""
READ_S = 30.0
"""Maximum processor time to read the next block of a table, in seconds."""

_TEXT = pa.string()
_CALL = pa.struct([("id", _TEXT), ("type", _TEXT), ("function", pa.struct([("name", _TEXT), ("arguments", _TEXT)]))])
TYPES: dict[str, Any] = {
    "content": _TEXT,
    "reasoning": _TEXT,
    "tool_calls": pa.list_(_CALL),
    "fixes": pa.list_(_TEXT),
    "invalid": pa.list_(pa.struct([("raw", _TEXT), ("error", _TEXT)])),
    "format": _TEXT,
    "error": _TEXT,
}
assert tuple(TYPES) == COLUMNS
DAMAGE = (pa.ArrowException, ArithmeticError, LookupError, MemoryError, OSError, TypeError, ValueError)
"""Exceptions that pyarrow raises for damaged files."""


def iter_batches(path: Path) -> Iterator[bytes]:
    """Yield the rows of a Parquet or Arrow file as Arrow streams, one for each block of rows.

    The blocks are the same in every run. The file is read in a separate process with limits. Raises UsageError if it is
    invalid.
    """
    _check_names(_read_header(path)[1].names, path)
    with closing(_read(path, BATCH_ROWS)) as values:
        yield from islice(values, 2, None)


def read_block(row_parser: RowParser, block: bytes) -> tuple[bytes, BatchStats]:
    """Parse the rows of an Arrow stream. Return the stream with the result columns, and the totals of its rows.

    Raises UsageError if the rows cannot be decoded.
    """
    try:
        table, counts = with_columns(row_parser, pa.ipc.open_stream(block).read_all())
        return arrow_worker.to_stream(table), counts
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(f"cannot decode rows of the input, which may be damaged: {error}") from error


def read_block_to_lines(row_parser: RowParser, block: bytes) -> tuple[bytes, BatchStats]:
    """Parse the rows of an Arrow stream. Return them as JSON lines with the result columns, and their totals."""
    stream, counts = read_block(row_parser, block)
    table = pa.ipc.open_stream(stream).read_all()
    decoder = RowDecoder(table.schema.metadata)
    lines = [json.dumps(decoder.decode(row), default=to_json) + "\n" for row in table.to_pylist()]
    return "".join(lines).encode(), counts


def with_columns(row_parser: RowParser, table: Any) -> tuple[Any, BatchStats]:
    """Parse a pyarrow.Table. Return the table with the result columns, and the totals of its rows."""
    counts = BatchStats()
    names = table.column_names
    needed = {name if name in names else name.split(".")[0] for name in row_parser.settings.columns}
    present = [name for name in names if name in needed]
    rows = table.select(present).to_pylist() if present else [{}] * len(table)
    decoder = RowDecoder(table.schema.metadata)
    parsed_rows = []
    for row in rows:
        parsed_rows.append(columns := row_parser.build_columns(decoder.decode(row)))
        counts.add(columns)
    result = table.rename_columns([build_unique_column_name(name, names) for name in names])
    for name, kind in TYPES.items():
        result = result.append_column(name, _build_array([columns[name] for columns in parsed_rows], kind))
    return result.replace_schema_metadata(_build_metadata(table)), counts


def write_parquet(stream: BinaryIO, path: Path) -> None:
    """Write consecutive Arrow streams to a Parquet file, as one row group each."""
    writer = None
    end = stream.seek(0, 2)
    stream.seek(0)
    try:
        while stream.tell() < end:
            table = pa.ipc.open_stream(stream).read_all()
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table, row_group_size=max(1, len(table)))
    finally:
        if writer is not None:
            writer.close()


def write_lines(stream: BinaryIO, path: Path) -> None:
    """Write JSON lines with result columns to a Parquet file.

    The lines are read twice: first to find the types of the columns, then to write a row group for each block. Raises
    UsageError if the lines have too many columns.
    """
    shape = ColumnShape()
    stream.seek(0)
    for line in stream:
        shape.add(json.loads(line))
    if shape.is_json and shape.count:
        raise UsageError(
            f"the rows have more than {MAX_COLUMNS:,} columns, or a column name that is not valid Unicode, and Parquet "
            "cannot store them; choose a .jsonl file as --out"
        )
    shape.settle()
    types = {name: inner.build_type() for name, inner in shape.fields.items() if name not in TYPES} | TYPES
    schema = pa.schema(list(types.items()), build_metadata(shape))
    stream.seek(0)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for block in iter_blocks(stream):
            rows = [json.loads(line) for line in block.splitlines()]
            columns = [_build_column(shape, name, rows) for name in types]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=max(1, len(rows)))


def _build_column(shape: ColumnShape, name: str, rows: Sequence[JsonObject]) -> Any:
    if name in TYPES:
        return _build_array([row.get(name) for row in rows], TYPES[name])
    inner, is_optional = shape.fields[name], shape.is_optional(name)
    return pa.array([inner.encode(row[name], is_optional) if name in row else None for row in rows], inner.build_type())


def build_empty_table(path: Path) -> bytes:
    """Return a block without rows, with the columns of ``path`` and the result columns."""
    _, schema = _read_header(path)
    _check_names(schema.names, path)
    empty = build_error_columns("")
    result = schema.empty_table().rename_columns(
        [build_unique_column_name(name, schema.names) for name in schema.names]
    )
    for name in empty:
        result = result.append_column(name, pa.array([], TYPES[name]))
    return arrow_worker.to_stream(result.replace_schema_metadata(_build_metadata(schema)))


def count_rows(path: Path) -> int:
    """Return the number of rows of a Parquet or Arrow file. The rows are not decoded."""
    return _read_header(path)[0]


@cache
def _read_header(path: Path) -> tuple[int, Any]:
    """Return the number of rows and the schema of a file."""
    count, columns = _read(path, 0)
    return int(count), pa.ipc.open_stream(columns).schema


def _read(path: Path, batch_rows: int) -> Generator[bytes, None, None]:
    packages = str(Path(pa.__file__).parents[1])
    arguments = (str(path.absolute()), packages, batch_rows, BLOCK_ROWS, BLOCK_BYTES)
    try:
        yield from stream_bounded(arrow_worker.__file__, *arguments, seconds=READ_S)
    except JobError as error:
        raise UsageError(f"{path} is not a valid Arrow or Parquet file: {str(error)[:300]}") from error


def _check_names(names: list[str], path: Path) -> None:
    repeated = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if repeated is not None:
        raise UsageError(f"{path} has more than one column {repeated!r}; rename or drop one of them")


def _build_array(values: list[Json], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate, from an escape in a call's name or text
        return pa.array(replace_surrogates(values), kind)


# ---------------------------------------------------------------- metadata of datasets

_FEATURE: JsonObject = {"dtype": "string", "_type": "Value"}
_FEATURES: JsonObject = {
    **dict.fromkeys(COLUMNS, _FEATURE),
    "tool_calls": [{"id": _FEATURE, "type": _FEATURE, "function": {"name": _FEATURE, "arguments": _FEATURE}}],
    "fixes": [_FEATURE],
    "invalid": [{"raw": _FEATURE, "error": _FEATURE}],
}


def _build_metadata(table_or_schema: Any) -> dict[bytes, bytes] | None:
    """Return a table's metadata, with the result columns added to Hugging Face's list of columns (``features``),
    because the datasets library ignores columns that are not listed."""
    metadata: dict[bytes, bytes] = dict(
        (table_or_schema.schema if isinstance(table_or_schema, pa.Table) else table_or_schema).metadata or {}
    )
    names = table_or_schema.column_names if isinstance(table_or_schema, pa.Table) else table_or_schema.names
    try:
        info = parse_json(metadata[b"huggingface"])
        features = dict(info["info"]["features"])
    except (KeyError, TypeError, ValueError):
        metadata.pop(b"huggingface", None)
        return metadata or None
    renamed = {build_unique_column_name(name, names): feature for name, feature in features.items()}
    info["info"]["features"] = renamed | _FEATURES
    return {**metadata, b"huggingface": json.dumps(info).encode()}
