"""Records of changes that someone tampered with: nothing outside this workspace is changed, and nothing crashes."""

import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.workspace import Workspace
from adapter.workspace.changes import journal
from tests.command_line import adapter


def _record(root: Path, state: Path) -> Path:
    """Record a change of `victim`, and return the record."""
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
        lambda record: (record.parent.parent / "batch").write_text("9" * 6_000),
        lambda record: (record.parent.parent / "moving").write_text("x"),
        lambda record: (record.parent.parent / "closing").symlink_to("/etc"),
        lambda record: record.write_text(re.sub(r'"time":[\d.]+', '"time":1e300', record.read_text())),
        lambda record: record.write_text(re.sub(r'"time":[\d.]+', '"time":-1e18', record.read_text())),
        lambda record: record.write_text(record.read_text().replace('"victim"', '"a\\u0000b"')),
        lambda record: record.write_text(record.read_text().replace('"victim"', '""')),
        lambda record: record.write_text(record.read_text().replace('"victim"', json.dumps("x/" * 50_000))),
        lambda record: record.write_text(record.read_text().replace('"victim"', json.dumps("x/" * 2_000_000))),
        lambda record: record.write_text(re.sub('"summary":"', '"summary":"' + "x" * 3_000_000, record.read_text())),
        lambda record: record.write_text(
            re.sub(r'"steps":\[', '"steps":[' + '{"kind":"directory","path":"a"},' * 200_000, record.read_text())
        ),
        lambda record: record.write_text(record.read_text().replace('"put"', '"move"')),
        lambda record: record.write_text(record.read_text().replace('"put"', '"directory"')),
        lambda record: record.write_text(record.read_text().replace('"kept":true', '"kept":false')),
    ],
)  # fmt: skip
def test_tampered_records_are_harmless(tmp_path, tampered):
    """Unreadable records are ignored. Forged ones are refused, or change only this workspace."""
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


def test_only_records_expire(tmp_path):
    """The state folder also has the pinned definitions of MCP servers, and the notes of all projects."""
    state = tmp_path / "state"
    old = [state / ("0" * 16), state / "mcp", state / "projects"]
    for folder in old:
        folder.mkdir(parents=True)
        (folder / "x.json").write_text("{}")
        os.utime(folder, (0, 0))
    (tmp_path / "root").mkdir()
    _record(tmp_path / "root", state)
    assert [folder.exists() for folder in old] == [False, True, True]


def test_a_change_of_too_many_paths_is_refused(tmp_path, monkeypatch):
    """Its record could not be read for a repair, so nothing is changed."""
    monkeypatch.setattr(journal, "MAX_STEPS_BYTES", 200)
    with Workspace(tmp_path, approve="yolo", state=tmp_path / ".." / f"{tmp_path.name}-state") as workspace:
        refused = workspace.run("write_file", {"path": "/".join("abcdef"), "content": "x"})
    assert "cannot be recorded" in (refused.error or "")
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    """It would take all memory, and the journal writes none."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    record = _record(root, state)
    record.write_text(record.read_text() + " " * 4096)
    for limit, count in ((record.stat().st_size, 2), (record.stat().st_size - 1, 1)):
        monkeypatch.setattr(journal, "MAX_STEPS_BYTES", limit)
        with Workspace(root, approve="yolo", state=state) as workspace:
            assert len(workspace.history.list_undoable_changes()) == count


def _forge(root: Path, state: Path, path: str, content: str) -> Path:
    """Forge the newest record so that undoing it writes ``content`` to ``path``."""
    with Workspace(root, approve="yolo", state=state) as workspace:
        assert workspace.run("write_file", {"path": "victim", "content": content}).ok
        assert workspace.run("delete_file", {"path": "victim"}).ok
    record = max(state.rglob("record.json"))
    record.write_text(record.read_text().replace('"victim"', json.dumps(path)))
    return record


@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", ".GIT/hooks/pre-commit", "sub/.git/config", ".git./hooks/x", "git~1/hooks/post-merge"],
)
@pytest.mark.parametrize("approve", ["yolo", "callable"])
def test_undo_never_writes_git_data(tmp_path, path, approve):
    root, state = tmp_path / "root", tmp_path / "state" / "toolcall-adapter"
    (root / ".git/hooks").mkdir(parents=True)
    (root / "sub/.git").mkdir(parents=True)
    _forge(root, state, path, "#!/bin/sh\nid > /tmp/pwned\n")
    before = sorted(root.rglob("*"))
    with (
        Workspace(root, approve=(lambda _: True) if approve == "callable" else "yolo", state=state) as workspace,
        pytest.raises(ToolError, match="git's own data"),
    ):
        workspace.history.undo()
    refused = adapter("undo", root, env={**os.environ, "XDG_STATE_HOME": str(state.parent)})
    assert "git's own data" in refused.stderr
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("path", [".envrc", ".vscode/tasks.json", "src/AGENTS.md", ".opencode/plugin/x.js"])
def test_undo_asks_before_it_writes_files_that_run_later(tmp_path, path):
    root, state = tmp_path / "root", tmp_path / "state" / "toolcall-adapter"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    asked = []

    def approve(request):
        asked.append(request)
        return request.tool != "undo"

    with Workspace(root, approve="yolo", state=state) as workspace:
        assert workspace.run("write_file", {"path": path, "content": "run me\n"}).ok
        assert workspace.run("delete_file", {"path": path}).ok
        session = workspace.history.session
    with Workspace(root, approve="auto-edit", ask=approve, state=state) as workspace:
        workspace.history.session = session
        with pytest.raises(ToolError, match="did not approve"):
            workspace.undo()
    assert [request.paths for request in asked] == [(path,)]
    assert asked[0].caution
    assert "+run me" in asked[0].diff
    assert not (root / path).exists()
    refused = adapter("undo", root, env={**os.environ, "XDG_STATE_HOME": str(state.parent)})
    assert "needs your approval at a terminal" in refused.stderr
    assert not (root / path).exists()


def test_undo_of_an_ordinary_file_is_not_asked(tmp_path):
    def refuse(_):
        raise AssertionError

    with Workspace(tmp_path / ".", approve="auto-edit", ask=refuse, state=tmp_path / "s") as workspace:
        assert workspace.run("write_file", {"path": "a.txt", "content": "a\n"}).ok
        workspace.undo()
    assert not (tmp_path / "a.txt").exists()


def test_recovery_never_renames_into_git_data(tmp_path):
    root, state = tmp_path / "root", tmp_path / "state" / "toolcall-adapter"
    (root / ".git/hooks").mkdir(parents=True)
    (root / "evil.sh").write_text("#!/bin/sh\n")
    _record(root, state)
    store = max(state.rglob("record.json")).parent.parent
    (store / "moving").mkdir()
    step = {"kind": "move", "path": ".git/hooks/pre-commit", "destination": "evil.sh"}
    record = {"summary": "x", "session": "s", "time": 1, "steps": [step]}
    (store / "moving" / "record.json").write_text(json.dumps(record))
    with Workspace(root, approve="yolo", state=state) as workspace:
        assert workspace.run("write_file", {"path": "other", "content": "x"}).ok
    assert not list((root / ".git/hooks").iterdir())
    assert (root / "evil.sh").exists()


def test_forged_batch_does_not_restore_files_that_run_later(tmp_path):
    root, state = tmp_path / "root", tmp_path / "state" / "toolcall-adapter"
    root.mkdir()
    record = _forge(root, state, ".envrc", "run me\n")
    (record.parent.parent / "batch").write_text("0")
    with Workspace(root, approve="yolo", state=state) as workspace:
        assert any("use `adapter undo`" in note for note in workspace.recovered)
    assert not (root / ".envrc").exists()
