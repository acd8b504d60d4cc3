"""Run a batch on a cluster, with Ray Data."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any

from adapter.core.errors import UsageError
from adapter.integrations.batch.input_and_target_files import LINES
from adapter.integrations.batch.row_parser import RowParser, RowSettings

BATCH_ROWS = 1_024


def process_with_ray(source: str, out: str, settings: RowSettings) -> None:
    """Parse files that Ray can read, and write Parquet files to ``out``. Raises UsageError if Ray is not installed."""
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
    from adapter.integrations.batch.resumable_run import make_row_parser

    return with_columns(make_row_parser(settings), table)[0]
