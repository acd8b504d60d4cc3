"""The records of changes, changed by somebody else: nothing but this workspace is changed, and nothing crashes."""

import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.workspace import Workspace
from tests.command_line import adapter


def _record(root: Path, state: Path) -> Path:
    """A change of `victim`, and its record."""
    with Workspace(root, approve="yolo", state=state) as workspace:
        for text in ("one", "two"):
            assert workspace.run("write_file", {"path": "victim", "content": text}).ok
    return max(state.rglob("record.json"))


def _is_fifo(record: Path) -> None:
    record.unlink()
    os.mkfifo(record)


def _is_folder(record: Path) -> None:
    record.unlink()
    record.mkdir()


def _is_huge(record: Path) -> None:
    with record.open("r+b") as file:
        file.truncate(10 << 30)


def _leads_away(record: Path) -> None:
    record.unlink()
    record.symlink_to("/dev/zero")


def _is_file(record: Path) -> None:
    shutil.rmtree(record.parent)
    record.parent.write_text("no folder")


@pytest.mark.parametrize(
    "tampered",
    [
        _is_fifo, _is_folder, _is_huge, _leads_away, _is_file,
        lambda record: record.write_text("[" * 100_000),
        lambda record: record.write_bytes(b"\xff\xfe"),
        lambda record: (record.parent.parent / "\u00b2-1").mkdir(),
        lambda record: (record.parent.parent / ("9" * 200 + "-1")).mkdir(),
        lambda record: (record.parent.parent / "99999999-\u0663").symlink_to("/"),
        lambda record: (record.parent.parent / "batch").mkdir(),
        lambda record: (record.parent.parent / "moving").write_text("x"),
        lambda record: (record.parent.parent / "closing").symlink_to("/etc"),
        lambda record: record.write_text(re.sub(r'"time":[\d.]+', '"time":1e300', record.read_text())),
        lambda record: record.write_text(re.sub(r'"time":[\d.]+', '"time":-1e18', record.read_text())),
        lambda record: record.write_text(record.read_text().replace('"victim"', '"a\\u0000b"')),
        lambda record: record.write_text(record.read_text().replace('"victim"', '""')),
        lambda record: record.write_text(record.read_text().replace('"victim"', json.dumps("x/" * 50_000))),
        lambda record: record.write_text(record.read_text().replace('"put"', '"move"')),
        lambda record: record.write_text(record.read_text().replace('"put"', '"directory"')),
        lambda record: record.write_text(record.read_text().replace('"kept":true', '"kept":false')),
    ],
)  # fmt: skip
def test_tampered_records_harm_nothing(tmp_path, tampered):
    """What cannot be read is no change; what says something else is refused, or is a change of this workspace alone."""
    root, state = tmp_path / "root", tmp_path / "state" / "toolcall-adapter"
    root.mkdir()
    tampered(_record(root, state))
    listed = adapter("undo", "--list", root, env={**os.environ, "XDG_STATE_HOME": str(state.parent)})
    assert (listed.returncode, listed.stderr) == (0, "")
    with Workspace(root, approve="yolo", state=state) as workspace:
        with suppress(ToolError):
            workspace.undo()
        assert workspace.run("write_file", {"path": "other", "content": "more"}).ok
    assert (root / "other").read_text() == "more"
    assert {path.name for path in tmp_path.iterdir()} == {"root", "state"}
