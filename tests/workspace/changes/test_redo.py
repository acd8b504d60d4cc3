"""Redo of undone changes, all or nothing, until a new change is made."""

import shutil
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import Delete, Move
from adapter.workspace import Workspace
from adapter.workspace.workspace_context import open_context
from tests.apart import apart
from tests.workspace.changes.crashing import SCENARIOS, Failing, Killing, content_of, intercepted, killed, lay_out
from tests.workspace.changes.crashing import perform as make

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
IN_MEMORY = Path("/dev/shm")
EDIT = ("apply_edit", {"path": "a.txt", "old_text": "a2", "new_text": "A2"})


@pytest.fixture
def stocked(directory):
    lay_out(directory)
    return directory


def test_every_kind_of_change_is_redone(workspace, stocked):
    """Any number of times, in the original order, with the same diff."""
    order = [SCENARIOS[name] for name in ("patch", "write", "copy", "directory", "create", "files", "delete file")]
    order += [Move("new", "later/new"), Delete("src", recursive=True)]
    (stocked / "a.txt").write_text("a1\na2\na3\n")
    trees = [content_of(stocked)]
    for operation in order:
        with suppress(ToolError):  # "files" edits what "write" has overwritten
            workspace.perform(operation)
            trees.append(content_of(stocked))
    made = [change.summary for change in workspace.changes()]
    for _ in range(2):
        for tree in reversed(trees[:-1]):
            workspace.undo()
            assert content_of(stocked) == tree
        assert workspace.changes() == ()
        for number, tree in enumerate(trees[1:], start=1):
            assert workspace.redo().change.summary == made[-number]
            assert content_of(stocked) == tree
        assert [change.summary for change in workspace.changes()] == made
    with pytest.raises(ToolError, match="nothing to redo"):
        workspace.redo()


def test_redo_is_refused_after_a_new_change(workspace, stocked):
    """Undoing the new change makes redo of it possible."""
    workspace.run(*EDIT)
    workspace.undo()
    workspace.run("write_file", {"path": "b.txt", "content": "b\n"})
    with pytest.raises(ToolError, match="since the last change"):
        workspace.redo()
    workspace.undo()
    assert "+b\n" in workspace.redo().diff


def test_redo_keeps_later_edits_or_is_refused(workspace, stocked):
    """As with undo."""
    path = stocked / "long.txt"
    path.write_text("".join(f"line {number}\n" for number in range(40)))
    workspace.run("apply_edit", {"path": "long.txt", "old_text": "line 5\n", "new_text": "five\n"})
    workspace.undo()
    path.write_text(path.read_text().replace("line 30", "thirty"))
    assert "those edits were kept" in workspace.redo().notes[0]
    assert {"five", "thirty"} <= set(path.read_text().split("\n"))
    workspace.undo()
    path.write_text("all else\n")
    with pytest.raises(ToolError, match=r"not redone: edit long.txt\. long.txt was changed since"):
        workspace.redo()
    assert path.read_text() == "all else\n"


def test_redo_applies_to_own_session(stocked):
    """A failed batch leaves nothing to redo."""
    with Workspace(stocked, approve="yolo") as one, Workspace(stocked, approve="yolo") as other:
        one.run(*EDIT)
        one.undo()
        with pytest.raises(ToolError, match="nothing to redo"):
            other.redo()
        with suppress(KeyError), other._context.history.combine_changes():
            other.run("write_file", {"path": "b.txt", "content": "b\n"})
            raise KeyError
        with pytest.raises(ToolError, match="nothing to redo"):
            other.redo()
        assert one.redo().change.summary == "edit a.txt"


@pytest.fixture
def quick(monkeypatch):
    folder = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    yield folder
    shutil.rmtree(folder)


def files_of(directory):
    """Return the files. An empty directory that could not be removed is ignored."""
    return {name: held for name, held in content_of(directory).items() if held != "directory"}


def turned(directory, what, before):
    """Undo or redo the last change."""
    with open_context(directory) as desk, intercepted(before):
        getattr(desk.history, what)()


@pytest.mark.parametrize("what", ["undo", "redo"])
@pytest.mark.parametrize("fault", ["kill", "error"])
@apart
def test_failure_before_system_call_is_rolled_back(quick, what, fault):
    """After a kill or failure there is one version, no other file, and the step can be repeated."""
    number, hits = 1, 0
    while True:
        directory = quick / str(number)
        directory.mkdir()
        lay_out(directory)
        old = files_of(directory)
        make(directory, "files", lambda _: None)
        new = files_of(directory)
        if what == "redo":
            turned(directory, "undo", lambda _: None)
        if fault == "kill":
            was_hit = killed(partial(turned, directory, what, Killing({number}, 5)))
        else:
            failing = Failing({number}, 28)
            with suppress(ToolError, OSError):
                turned(directory, what, failing)
            was_hit = failing.count >= number
        with open_context(directory) as desk:
            left = files_of(directory)
            assert left in (old, new), number
            back = desk.history.undo if left == new else desk.history.redo
            if fault == "kill" or not was_hit:
                back()
                assert files_of(directory) == (old if left == new else new), number
        shutil.rmtree(directory)
        if not was_hit:
            break
        number, hits = number + 9, hits + 1
    assert hits > 15


def test_net_diff_has_one_diff_per_file(workspace, stocked):
    """From the original to the current content: undone changes are absent, and repeated ones combined."""
    assert workspace.history.render_diff() == ""
    workspace.run(*EDIT)
    workspace.run("apply_edit", {"path": "a.txt", "old_text": "A2", "new_text": "aa2"})
    workspace.run("write_file", {"path": "new/f.txt", "content": "x\n"})
    workspace.run("move_file", {"source": "src", "destination": "lib"})
    workspace.run("apply_edit", {"path": "lib/b.txt", "old_text": "b", "new_text": "B"})
    workspace.run("move_file", {"source": "lib", "destination": "lab"})
    workspace.run("delete_file", {"path": "lab/gone.txt"})
    workspace.run("write_file", {"path": "never", "content": "y\n"})
    workspace.undo()
    (stocked / "a.txt").write_text((stocked / "a.txt").read_text() + "mine\n")
    diff = workspace.history.render_diff(workspace.history.session)
    for piece in (
        "-a2\n+aa2\n a3\n+mine\n",
        "+++ b/new/f.txt\n@@ -0,0 +1 @@\n+x\n",
        "rename from src\nrename to lab\n",
    ):
        assert piece in diff
    assert "--- a/lab/b.txt\n+++ b/lab/b.txt\n@@ -1 +1 @@\n-b\n+B\n" in diff
    assert "-gone\n" in diff
    assert "never" not in diff
    assert diff.count("+++") == 4
