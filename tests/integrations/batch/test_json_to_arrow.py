"""JSON lines to Parquet and back: every row is the same again."""

from __future__ import annotations

import io
import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.core.errors import UsageError
from adapter.integrations.batch.row_parser import COLUMNS, RowParser, RowSettings
from tests.integrations.batch.test_resumable_run import Ended, run
from tests.integrations.batch.test_row_parser import CALL

pa = pytest.importorskip("pyarrow", reason="needs the extra batch: pip install 'toolcall-adapter[batch]'")

import pyarrow.parquet as pq  # noqa: E402

from adapter.integrations.batch import arrow, json_to_arrow, jsonl  # noqa: E402

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.just("\ud800")
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "é", ""]), inner),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["id", "meta", "log", ""]), VALUES), min_size=1, max_size=6)


def converted(rows: list[Any], folder: Path) -> tuple[Any, list[Any]]:
    """Return the table that the rows become, and the rows that the table becomes."""
    lines, table, back = (folder / name for name in ("in.jsonl", "out.parquet", "back.jsonl"))
    for file in (table, back):
        file.unlink(missing_ok=True)
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run(lines, table)
    run(table, back)
    return pq.read_table(table), [json.loads(line) for line in back.read_text(encoding="utf-8").splitlines()]


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_rows_are_the_same_again(tmp_path_factory, rows):
    """Whatever their types, and whether a key is missing or null. The columns of both runs are added.

    The tables are read here, because a process for each of many small files would take most of the time.
    """
    rows = [{"text": CALL, **row} for row in rows]
    parser, file, stream = RowParser(RowSettings()), tmp_path_factory.getbasetemp() / "rows.parquet", io.BytesIO()
    lines, _ = jsonl.read_block(parser, "".join(json.dumps(row) + "\n" for row in rows).encode())
    arrow.write_lines(io.BytesIO(lines), file)
    table = pq.read_table(file)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    back, _ = arrow.read_block_to_lines(parser, stream.getvalue())
    results = {*COLUMNS, *(f"input_{name}" for name in COLUMNS)}
    found = [json.loads(line) for line in back.splitlines()]
    assert [{name: value for name, value in row.items() if name not in results} for row in found] == rows


def test_objects_and_lists_become_nested_types(tmp_path):
    """Also with keys that some rows lack. Mixed values become JSON strings."""
    rows = [
        {"text": CALL, "id": 1, "messages": [{"role": "user", "content": "a"}], "any": 1, "at": 1},
        {"text": CALL, "id": 2, "messages": [{"role": "tool", "content": "b", "name": "x"}], "any": "b", "at": 1.5},
    ]
    table, back = converted(rows, tmp_path)
    types = {name: str(table.schema.field(name).type) for name in ("id", "messages", "any", "at", "tool_calls")}
    assert types == {
        "id": "int64", "at": "double", "any": "string",
        "messages": "list<element: struct<role: string, content: string, name: string>>",
        "tool_calls": "list<element: struct<id: string, type: string, "
        "function: struct<name: string, arguments: string>>>",
    }  # fmt: skip
    assert [row["messages"] for row in back] == [row["messages"] for row in rows]
    assert [row["tool_calls"][0]["function"]["name"] for row in back] == ["read_file"] * 2
    assert [row["any"] for row in back] == [1, "b"]


def test_mixed_text_column_is_parsed_like_its_json(tmp_path):
    """A row without text is an error in both directions, not a parsed JSON string."""
    _, back = converted([{"text": CALL}, {"text": 5}], tmp_path)
    assert ["must be text" in (row["error"] or "") for row in back] == [False, True]
    assert [row["input_error"] for row in back] == [row["error"] for row in back]


def test_large_files_are_written_block_by_block(tmp_path, monkeypatch):
    """Each block is a row group, and all blocks have the same types."""
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 1000)
    table, back = converted([{"text": "No.", "n": number if number < 90 else "x"} for number in range(100)], tmp_path)
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups > 5
    assert str(table.schema.field("n").type) == "string"
    assert [row["n"] for row in back] == [*range(90), *["x"] * 10]


@pytest.mark.parametrize(("first", "second"), [(".jsonl", ".parquet"), (".parquet", ".jsonl")])
def test_interrupted_conversion_is_resumed(first, second, tmp_path, monkeypatch):
    """To the same bytes; the size in the progress is the input's."""
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 500)
    monkeypatch.setattr(arrow, "BLOCK_ROWS", 5)
    monkeypatch.setattr(arrow, "BATCH_ROWS", 5)
    rows = [{"text": CALL, "n": number} for number in range(50)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    source, whole, resumed = tmp_path / f"in{first}", tmp_path / f"whole{second}", tmp_path / f"resumed{second}"
    counts = run(source, whole)
    assert counts.size == pytest.approx(source.stat().st_size, rel=0.01)
    with pytest.raises(Ended):
        run(source, resumed, blocks=3)
    run(source, resumed)
    assert resumed.read_bytes() == whole.read_bytes()
    assert (counts.rows, counts.formats) == (50, {"hermes": 50})


def test_values_without_a_json_type_become_text(tmp_path):
    file = tmp_path / "in.parquet"
    row = {"text": "No.", "day": date(2026, 11, 23), "raw": b"\x00\xff", "cost": Decimal("1.50"), "wait": timedelta(1)}
    pq.write_table(pa.Table.from_pylist([row]), file)
    run(file, tmp_path / "out.jsonl")
    (again,) = map(json.loads, (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines())
    assert [again[name] for name in ("day", "raw", "cost", "wait")] == ["2026-11-23", "AP8=", "1.50", 86400.0]


def test_too_many_columns_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_to_arrow, "MAX_COLUMNS", 20)
    with pytest.raises(UsageError, match=r"more than .* columns.*choose a \.jsonl file"):
        converted([{f"c{number}": 1} for number in range(30)], tmp_path)


def test_deep_and_invalid_lines_are_kept(tmp_path):
    """Deep lists become JSON strings; a line that is not a JSON object is in the column `line`, as in JSON lines."""
    lines = [*(f'{{"text": "a", "x": {"[" * depth}{"]" * depth}}}' for depth in (5, 50, 900, 100_000)), "[1]", "nope"]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    run(tmp_path / "in.jsonl", tmp_path / "out.parquet")
    run(tmp_path / "out.parquet", tmp_path / "back.jsonl")
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row.get("x") for row in back[:2]] == [json.loads(line)["x"] for line in lines[:2]]
    assert [row.get("line") for row in back[-2:]] == lines[-2:]
    assert len(back) == len(lines)


def test_file_without_rows(tmp_path):
    table, back = converted([], tmp_path)
    assert (table.column_names, table.num_rows, back) == (list(COLUMNS), 0, [])


def test_changed_metadata_is_ignored(tmp_path):
    """Another program may have rewritten it."""
    for found in (b"[]", b"{", b'{"json": [["a"]]}', b'{"json": 5}'):
        decoder = json_to_arrow.RowDecoder({json_to_arrow.METADATA: found})
        assert decoder.decode({"a": "no JSON"}) == {"a": "no JSON"}
    assert arrow.BLOCK_BYTES == 4_000_000
