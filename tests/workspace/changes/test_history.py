"""Changes of several files, previews, batches, undo, and files that other programs changed."""

import json
import os
from pathlib import Path

import pytest

from adapter.core.errors import EditError, ToolError
from adapter.core.events import ToolCall
from adapter.core.turn import Turn
from adapter.tools.operations import Delete, FileEdit, FilesPatched, Move, Patch, PatchFiles
from adapter.workspace import Workspace
from adapter.workspace.changes.undo_plan import MAX_SHOWN_BYTES
from tests.workspace.changes.crashing import SCENARIOS, content_of, lay_out
from tests.workspace.conditions import needs_descriptors


@pytest.fixture
def stocked(directory):
    lay_out(directory)
    return directory


def turn(*calls):
    made = tuple(ToolCall(f"id{index}", name, arguments, raw="") for index, (name, arguments) in enumerate(calls))
    return Turn("", "", made, (), made)


EDIT = ("apply_edit", {"path": "a.txt", "old_text": "a2", "new_text": "A2"})
WRITE = ("write_file", {"path": "new/f.txt", "content": "x\n"})
DELETE = ("delete_file", {"path": "src", "recursive": True})
MISS = ("apply_edit", {"path": "a.txt", "old_text": "absent", "new_text": "x"})


# ------------------------------------------------------------------- several files


def test_changes_of_several_files_are_atomic(workspace, stocked):
    """Updated, added, deleted and moved files, with their modes and one diff."""
    outcome = workspace.perform(SCENARIOS["files"])
    assert isinstance(outcome, FilesPatched)
    assert outcome.done == (
        "updated a.txt",
        "updated src/b.txt",
        "added new/deep/c.txt",
        "deleted src/gone.txt",
        "moved src/d.txt to moved/d.txt",
    )
    assert (stocked / "a.txt").read_text() == "a1\nA2\na3\n"
    assert (stocked / "a.txt").stat().st_mode & 0o777 == 0o640
    assert not (stocked / "src" / "gone.txt").exists()
    assert (stocked / "moved" / "d.txt").read_text() == "d\n"
    for line in ("-a2\n+A2\n", "+++ b/new/deep/c.txt\n", "rename from src/d.txt\nrename to moved/d.txt\n"):
        assert line in outcome.diff


def test_failed_edits_are_all_named_and_none_applied(workspace, stocked):
    before = content_of(stocked)
    edits = (
        FileEdit("a.txt", patches=(Patch("a2", "A2"),)),
        FileEdit("src/b.txt", patches=(Patch("nothing like it", "x"),)),
        FileEdit("a.txt", "add", content=""),
        FileEdit("src/gon.txt", "delete"),
        FileEdit("src/d.txt", moved_to="src/gone.txt"),
    )
    with pytest.raises(EditError) as caught:
        workspace.perform(PatchFiles(edits))
    assert len(caught.value.failures) == 4
    for said in (
        "src/b.txt: ",
        "already exists",
        "did you mean 'src/gone.txt'",
        "already exists",
        "No file was changed",
    ):
        assert said in str(caught.value)
    assert content_of(stocked) == before


def test_second_edit_of_a_file_sees_the_first(workspace, stocked):
    """Also after a move, or after deleting and creating it again."""
    edits = (
        FileEdit("a.txt", patches=(Patch("a2", "A2"),), moved_to="b.txt"),
        FileEdit("b.txt", patches=(Patch("A2", "B2"),)),
        FileEdit("src/gone.txt", "delete"),
        FileEdit("src/gone.txt", "add", content="back\n"),
    )
    workspace.perform(PatchFiles(edits))
    assert (stocked / "b.txt").read_text() == "a1\nB2\na3\n"
    assert (stocked / "b.txt").stat().st_mode & 0o777 == 0o640
    assert not (stocked / "a.txt").exists()
    assert (stocked / "src" / "gone.txt").read_text() == "back\n"
    workspace.undo()
    assert (stocked / "a.txt").read_text() == "a1\na2\na3\n"


def test_deletes_among_edits_need_approval(stocked):
    """The most dangerous edit decides."""
    with Workspace(stocked, approve="auto-edit") as workspace:
        workspace.perform(PatchFiles((FileEdit("a.txt", patches=(Patch("a2", "A2"),)),)))
        with pytest.raises(ToolError, match="approval"):
            workspace.perform(PatchFiles((FileEdit("a.txt", "delete"),)))


# ------------------------------------------------------------------------- preview


@pytest.mark.parametrize("call", [EDIT, WRITE, DELETE, ("move_file", {"source": "src", "destination": "x/y"})])
def test_preview_matches_run_without_changes(workspace, stocked, call):
    before = content_of(stocked)
    preview = workspace.preview(*call)
    assert preview.ok
    assert content_of(stocked) == before
    assert workspace.run(*call).diff == preview.diff
    assert workspace.changes()[0].summary == preview.content


def test_preview_of_failing_call_fails(workspace, stocked):
    assert workspace.preview(*MISS).content == workspace.run(*MISS).content


# --------------------------------------------------------------------------- batch


def test_batch_applies_all_calls(workspace, stocked):
    """Each call has a result, and sees the effect of the calls before it."""
    results = workspace.run_calls(turn(EDIT, WRITE, ("read_file", {"path": "a.txt"})), atomic=True)
    assert [result.ok for result in results] == [True, True, True]
    assert "A2" in results[2].content
    assert [result.call_id for result in results] == ["id0", "id1", "id2"]


@pytest.mark.parametrize("bad", [MISS, ("nope", {}), ("run_command", {"command": "touch ran", "cwd": "."})])
def test_batch_with_failing_call_changes_nothing(workspace, stocked, bad):
    """Each result reports it. Commands, which cannot be undone, are not run."""
    before = content_of(stocked)
    stamp = (stocked / "a.txt").stat().st_mtime_ns
    results = workspace.run_calls(turn(EDIT, WRITE, DELETE, bad), atomic=True)
    assert not any(result.ok for result in results)
    assert "no call of this answer took effect" in results[0].content
    assert content_of(stocked) == before
    assert (stocked / "a.txt").stat().st_mtime_ns == stamp
    assert workspace.changes() == ()
    assert workspace.run("write_file", {"path": "a.txt", "content": "mine\n"}).ok


def test_killed_batch_is_rolled_back(stocked):
    """Also its complete changes."""
    before = content_of(stocked)
    child = os.fork()
    if child == 0:
        workspace = Workspace(stocked, approve=lambda approval: approval.effect != "delete" or os._exit(9))
        workspace.run_calls(turn(EDIT, WRITE, DELETE), atomic=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 9 << 8
    assert content_of(stocked) != before
    with Workspace(stocked) as workspace:
        assert "rolled back" in workspace.recovered[0]
        assert content_of(stocked) == before


# ---------------------------------------------------------------------------- undo


def test_every_kind_of_change_is_undone(workspace, stocked):
    """From the newest to the start of the session, including times and modes."""
    os.utime(stocked / "a.txt", ns=(1, 10**18))
    trees = []
    order = [SCENARIOS[name] for name in ("patch", "write", "copy", "directory", "create", "delete file")]
    order += [Move("new", "later/new"), Delete("src", recursive=True)]
    for operation in order:
        trees.append(content_of(stocked))
        workspace.perform(operation)
    workspace.run("delete_file", {"path": "lib", "recursive": True})
    workspace.undo()
    assert len(workspace.changes()) == len(order)
    while trees:
        assert workspace.undo().change.number
        assert content_of(stocked) == trees.pop()
    assert (stocked / "a.txt").stat().st_mtime_ns == 10**18
    with pytest.raises(ToolError, match="nothing to undo"):
        workspace.undo()


def test_undo_keeps_other_edits_of_the_file(workspace, stocked):
    """A three-way merge reverts only the tool's lines."""
    path = stocked / "long.txt"
    path.write_text("".join(f"line {number}\n" for number in range(40)))
    workspace.run("apply_edit", {"path": "long.txt", "old_text": "line 5\n", "new_text": "five\nand more\n"})
    path.write_text(path.read_text().replace("line 30", "thirty"))
    undone = workspace.undo()
    assert "line 32 changed" in undone.notes[0]
    assert "+line 5" in undone.diff
    assert path.read_text() == "".join(f"line {n}\n" for n in range(40)).replace("line 30", "thirty")


def test_undo_of_a_file_that_is_too_large_to_merge_is_refused(workspace, stocked):
    """Its later edits would be lost. Nothing reads it as a whole."""
    path = stocked / "a.txt"
    workspace.run("apply_edit", {"path": "a.txt", "old_text": "a2", "new_text": "A2"})
    path.write_text(path.read_text() + "x" * MAX_SHOWN_BYTES)
    before = path.read_text()
    with pytest.raises(ToolError, match=r"a\.txt was changed since"):
        workspace.undo()
    assert path.read_text() == before


def test_undo_of_a_created_file_that_is_gone_says_so(workspace, stocked):
    workspace.run(*WRITE)
    (stocked / "new" / "f.txt").unlink()
    assert "new/f.txt was already gone" in workspace.undo().notes


def test_undo_that_would_lose_edits_is_refused(workspace, stocked):
    """The changed lines are named. Nothing is done, also not in other files of the change."""
    workspace.perform(SCENARIOS["files"])
    (stocked / "a.txt").write_text("a1\nA2 and mine\na3\n")
    (stocked / "new" / "deep" / "c.txt").write_text("mine\n")
    before = content_of(stocked)
    with pytest.raises(ToolError, match=r"a.txt was changed since in the same lines \(line 2 changed\)") as caught:
        workspace.undo()
    assert "new/deep/c.txt was created and has been changed since" in str(caught.value)
    assert content_of(stocked) == before
    assert len(workspace.changes()) == 1


def test_stored_content_is_verified_before_undo(workspace, stocked):
    """The stored file can be changed by a program that has it open."""
    with (stocked / "a.txt").open("r+") as old:
        workspace.run(*EDIT)
        old.write("changed\n")
    with pytest.raises(ToolError, match="by a program that had it open"):
        workspace.undo()


def test_failed_rollback_of_batch_is_reported(stocked):
    """Another program changed a file between two calls."""

    def meddle(approval):
        if approval.effect == "delete":
            (stocked / "a.txt").write_text("mine\n")
        return approval.effect != "delete"

    with Workspace(stocked, approve=meddle) as workspace:
        results = workspace.run_calls(turn(EDIT, DELETE), atomic=True)
    assert "could not be undone: edit a.txt" in results[0].content
    assert (stocked / "a.txt").read_text() == "mine\n"


def test_undo_keeps_files_of_others(workspace, stocked):
    """A directory that was created for a file is removed only if it is empty."""
    workspace.run(*WRITE)
    (stocked / "new" / "mine").write_text("mine")
    workspace.undo()
    assert [path.name for path in (stocked / "new").iterdir()] == ["mine"]


def test_undo_applies_to_own_session(stocked):
    with Workspace(stocked, approve="yolo") as one, Workspace(stocked, approve="yolo") as other:
        one.run(*EDIT)
        other.run(*WRITE)
        assert one.undo().change.summary == "edit a.txt"
        assert (stocked / "new" / "f.txt").exists()


def test_oldest_changes_are_dropped(workspace, stocked, monkeypatch):
    """The number and the bytes are limited. A change that is too large is reported."""
    monkeypatch.setattr("adapter.workspace.changes.journal.MAX_CHANGES", 3)
    for number in range(5):
        workspace.run("write_file", {"path": f"f{number}", "content": "x"})
    assert [change.paths for change in workspace.changes()] == [("f4",), ("f3",), ("f2",)]
    monkeypatch.setattr("adapter.workspace.changes.journal.MAX_KEPT_BYTES", 3)
    result = workspace.run("delete_file", {"path": "a.txt"})
    assert "too large to store" in result.notes[0]
    with pytest.raises(ToolError, match="too large to store"):
        workspace.undo()


def test_journal_is_outside_and_inaccessible(tmp_path, monkeypatch):
    """If the workspace contains the records, no tool sees or changes them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".local" / "state"))
    with Workspace(tmp_path, approve="yolo") as workspace:
        workspace.run("write_file", {"path": "f.txt", "content": "x"})
        listing = workspace.run("list_directory", {"path": ".local/state"}).content
        assert "toolcall-adapter" not in listing
        assert "f.txt" in workspace.run("list_directory", {"path": "."}).content
        assert "record.json" not in workspace.run("find_files_glob", {"pattern": "**/*"}).content
        for path in (".local/state/toolcall-adapter", ".local/state/TOOLCALL-adapter", ".local"):
            assert "the change journal" in str(workspace.run("delete_file", {"path": path, "recursive": True}).error)
        assert not workspace.run("read_file", {"path": ".local/state/toolcall-adapter"}).ok
        assert workspace.undo()


def test_changes_work_without_a_state_folder(directory, monkeypatch, tmp_path):
    """A file is in the place of the folder."""
    (tmp_path / "state").write_text("")
    with Workspace(directory, approve="yolo", state=tmp_path / "state") as workspace:
        assert "until the program ends" in workspace.run(*WRITE).notes[0]
        workspace.undo()
    assert list(directory.iterdir()) == []


# --------------------------------------------------------------------------- stale


def test_overwriting_file_changed_since_read_is_refused(run, refusal, stocked):
    """The message names the changed lines and the next step."""
    run("read_file", path="a.txt")
    (stocked / "a.txt").write_text("a1\na2\nmine\n")
    message = refusal("write_file", path="a.txt", content="all new\n")
    assert "line 3 changed" in message
    assert "read it again" in message
    assert (stocked / "a.txt").read_text() == "a1\na2\nmine\n"
    run("read_file", path="a.txt")
    run("write_file", path="a.txt", content="all new\n")
    run("write_file", path="a.txt", content="again\n")
    (stocked / "a.txt").write_bytes(b"\x00\x01\x02")
    assert "it has 3 bytes now" in refusal("write_file", path="a.txt", content="new\n")


def test_edits_of_changed_file_require_exact_match(run, refusal, stocked):
    """A fuzzy match in a text that the model has not read is rejected."""
    run("read_file", path="a.txt")
    (stocked / "a.txt").write_text("a1\n    a2 = call(x)\na3\nmore\n")
    refused = refusal("apply_edit", path="a.txt", old_text="a2  =  call(x)", new_text="b")
    assert "has changed since you read it" in refused
    run("apply_edit", path="a.txt", old_text="a2 = call(x)", new_text="b")
    assert (stocked / "a.txt").read_text() == "a1\n    b\na3\nmore\n"


TWINS = """def load(path):
    text = read(path)
    return parse(text)


def save(path, rows):
    text = render(rows)
    return write(path, text)


def load_all(paths):
    text = read(paths)
    return parse(text)
"""
"""Two functions end with the same line."""
LOAD, _, REST = TWINS.partition("\n\n\n")


def test_edit_of_lines_that_the_model_has_changed_since_is_merged(run, stocked):
    """The old text matched the version that was read, before the model's own edit."""
    (stocked / "a.py").write_text(TWINS)
    run("read_file", path="a.py")
    run("apply_edit", path="a.py", old_text="    text = read(path)\n", new_text="    text = fetch(path, retries=3)\n")
    result = run("apply_edit", path="a.py", old_text=LOAD, new_text=LOAD.replace("parse", "scan"))
    assert (stocked / "a.py").read_text() == TWINS.replace("read(path)", "fetch(path, retries=3)").replace(
        "parse", "scan", 1
    )
    assert "merged with the changes made since" in result


def test_edit_of_lines_that_the_model_has_removed_changes_no_similar_line(run, refusal, stocked):
    """The line to change remains in another function, which has the same shape."""
    (stocked / "a.py").write_text(TWINS)
    run("read_file", path="a.py")
    run("apply_edit", path="a.py", old_text=f"{LOAD}\n\n\n", new_text="")
    before = (stocked / "a.py").read_text()
    message = refusal("apply_edit", path="a.py", old_text=LOAD, new_text=LOAD.replace("parse", "scan"))
    assert "of the version that you read" in message
    assert (stocked / "a.py").read_text() == before


def test_line_number_of_the_read_version_selects_no_other_twin(run, refusal, stocked):
    """The first of two equal lines is gone, so that the line that is left matches exactly."""
    (stocked / "a.py").write_text(TWINS)
    run("read_file", path="a.py")
    (stocked / "a.py").write_text(REST)
    patch = {"old_text": "    return parse(text)", "new_text": "    return scan(text)", "start_line": 3}
    assert "differ now" in refusal("apply_patch", path="a.py", patches=[patch])
    run("read_file", path="a.py")
    run("apply_patch", path="a.py", patches=[patch])


def test_overwriting_unread_file_is_noted(workspace, stocked):
    """The tool's document permits it. The note is for the user."""
    result = workspace.run("write_file", {"path": "a.txt", "content": "new\n"})
    assert result.ok
    assert "without having been read" in result.notes[0]


@pytest.mark.parametrize("forged", ["../secret", "/etc/hostname", ".git/config", "link/secret", "a/../../secret"])
def test_forged_record_stays_inside_workspace(tmp_path, forged):
    """Its paths are resolved like all others, so `undo` cannot write elsewhere."""
    root, state = tmp_path / "root", tmp_path / "state"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text("kept")
    (tmp_path / "secret").write_text("kept")
    (root / "link").symlink_to(tmp_path)
    with Workspace(root, approve="yolo", state=state) as workspace:
        for text in ("one", "two"):
            assert workspace.run("write_file", {"path": "victim", "content": text}).ok
        for record in state.rglob("record.json"):
            record.write_text(record.read_text().replace('"victim"', json.dumps(forged)))
        with pytest.raises(ToolError):
            workspace.undo()
    assert (tmp_path / "secret").read_text() == (root / ".git" / "config").read_text() == "kept"
    assert (root / "victim").read_text() == "two"


def test_undo_in_a_later_session_names_the_earlier_change(stocked):
    with Workspace(stocked, approve="yolo") as workspace:
        assert workspace.run(*WRITE).ok
    with Workspace(stocked, approve="yolo") as workspace:
        with pytest.raises(ToolError, match=r"earlier session is: create new/f\.txt\. To undo it, use `adapter undo`"):
            workspace.undo()
        assert workspace.history.undo().change.summary == "create new/f.txt"
        with pytest.raises(ToolError, match="the history of this workspace is empty"):
            workspace.undo()


@needs_descriptors
@pytest.mark.parametrize("name", ["one-edit", "new-file", "deleted-file", "several-files"])
def test_undo_record_is_on_the_disk_before_the_file_changes(stocked, monkeypatch, name):
    """The record, its folder and the journal are synced before the first rename in the workspace."""
    calls = {
        "one-edit": EDIT,
        "new-file": ("write_file", {"path": "new.txt", "content": "x\n"}),
        "deleted-file": ("delete_file", {"path": "a.txt"}),
        "several-files": WRITE,
    }
    with Workspace(stocked, approve="yolo") as workspace:
        synced: list[str] = []
        fsync, rename, link = os.fsync, os.rename, os.link

        def path_of(descriptor: int) -> str:
            return str(Path(f"/proc/self/fd/{descriptor}").readlink())

        def spy_fsync(descriptor):
            synced.append(path_of(descriptor))
            fsync(descriptor)

        def spy(do):
            def call(source, target, *, src_dir_fd, dst_dir_fd, **more):
                if not str(target).startswith(".adapter-") and path_of(dst_dir_fd).startswith(workspace.root):
                    synced.append("CHANGE")
                do(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, **more)

            return call

        monkeypatch.setattr(os, "fsync", spy_fsync)
        monkeypatch.setattr(os, "rename", spy(rename))
        monkeypatch.setattr(os, "link", spy(link))
        assert workspace.run(*calls[name]).ok
        monkeypatch.undo()
        store = workspace.history.store.directory
    before = synced[: synced.index("CHANGE")] if "CHANGE" in synced else synced
    assert any(path.endswith("staging/record.json.new") for path in before)
    assert f"{store}/staging" in before
    assert store in before
