"""Whole files: preserved input, and interrupted runs that resume to the same output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.core.errors import UsageError
from adapter.integrations.batch import jsonl
from adapter.integrations.batch.input_and_target_files import find_sources
from adapter.integrations.batch.resumable_run import process_files
from adapter.integrations.batch.row_parser import RowSettings
from tests.command_line import adapter
from tests.integrations.batch.test_row_parser import CALL


class Ended(Exception):
    """Simulates an interruption of a run."""


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
def test_invalid_lines_do_not_stop_a_run(line):
    """Each has its error, and its text if it is not an object; the next line is parsed."""
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
def test_interrupted_run_is_resumed(given, tmp_path, blocks):
    """To the same bytes and totals, without repeating finished blocks."""
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


def test_output_does_not_depend_on_processes(given, tmp_path):
    """Two of them, in order."""
    one, two = run(given, tmp_path / "one.jsonl"), run(given, tmp_path / "two.jsonl", jobs=2)
    assert one == two
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_progress_of_another_run_is_not_resumed(given, tmp_path):
    """With other options or input; existing output is not overwritten."""
    out = tmp_path / "out.jsonl"
    with pytest.raises(Ended):
        run(given, out, blocks=1)
    with pytest.raises(UsageError, match="different input, options or program version"):
        run(given, out, policy="strict")
    given.write_text(given.read_text() + '{"text": "x"}\n')
    with pytest.raises(UsageError, match="remove the file"):
        run(given, out)
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        run(given, tmp_path / "there.jsonl")
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def test_a_folder_becomes_a_folder(given, tmp_path):
    """Each file under its name; a run interrupted between two is resumed."""
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
        ("in.jsonl", "out.csv", "must be FILE.jsonl, FILE.parquet or -"),
        ("no.jsonl", "out.jsonl", "file or folder .*not found"),
        ("in.csv", "out.jsonl", "must be a file with the suffix"),
        (".", "out.jsonl", "must also be a folder"),
        ("no.parquet", "out.arrow", "must be FILE.jsonl, FILE.parquet or -"),
    ],
)
def test_mismatched_input_and_output_are_rejected(given, out, why, tmp_path, monkeypatch):
    """The error shows the expected form."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("")
    with pytest.raises(UsageError, match=why):
        find_sources(given, out)


def test_command_reads_standard_input(tmp_path):
    """Lines in, lines out, the sums on standard error and nothing else."""
    done = adapter(
        "read", "-", "--out", "-", "--column", "a.b", text=json.dumps({"a": {"b": CALL}}) + "\n5\n", cwd=tmp_path
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["tool_calls"][0]["function"]["name"] == "read_file"
    assert second["line"] == "5"
    assert done.stderr == "2 rows, 1 call, 0 rows with fixes, 0 invalid calls, 1 row with errors\nformats: hermes 1\n"
    assert done.returncode == 0


def test_report_counts_formats_and_fixes(tmp_path):
    """The most frequent first. A repair counts once for each call that needed it."""
    bare = '{"name": "read_file", "arguments": {"path": "a",}}'
    texts = [f"<tool_call>\n{bare}\n</tool_call>"] * 2 + [f"[TOOL_CALLS][{bare}]", "Hello"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    done = adapter("read", "in.jsonl", "--out", "out.jsonl", "--jobs", "1", cwd=tmp_path)
    assert done.stderr == (
        "4 rows, 3 calls, 3 rows with fixes, 0 invalid calls, 0 rows with errors\n"
        "formats: hermes 2, mistral 1\nfixes: trailing-comma 3\n"
    )


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_counted_size_of_a_complete_run_is_that_of_its_files(suffix, tmp_path, monkeypatch):
    """It is the basis of the remaining time that `adapter read` shows."""
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 4_000)
    rows = [{"text": CALL}] * 400
    source = tmp_path / f"in{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(
            pytest.importorskip("pyarrow").Table.from_pylist(rows), source
        )
    else:
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sizes: list[int] = []
    sources = find_sources(str(source), str(tmp_path / f"out{suffix}"))
    process_files(sources, str(tmp_path / f"out{suffix}"), RowSettings(), 1, lambda counts: sizes.append(counts.size))
    assert sizes == sorted(sizes)
    assert sizes[-1] == pytest.approx(source.stat().st_size, rel=0.01)


def test_exit_code_is_nonzero_if_no_row_was_parsed(tmp_path):
    """The wrong column, mostly: the rows are written with their errors, and the exit code fails."""
    done = adapter("read", "-", "--out", "-", "--column", "b", text='{"a": "x"}\n{"a": "y"}\n', cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2
    assert "name the column that has the text with --column" in done.stderr


def _reader():
    from adapter.integrations.batch.row_parser import RowParser

    return RowParser(RowSettings())
