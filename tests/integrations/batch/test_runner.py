"""Whole files: what is kept of the input, and that a run which was ended goes on to the same output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.core.errors import UsageError
from adapter.integrations.batch import jsonl
from adapter.integrations.batch.inputs import find_sources
from adapter.integrations.batch.row_parser import RowSettings
from adapter.integrations.batch.runner import process_files
from tests.command_line import adapter
from tests.integrations.batch.test_row_parser import CALL


class Ended(Exception):
    """Stands for whatever ends a run in the middle."""


def run(given: Path, out: Path, *, jobs: int = 1, blocks: int | None = None, **settings):
    """``blocks``: after which the run is ended."""
    done = 0

    def told(_):
        nonlocal done
        done += 1
        if done == blocks:
            raise Ended

    return process_files(find_sources(str(given), str(out)), str(out), RowSettings(**settings), jobs, told)


def rows(path: Path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 2_000)
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"id": n, "text": f"{n} {CALL}"}) + "\n" for n in range(200)), encoding="utf-8")
    return file


def test_lines_keep_their_bytes(tmp_path):
    """Numbers, escapes, keys that come twice and blanks stay as they were written; ours follow."""
    written = b'{"n": 1.50, "n": 2e400, "s": "\\ud83d\\u00e4", "text":"Hi."  }'
    block, _ = jsonl.read_block(_reader(), b"\xef\xbb\xbf" + written + b"\r\n\n" + b'{"text": "last"}')
    first, last, end = block.split(b"\n")
    assert first.startswith(b"\xef\xbb\xbf" + written[:-1] + b', "content": "Hi."')
    assert json.loads(last)["content"] == "last"
    assert end == b""


@pytest.mark.parametrize("line", [b"{", b"[1]", b"5", b"\xff\xfe", b"[" * 100_000, b'{"text": 5}', b"9" * 5_000, b"{}"])
def test_no_line_ends_a_run(line):
    """Each is there with its error, and with its text where it is no object; the next is read."""
    block, counts = jsonl.read_block(_reader(), line + b'\n{"text": "x"}\n')
    first, second = (json.loads(each) for each in block.splitlines())
    assert first["error"]
    assert ("line" in first) == (not line.startswith(b"{") or line == b"{")
    assert second["content"] == "x"
    assert (counts.rows, counts.errors) == (2, 1)


def test_a_lone_surrogate_can_be_written():
    """In the answer and in an argument: as its escape."""
    block, _ = jsonl.read_block(_reader(), b'{"text": "\\ud83d"}\n')
    assert json.loads(block)["content"] == "\ud83d"


def test_a_column_of_the_input_is_never_replaced():
    """It moves aside."""
    block, _ = jsonl.read_block(_reader(), b'{"text": "x", "content": 5, "input_content": 6}\n')
    row = json.loads(block)
    assert (row["content"], row["input_content"], row["input_input_content"]) == ("x", 6, 5)


@pytest.mark.parametrize("blocks", [1, 3, 7])
def test_a_run_that_was_ended_goes_on(given, tmp_path, blocks):
    """To the same bytes and the same sums, and without doing again what is done."""
    whole = run(given, tmp_path / "whole.jsonl")
    out = tmp_path / "out.jsonl"
    with pytest.raises(Ended):
        run(given, out, blocks=blocks)
    assert not out.exists()
    with (tmp_path / "out.jsonl.partial").open("ab") as file:
        file.write(b"half a li")  # written after the last block that counts
    assert run(given, out) == whole
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert [row["id"] for row in rows(out)] == list(range(200))
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.jsonl", "whole.jsonl"}


def test_processes_make_the_same(given, tmp_path):
    """Two of them, in order."""
    one, two = run(given, tmp_path / "one.jsonl"), run(given, tmp_path / "two.jsonl", jobs=2)
    assert one == two
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_another_run_is_not_gone_on_with(given, tmp_path):
    """Other options, another input; nor is what is there written over."""
    out = tmp_path / "out.jsonl"
    with pytest.raises(Ended):
        run(given, out, blocks=1)
    with pytest.raises(UsageError, match="other input, options or version"):
        run(given, out, policy="strict")
    given.write_text(given.read_text() + '{"text": "x"}\n')
    with pytest.raises(UsageError, match="remove it"):
        run(given, out)
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        run(given, tmp_path / "there.jsonl")
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def test_a_folder_becomes_a_folder(given, tmp_path):
    """Each file under its name; what was ended between two goes on."""
    folder = tmp_path / "data"
    (folder / "train").mkdir(parents=True)
    given.rename(folder / "train" / "a.jsonl")
    (folder / "b.jsonl").write_text('{"text": "x"}\n')
    (folder / "cache-1.jsonl").write_text("no data")
    with pytest.raises(Ended):
        run(folder, tmp_path / "out", blocks=2)
    assert (tmp_path / "out" / "b.jsonl").exists()
    assert run(folder, tmp_path / "out").rows == 201
    assert len(rows(tmp_path / "out" / "train" / "a.jsonl")) == 200


@pytest.mark.parametrize(
    ("given", "out", "why"),
    [
        ("in.jsonl", "out.parquet", "become JSON lines"),
        ("no.jsonl", "out.jsonl", "no file or folder"),
        ("in.csv", "out.jsonl", "is none of"),
        (".", "out.jsonl", "must name one, too"),
        ("no.parquet", "out.jsonl", "becomes a Parquet file"),
    ],
)
def test_a_pair_that_does_not_fit_is_refused(given, out, why, tmp_path, monkeypatch):
    """With what does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("")
    with pytest.raises(UsageError, match=why):
        find_sources(given, out)


def test_the_command_reads_a_pipe(tmp_path):
    """Lines in, lines out, the sums on standard error and nothing else."""
    done = adapter(
        "read", "-", "--out", "-", "--column", "a.b", text=json.dumps({"a": {"b": CALL}}) + "\n5\n", cwd=tmp_path
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["tool_calls"][0]["function"]["name"] == "read_file"
    assert second["line"] == "5"
    assert done.stderr == "2 rows, 1 call, 0 rows with fixes, 0 invalid calls, 1 row that could not be read\n"
    assert done.returncode == 0


def test_no_row_read_is_no_success(tmp_path):
    """The wrong column, mostly: the rows are written with their errors, and the exit code fails."""
    done = adapter("read", "-", "--out", "-", "--column", "b", text='{"a": "x"}\n{"a": "y"}\n', cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2
    assert "name the column of the text with --column" in done.stderr


def _reader():
    from adapter.integrations.batch.row_parser import RowParser

    return RowParser(RowSettings())
