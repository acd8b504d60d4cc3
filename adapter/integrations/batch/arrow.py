"""Arrow tables, of Parquet files and of datasets that Hugging Face's library saved: cut, read, and written as Parquet.

Needs pyarrow, which nothing imports before such a file is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.display_escaping import replace_lone_surrogates
from adapter.integrations.batch.row_parser import COLUMNS, RowParser, error_columns, unique_column_name
from adapter.integrations.batch.stats import BatchStats

BATCH_ROWS = 256
"""Decoded at a time: rows may be long."""
BLOCK_BYTES, BLOCK_ROWS = 4_000_000, 8_192
"""A block ends with the batch that reaches one of these; it becomes a row group of the output."""

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


def iter_batches(path: Path) -> Iterator[bytes]:
    """The rows of a Parquet or Arrow file as Arrow streams; the same blocks each time. Raises UsageError for another
    file."""
    gathered: list[Any] = []
    try:
        for batch in _batches(path):
            gathered.append(batch)
            if _is_full(gathered):
                yield _as_stream(pa.Table.from_batches(gathered))
                gathered = []
    except pa.ArrowException as error:
        raise UsageError(f"{path}: no file that Arrow reads to its end: {error}") from error
    if gathered:
        yield _as_stream(pa.Table.from_batches(gathered))


def read_block(reader: RowParser, block: bytes) -> tuple[bytes, BatchStats]:
    """An Arrow stream with our columns added."""
    table, counts = with_columns(reader, pa.ipc.open_stream(block).read_all())
    return _as_stream(table), counts


def with_columns(reader: RowParser, table: Any) -> tuple[Any, BatchStats]:
    """A pyarrow.Table with our columns added."""
    counts = BatchStats()
    names = table.column_names
    needed = {name if name in names else name.split(".")[0] for name in reader.settings.columns}
    there = [name for name in names if name in needed]
    rows = table.select(there).to_pylist() if there else [{}] * len(table)
    read = []
    for row in rows:
        read.append(columns := reader.columns(row))
        counts.add(columns)
    made = table.rename_columns([unique_column_name(name, names) for name in names])
    for name, kind in TYPES.items():
        made = made.append_column(name, _array([columns[name] for columns in read], kind))
    return made.replace_schema_metadata(_metadata(table)), counts


def write_parquet(stream: BinaryIO, path: Path) -> None:
    """Write what ``stream`` holds, one Arrow stream after the other, as a Parquet file with a row group for each."""
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


def empty_table_like(path: Path) -> bytes:
    """The block of a file without rows: its columns, and ours."""
    schema = pq.read_schema(path) if path.suffix == ".parquet" else _open_arrow(path).schema
    empty = error_columns("")
    made = schema.empty_table().rename_columns([unique_column_name(name, schema.names) for name in schema.names])
    for name in empty:
        made = made.append_column(name, pa.array([], TYPES[name]))
    return _as_stream(made.replace_schema_metadata(_metadata(schema)))


def _batches(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS)
        return
    for batch in _open_arrow(path):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def _open_arrow(path: Path) -> Any:
    """The batches of an Arrow file: datasets saves streams, others the format with a footer."""
    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_stream(source)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(source)
        return pa.RecordBatchReader.from_batches(
            file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
        )


def _is_full(batches: list[Any]) -> bool:
    rows, size = sum(each.num_rows for each in batches), sum(each.nbytes for each in batches)
    return bool(rows >= BLOCK_ROWS or size >= BLOCK_BYTES)


def _as_stream(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def _array(values: list[Json], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate, which an escape in a call's name or text can make
        return pa.array(_encodable(values), kind)


def _encodable(value: Json) -> Json:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return {key: _encodable(each) for key, each in value.items()} if isinstance(value, dict) else value


# ------------------------------------------------------------------ what datasets keeps beside a table

_FEATURE: JsonObject = {"dtype": "string", "_type": "Value"}
_FEATURES: JsonObject = {
    **dict.fromkeys(COLUMNS, _FEATURE),
    "tool_calls": [
        {"id": _FEATURE, "type": _FEATURE, "function": {"name": _FEATURE, "arguments": _FEATURE}},
    ],
    "fixes": [_FEATURE],
    "invalid": [{"raw": _FEATURE, "error": _FEATURE}],
}


def _metadata(given: Any) -> dict[bytes, bytes] | None:
    """Of a table or schema, with our columns among the features that datasets wrote down: it reads only those."""
    metadata: dict[bytes, bytes] = dict((given.schema if isinstance(given, pa.Table) else given).metadata or {})
    names = given.column_names if isinstance(given, pa.Table) else given.names
    try:
        told = json.loads(metadata[b"huggingface"])
        features = told["info"]["features"]
    except (KeyError, TypeError, ValueError):
        metadata.pop(b"huggingface", None)
        return metadata or None
    kept = {unique_column_name(name, names): feature for name, feature in features.items()}
    told["info"]["features"] = kept | _FEATURES
    return {**metadata, b"huggingface": json.dumps(told).encode()}
