"""What was undone is made again, whole or not at all, as long as nothing new was made."""

import shutil
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import Delete, Move
from adapter.workspace import Workspace
from adapter.workspace.context import open_context
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
    """As often as one likes, in the order in which it was made; the diff is that of the change."""
    order = [SCENARIOS[name] for name in ("patch", "write", "copy", "directory", "create", "files", "delete file")]
    order += [Move("new", "later/new"), Delete("src", recursive=True)]
    (stocked / "a.txt").write_text("a1\na2\na3\n")
    trees = [content_of(stocked)]
    for operation in order:
        with suppress(ToolError):  # "files" edits what "write" has overwritten
            workspace.do(operation)
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


def test_a_new_change_ends_it(workspace, stocked):
    """What was undone before it cannot come back; after an undo of the new one, that one can."""
    workspace.run(*EDIT)
    workspace.undo()
    workspace.run("write_file", {"path": "b.txt", "content": "b\n"})
    with pytest.raises(ToolError, match="since the last one was made"):
        workspace.redo()
    workspace.undo()
    assert "+b\n" in workspace.redo().diff


def test_what_somebody_changed_since_is_kept_or_it_is_refused(workspace, stocked):
    """As with an undo."""
    path = stocked / "long.txt"
    path.write_text("".join(f"line {number}\n" for number in range(40)))
    workspace.run("apply_edit", {"path": "long.txt", "old_text": "line 5\n", "new_text": "five\n"})
    workspace.undo()
    path.write_text(path.read_text().replace("line 30", "thirty"))
    assert "that was kept" in workspace.redo().notes[0]
    assert {"five", "thirty"} <= set(path.read_text().split("\n"))
    workspace.undo()
    path.write_text("all else\n")
    with pytest.raises(ToolError, match=r"not redone: edit long.txt\. long.txt was changed since"):
        workspace.redo()
    assert path.read_text() == "all else\n"


def test_sessions_redo_their_own(stocked):
    """And a batch that failed leaves nothing to redo."""
    with Workspace(stocked, approve="yolo") as one, Workspace(stocked, approve="yolo") as other:
        one.run(*EDIT)
        one.undo()
        with pytest.raises(ToolError, match="nothing to redo"):
            other.redo()
        with suppress(KeyError), other._desk.history.batch():
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
    """An empty directory that could not be removed does no harm."""
    return {name: held for name, held in content_of(directory).items() if held != "directory"}


def turned(directory, what, before):
    """Undo the last change, or redo it."""
    with open_context(directory) as desk, intercepted(before):
        getattr(desk.history, what)()


@pytest.mark.parametrize("what", ["undo", "redo"])
@pytest.mark.parametrize("fault", ["kill", "error"])
@apart
def test_a_fault_before_a_system_call(quick, what, fault):
    """Killed or failing: one version and nothing else in the tree, and the way back is open."""
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


def test_the_net_of_all_changes_is_one_diff_a_file(workspace, stocked):
    """Against what is there now: what was undone is none, what was changed twice is once, a file keeps its origin."""
    assert workspace.history.diff() == ""
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
    diff = workspace.history.diff(workspace.history.session)
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
