"""Deleting, moving and copying trees: links stay links, and nothing is overwritten."""

import os
import subprocess
import sys
import textwrap

import pytest

from adapter.workspace.paths import tree_ops


@pytest.fixture
def tree(directory, tmp_path):
    (directory / "src" / "deep").mkdir(parents=True)
    (directory / "src" / "a.txt").write_text("a")
    (directory / "src" / "deep" / "b.txt").write_text("b")
    (directory / "src" / "link").symlink_to(tmp_path / "secret")
    (directory / "src" / "a.txt").chmod(0o755)
    return directory


def test_move_renames_and_creates_parents(run, tree):
    """C255 to C257, D15: moves were once reported but not done."""
    assert run("move_file", source="src/a.txt", destination="x/y/z.txt") == "Moved src/a.txt to x/y/z.txt."
    assert not (tree / "src" / "a.txt").exists()
    assert (tree / "x" / "y" / "z.txt").read_text() == "a"
    run("move_file", source="src", destination="x/src")
    assert (tree / "x" / "src" / "deep" / "b.txt").read_text() == "b"


def test_copy_leaves_out_link_targets(run, tree):
    """C258 to C260: a link to a secret must not become a copy of it."""
    text = run("copy_file", source="src", destination="out/copy")
    assert (tree / "out" / "copy" / "deep" / "b.txt").read_text() == "b"
    assert not (tree / "out" / "copy" / "link").exists()
    assert "src/link" in text
    assert (tree / "out" / "copy" / "a.txt").stat().st_mode & 0o777 == 0o755
    assert (tree / "src" / "a.txt").read_text() == "a"


def test_delete_removes_links_not_their_targets(run, tree, tmp_path):
    """C252, C253: also inside a tree."""
    (tree / "link").symlink_to("src/a.txt")
    run("delete_file", path="link")
    assert (tree / "src" / "a.txt").exists()
    assert run("delete_file", path="src", recursive=True) == "Deleted src (5 entries)."
    assert (tmp_path / "secret" / "key").read_text() == "hunter2"
    assert not (tree / "src").exists()


def test_directories_need_recursive(refusal, tree):
    """C252, C254: the documented default refuses, also for an empty directory."""
    (tree / "empty").mkdir()
    assert "recursive=true" in refusal("delete_file", path="src")
    assert "recursive=true" in refusal("delete_file", path="empty")
    (tree / "empty" / "one").touch()
    assert "empty is a directory with 1 entry and was not deleted" in refusal("delete_file", path="empty")
    assert (tree / "src" / "a.txt").exists()


@pytest.mark.parametrize("name", ["move_file", "copy_file"])
def test_move_and_copy_never_overwrite(refusal, tree, name):
    """The message has the alternative."""
    (tree / "there").write_text("mine")
    assert "already exists" in refusal(name, source="src/a.txt", destination="there")
    assert "give the full new path, such as src/deep/there" in refusal(name, source="there", destination="src/deep")
    assert (tree / "there").read_text() == "mine"


@pytest.mark.parametrize("name", ["move_file", "copy_file"])
def test_file_is_not_moved_onto_itself(refusal, tree, name):
    """A small model that was told that the file already exists, and to delete it first, deleted it."""
    assert "both source and destination" in refusal(name, source="src/a.txt", destination="./src/a.txt")


@pytest.mark.parametrize("name", ["move_file", "copy_file"])
def test_directory_cannot_be_moved_into_itself(refusal, tree, name):
    assert "inside src; choose" in refusal(name, source="src", destination="src/new/src")
    assert not (tree / "src" / "new").exists()


@pytest.mark.parametrize("name", ["move_file", "copy_file", "delete_file"])
@pytest.mark.parametrize("path", ["nope", "*.txt", "nope?"])
def test_missing_sources_are_named(refusal, name, path):
    """Nothing is created for them. They may have names that no new file may have."""
    arguments = {"path": path} if name == "delete_file" else {"source": path, "destination": "d/x"}
    message = refusal(name, **arguments)
    assert f"{path} does not exist" in message
    assert ("patterns are not expanded" in message) == ("*" in path)


@pytest.mark.parametrize("name", ["move_file", "copy_file"])
def test_new_path_with_a_slash_at_its_end_is_no_file(run, refusal, tree, name):
    """The model means a directory that is not there yet."""
    assert "such as lib/a.txt" in refusal(name, source="src/a.txt", destination="lib/")
    assert (tree / "src" / "a.txt").exists()
    run(name, source="src/deep", destination="lib/")
    assert (tree / "lib").is_dir()


def test_failed_copy_leaves_nothing(refusal, tree, monkeypatch):
    """The copy, with its new parents, appears completely or not at all."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        message = refusal("copy_file", source="src", destination="out/copy")
    assert message.startswith("No space left on device: src was not copied")
    assert sorted(path.name for path in tree.iterdir()) == ["src"]


def test_too_large_copy_is_refused_at_once(refusal, tree, monkeypatch):
    with (tree / "src" / "huge").open("wb") as file:
        file.truncate(20 * 1024**3)
    monkeypatch.setattr(tree_ops, "CHUNK_BYTES", 0)  # whoever began to copy would copy nothing and be done
    assert "the copy is larger than" in refusal("copy_file", source="src/huge", destination="copy")
    assert sorted(path.name for path in tree.iterdir()) == ["src"]


def test_create_directory_is_idempotent(run, refusal, tree):
    """C264, C265: mkdir -p."""
    assert run("create_directory", path="m/n/o") == "Created the directory m/n/o."
    assert run("create_directory", path="m/n/o") == "m/n/o already exists."
    assert (tree / "m" / "n" / "o").is_dir()
    assert "not a directory" in refusal("create_directory", path="src/a.txt")
    assert "not a directory" in refusal("create_directory", path="src/a.txt/x")


FULL_DISK = """
    import os, pathlib, sys
    from adapter.workspace import Workspace
    disk = pathlib.Path(sys.argv[1])
    (disk / "ws/src/deep").mkdir(parents=True)
    (disk / "ws/src/deep/big").write_bytes(bytes(3_000_000))
    (disk / "ws/a.txt").write_bytes(bytes(2_000_000))
    (disk / "ws/b.txt").write_bytes(bytes(2_000_000))
    def fill():
        with (disk / "filler").open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4_096))
            except OSError:
                pass
    asked = []
    def approve(approval):
        asked.append(approval.summary)
        return "b.txt" not in approval.summary
    with Workspace(disk / "ws", approve=approve, state=disk / "state") as workspace:
        def run(tool, **arguments):
            return workspace.run(tool, arguments)
        assert run("write_file", path="first", content="").ok
        assert run("delete_file", path="first").content == "Deleted first."
        workspace.undo()
        fill()
        assert not run("write_file", path="new.txt", content="x" * 100_000).ok
        result = run("delete_file", path="a.txt")
        assert result.content == (
            "Deleted a.txt.\\n(note: this cannot be undone: the disk was too full to record it)"
        ), result.content
        assert run("write_file", path="new.txt", content="x" * 100_000).ok
        assert workspace.changes()[0].summary == "create new.txt"
        fill()
        before = os.statvfs(disk).f_bavail
        assert not run("delete_file", path="b.txt").ok
        assert (disk / "ws/b.txt").stat().st_size == 2_000_000
        assert run("delete_file", path="src", recursive=True).ok
        assert (os.statvfs(disk).f_bavail - before) * os.statvfs(disk).f_frsize >= 3_000_000
        print(*asked, sep="\\n")
        print(*sorted(os.listdir(disk / "ws")), sep="\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system")
def test_delete_works_on_a_full_disk(tmp_path):
    """Nothing can be stored for undo, so the user must approve, and the result has a note. Other changes work."""
    script = textwrap.dedent(FULL_DISK)
    mount = 'mount -t tmpfs -o size=10m none "$2" && exec "$0" -c "$1" "$2"'
    words = ["unshare", "-rm", "sh", "-c", mount, sys.executable, script, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "create first",
        "delete first",
        "create new.txt",
        "delete a.txt for good (the disk is full: no undo)",
        "create new.txt",
        "delete b.txt for good (the disk is full: no undo)",
        "delete the directory src and the 2 entries in it for good (the disk is full: no undo)",
        "b.txt",
        "first",
        "new.txt",
    ]
