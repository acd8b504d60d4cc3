"""The same rows by Ray Data; needs Ray and `pytest -m clients tests/integrations/batch`."""

from __future__ import annotations

import json
import os

import pytest

from adapter.integrations.batch.ray_data import process_with_ray
from adapter.integrations.batch.row_parser import RowSettings
from tests.integrations.batch.test_resumable_run import run
from tests.integrations.batch.test_row_parser import CALL

pytestmark = pytest.mark.clients
ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ray[data]'")
pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra batch: pip install 'toolcall-adapter[batch]'")


@pytest.mark.filterwarnings("default")
def test_ray_gives_the_same_rows_as_one_machine(tmp_path):
    """The same columns for the same rows, of JSON lines and of Parquet."""
    rows = [{"id": number, "text": f"{number} {CALL}"} for number in range(50)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(_table(rows), tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "here.parquet")
    here = pq.read_table(tmp_path / "here.parquet").to_pylist()
    ray.init(num_cpus=2, object_store_memory=200_000_000, include_dashboard=False, runtime_env={
        "env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    })  # fmt: skip
    try:
        for name in ("in.jsonl", "in.parquet"):
            out = tmp_path / f"out-{name}"
            process_with_ray(str(tmp_path / name), str(out), RowSettings())
            there = sorted(pq.read_table(out).to_pylist(), key=lambda row: row["id"])
            assert there == here
    finally:
        ray.shutdown()


def _table(rows):
    import pyarrow as pa

    return pa.Table.from_pylist(rows)
