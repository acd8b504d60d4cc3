"""Read a Parquet or Arrow file in blocks, as a job of `adapter.workspace.sandbox.bounded_worker`.

A file of a few kilobytes can expand to gigabytes of rows, and a damaged one can crash the decoder. This file must not
import other modules of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

BATCH_BYTES = 16_000_000
"""Maximum expected size of a batch, in bytes. If the metadata reports long rows, fewer rows are decoded at a time."""
MAX_ROW_BYTES = 64 << 20
"""Maximum size of a row as Python objects, in bytes."""
VALUE_BYTES = 64
"""Approximate size of a value as a Python object, in bytes, without its text."""


def run(_: bytes, path: str, packages: str, batch_rows: int, block_rows: int, block_bytes: int) -> Iterator[bytes]:
    """Yield the number of rows, an Arrow stream without rows, and an Arrow stream for each block.

    ``packages`` is the folder that pyarrow is installed in. ``batch_rows`` rows are decoded at a time; 0 yields no
    blocks. A block ends at ``block_rows`` or ``block_bytes``.
    """
    sys.path.append(packages)
    import pyarrow as pa

    read = _read_parquet if path.endswith(".parquet") else _read_arrow
    count, schema, batches = read(path, batch_rows)
    yield b"%d" % count
    yield to_stream(schema.empty_table())
    block: list[Any] = []
    for batch in batches if batch_rows else ():
        for part in _split(batch):
            block.append(part)
            if sum(each.num_rows for each in block) >= block_rows or sum(each.nbytes for each in block) >= block_bytes:
                yield to_stream(pa.Table.from_batches(block))
                block = []
    if block:
        yield to_stream(pa.Table.from_batches(block))


def _read_parquet(path: str, batch_rows: int) -> tuple[int, Any, Iterator[Any]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, buffer_size=1 << 20)
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    longest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
    size = max(1, min(batch_rows, BATCH_BYTES // max(1, longest)))
    # pyarrow 18 fails to read no row groups.
    batches = file.iter_batches(batch_size=size, use_threads=False) if groups else iter(())
    return file.metadata.num_rows, file.schema_arrow, batches


def _read_arrow(path: str, batch_rows: int) -> tuple[int, Any, Iterator[Any]]:
    return sum(map(len, _open_arrow(path))), _open_arrow(path).schema, _read_arrow_batches(path, batch_rows)


def _read_arrow_batches(path: str, batch_rows: int) -> Iterator[Any]:
    for batch in _open_arrow(path):
        batch.validate(full=True)  # offsets in a damaged file may point anywhere in memory
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


def _open_arrow(path: str) -> Any:
    """Open an Arrow file in the stream format, which datasets writes, or in the file format, which has a footer."""
    import pyarrow as pa

    source = pa.memory_map(path)
    try:
        return pa.ipc.open_stream(source)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(source)
        return pa.RecordBatchReader.from_batches(
            file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
        )


def _split(batch: Any) -> Iterator[Any]:
    """Split a batch into parts whose rows fit into memory as Python objects."""
    size = sum(map(_estimate_size, batch.columns))
    if size <= MAX_ROW_BYTES:
        yield batch
    elif batch.num_rows == 1:
        raise ValueError(f"a row has more than {MAX_ROW_BYTES >> 20} MB")
    else:
        half = batch.num_rows // 2
        yield from _split(batch.slice(0, half))
        yield from _split(batch.slice(half))


def _estimate_size(array: Any) -> int:
    """Return the approximate size of an array as Python objects, in bytes. It can be far larger than in the file, where
    equal strings are stored once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, own = array.type, VALUE_BYTES * len(array)
    if isinstance(array, pa.ExtensionArray):
        return _estimate_size(array.storage)
    if pa.types.is_dictionary(kind):
        return _estimate_size(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _estimate_size(pc.run_end_decode(array))
    if pa.types.is_struct(kind):
        return own + sum(map(_estimate_size, array.flatten()))
    if pa.types.is_map(kind):
        entries = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        return own + _estimate_size(entries.flatten())
    if pa.types.is_nested(kind) and hasattr(array, "flatten"):
        return own + _estimate_size(array.flatten())
    if str(kind) in {"string_view", "binary_view"}:
        return own + int(array.cast(pa.large_binary()).nbytes)
    return own + int(array.nbytes)


def to_stream(table: Any) -> bytes:
    """Encode a pyarrow.Table in Arrow's stream format."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    result: bytes = sink.getvalue().to_pybytes()
    return result
