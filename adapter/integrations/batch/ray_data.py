"""The same reading on a cluster: Ray Data reads, spreads and writes, each batch through the same function."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any

from adapter.core.errors import UsageError
from adapter.integrations.batch.inputs import LINES
from adapter.integrations.batch.row_parser import RowParser, RowSettings

BATCH_ROWS = 1_024


def process_with_ray(source: str, out: str, settings: RowSettings) -> None:
    """Read Parquet or JSON lines, a file or a folder wherever Ray reads from, and write Parquet files into ``out``.

    Raises UsageError for settings that no row could be read by, and where Ray is not installed.
    """
    RowParser(settings)
    try:
        import ray.data
    except ImportError as error:
        raise UsageError("--ray needs Ray: pip install 'toolcall-adapter[batch]' 'ray[data]'") from error
    is_lines = PurePosixPath(source).suffix in LINES
    rows = ray.data.read_json(source, lines=True) if is_lines else ray.data.read_parquet(source)
    read = partial(_with_columns, settings=settings)
    rows.map_batches(read, batch_format="pyarrow", batch_size=BATCH_ROWS).write_parquet(out)


def _with_columns(table: Any, settings: RowSettings) -> Any:
    from adapter.integrations.batch.arrow import with_columns
    from adapter.integrations.batch.runner import make_row_parser

    return with_columns(make_row_parser(settings), table)[0]
