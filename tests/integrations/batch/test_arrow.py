"""Parquet files and saved datasets: typed columns, row groups, existing columns."""

from __future__ import annotations

import json
from datetime import date

import pytest

from adapter.core.errors import UsageError
from adapter.integrations.batch.row_parser import COLUMNS, RowSettings
from tests.integrations.batch.test_resumable_run import Ended, run
from tests.integrations.batch.test_row_parser import CALL, TOOLS

pa = pytest.importorskip("pyarrow", reason="needs the extra batch: pip install 'toolcall-adapter[batch]'")

import pyarrow.parquet as pq  # noqa: E402

from adapter.integrations.batch import arrow  # noqa: E402
from adapter.integrations.batch.row_parser import RowParser  # noqa: E402


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "BLOCK_ROWS", 30)
    monkeypatch.setattr(arrow, "BATCH_ROWS", 10)
    file = tmp_path / "in.parquet"
    table = pa.table({
        "id": pa.array(range(100), pa.uint8()),
        "text": pa.array([f"{n} {CALL}" for n in range(99)] + [None]),
        "day": [date(2026, 11, 23)] * 100,
        "kind": pa.array(["a", "b"] * 50).dictionary_encode(),
        "content": [[1.5]] * 100,
    })  # fmt: skip
    pq.write_table(table, file, row_group_size=100)
    return file


def test_columns_keep_their_types(given, tmp_path):
    """All input columns next to ours; one row group per block."""
    counts = run(given, tmp_path / "out.parquet", column="text", tools=json.dumps(TOOLS))
    file = pq.ParquetFile(tmp_path / "out.parquet")
    before, after = pq.read_table(given), file.read()
    assert (counts.rows, counts.calls, counts.errors, file.num_row_groups) == (100, 99, 1, 4)
    assert after.column_names == ["id", "text", "day", "kind", "input_content", *COLUMNS]
    assert after.select(before.column_names[:4]).equals(before.select(before.column_names[:4]))
    row = after.slice(5, 1).to_pylist()[0]
    assert row["tool_calls"][0]["function"] == {"name": "read_file", "arguments": '{"path": "a.py"}'}
    assert (row["content"], row["fixes"], row["invalid"], row["error"]) == ("5", [], [], None)
    last = after.slice(99, 1).to_pylist()[0]
    assert (last["content"], last["tool_calls"]) == (None, None)
    assert "must be text, got nothing" in last["error"]


@pytest.mark.parametrize("blocks", [1, 3])
def test_interrupted_run_is_resumed(given, tmp_path, blocks):
    """To the same bytes, by one process or two."""
    run(given, tmp_path / "whole.parquet")
    with pytest.raises(Ended):
        run(given, tmp_path / "out.parquet", blocks=blocks)
    run(given, tmp_path / "out.parquet", jobs=blocks)
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_dataset_is_parsed_and_features_are_updated(tmp_path):
    """Splits in folders, as saved by datasets: Arrow streams, whose features include our columns."""
    folder = tmp_path / "data"
    (folder / "train").mkdir(parents=True)
    told = {"info": {"features": {"text": {"dtype": "string", "_type": "Value"}}}}
    schema = pa.schema([("text", pa.string())], metadata={"huggingface": json.dumps(told), "mine": "kept"})
    for name, footer in (("data-00000-of-00002.arrow", False), ("data-00001-of-00002.arrow", True)):
        with (pa.ipc.new_file if footer else pa.ipc.new_stream)(folder / "train" / name, schema) as writer:
            writer.write_table(pa.table({"text": [CALL]}, schema))
    (folder / "train" / "cache-0.arrow").write_bytes(b"of datasets")
    (folder / "train" / "state.json").write_text("{}")
    assert run(folder, tmp_path / "out").calls == 2
    made = sorted((tmp_path / "out" / "train").iterdir())
    assert [path.name for path in made] == ["data-00000-of-00002.parquet", "data-00001-of-00002.parquet"]
    metadata = pq.read_schema(made[0]).metadata
    assert list(json.loads(metadata[b"huggingface"])["info"]["features"]) == ["text", *COLUMNS]
    assert metadata[b"mine"] == b"kept"


def test_a_file_without_rows_has_the_columns(tmp_path):
    """So that files can be concatenated."""
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    pq.write_table(pa.table({"text": [CALL]}), tmp_path / "one.parquet")
    run(tmp_path / "one.parquet", tmp_path / "one-out.parquet")
    assert pq.read_schema(tmp_path / "out.parquet") == pq.read_schema(tmp_path / "one-out.parquet")


def test_invalid_files_are_rejected(tmp_path):
    """And named; so is one that was cut."""
    (tmp_path / "in.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UsageError, match=r"in\.parquet"):
        run(tmp_path / "in.parquet", tmp_path / "out.parquet")


def test_a_lone_surrogate_becomes_the_replacement(tmp_path):
    """Arrow's texts are UTF-8; an escape in a call's name can make one."""
    text = '<tool_call>\n{"name": "a\\ud83d", "arguments": {"b": "\\ud83d"}}\n</tool_call>'
    made, _ = arrow.with_columns(RowParser(RowSettings()), pa.table({"text": [text]}))
    function = made["tool_calls"].to_pylist()[0][0]["function"]
    assert function == {"name": "a\ufffd", "arguments": '{"b": "\ufffd"}'}


def test_a_path_leads_into_a_struct():
    """Nothing else of it is read; if the column is missing, every row has an error."""
    table = pa.table({"a": [{"b": [CALL]}], "big": ["x"]})
    _, counts = arrow.with_columns(RowParser(RowSettings(column="a.b.0")), table)
    assert counts.calls == 1
    _, counts = arrow.with_columns(RowParser(RowSettings(column="c")), table)
    assert counts.errors == 1
