"""What a file has beside its bytes, on a real file system: extended attributes, access lists, further names."""

import os
import struct

import pytest

from adapter import Workspace
from adapter.core.errors import ToolError
from adapter.workspace.paths import tree_ops

ACCESS_LIST = "system.posix_acl_access"
DEFAULT_LIST = "system.posix_acl_default"
USER_OBJECT, USER, GROUP_OBJECT, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20


def access_list(user=None):
    """A POSIX access list as Linux stores it: the owner may all, ``user`` may read, others nothing."""
    nobody = 0xFFFFFFFF
    entries = [(USER_OBJECT, 6, nobody), (GROUP_OBJECT, 4, nobody), (MASK, 4, nobody), (OTHER, 0, nobody)]
    if user is not None:
        entries.insert(1, (USER, 4, user))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def directory(tmp_path):
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(tmp_path, directory):
    with Workspace(directory, approve="yolo", state=tmp_path / "state") as workspace:
        yield workspace


def set_or_skip(path, name, value):
    if not hasattr(os, "setxattr"):
        pytest.skip("this system has no extended attributes")
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"{name} cannot be set on this file system: {error}")


CHANGES = {
    "edit": ("apply_edit", {"path": "f", "old_text": "one", "new_text": "two"}),
    "overwrite": ("write_file", {"path": "f", "content": "two\n"}),
    "several": ("apply_patch", {"patches": "*** Begin Patch\n*** Update File: f\n-one\n+two\n*** End Patch"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_extended_attributes_survive_a_change(workspace, directory, change):
    """Also the undo of it."""
    path = directory / "f"
    path.write_text("one\n")
    set_or_skip(path, "user.origin", b"https://example.org/\0\xff")
    set_or_skip(path, "user.empty", b"")
    result = workspace.run(*CHANGES[change])
    assert result.ok, result.content
    assert path.read_text() == "two\n"
    assert os.getxattr(path, "user.origin") == b"https://example.org/\0\xff"
    assert os.getxattr(path, "user.empty") == b""
    workspace.undo()
    assert path.read_text() == "one\n"
    assert os.getxattr(path, "user.origin") == b"https://example.org/\0\xff"


def test_extended_attributes_survive_an_undo_that_merges(workspace, directory):
    """The file was changed since; what it has beside its bytes is what it has then."""
    path = directory / "f"
    path.write_text("one\n" + "x\n" * 20)
    workspace.run(*CHANGES["edit"])
    path.write_text(path.read_text() + "mine\n")
    set_or_skip(path, "user.origin", b"mine")
    workspace.undo()
    assert path.read_text().startswith("one\n")
    assert path.read_text().endswith("mine\n")
    assert os.getxattr(path, "user.origin") == b"mine"


def test_extended_attributes_move_with_an_edited_file(workspace, directory):
    """An edit that also moves the file makes a new one with all of the old one's."""
    (directory / "f").write_text("one\n")
    set_or_skip(directory / "f", "user.origin", b"here")
    patch = "*** Begin Patch\n*** Update File: f\n*** Move to: g\n-one\n+two\n*** End Patch"
    assert workspace.run("apply_patch", {"patches": patch}).ok
    assert (directory / "g").read_text() == "two\n"
    assert os.getxattr(directory / "g", "user.origin") == b"here"


@pytest.mark.parametrize("change", CHANGES)
def test_an_access_list_survives_a_change(workspace, directory, change):
    """Who may read a file is not changed by editing it."""
    path = directory / "f"
    path.write_text("one\n")
    set_or_skip(path, ACCESS_LIST, access_list(user=4711))
    before = os.getxattr(path, ACCESS_LIST), path.stat().st_mode
    assert workspace.run(*CHANGES[change]).ok
    assert (os.getxattr(path, ACCESS_LIST), path.stat().st_mode) == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_directory_gives_an_edited_file_no_access_list(workspace, directory, change):
    """Its default is for new files: one that had no list, and a narrow mode, keeps both."""
    path = directory / "f"
    path.write_text("one\n")
    path.chmod(0o600)
    set_or_skip(directory, DEFAULT_LIST, access_list(user=4711))
    assert workspace.run(*CHANGES[change]).ok
    assert ACCESS_LIST not in os.listxattr(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_attribute_of_the_user_is_never_left_out_in_silence(directory):
    """One that cannot be set is an error; those that vouch for the content are not copied to other content."""
    (directory / "f").write_text("one\n")
    descriptor = os.open(directory / "f", os.O_RDWR)
    try:
        with pytest.raises(OSError, match=r"range|support|long|Invalid"):
            tree_ops.adopt_attributes(descriptor, {"user." + "x" * 300: b"1"})
        tree_ops.adopt_attributes(descriptor, {"security.capability": b"\0" * 20, "trusted.x": b"1"})
    finally:
        os.close(descriptor)
    assert "security.capability" not in os.listxattr(directory / "f")


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_with_a_second_name_is_refused(workspace, directory, tmp_path, change):
    """Neither is the link broken, nor the other name written through; deleting and moving a name are fine."""
    path = directory / "f"
    path.write_text("one\n")
    other = tmp_path / "other"
    try:
        os.link(path, other)
    except OSError as error:
        pytest.skip(f"no hard links on this file system: {error}")
    result = workspace.run(*CHANGES[change])
    assert not result.ok
    assert "f has 2 names (hard links)" in result.content
    assert path.samefile(other)
    assert path.read_text() == "one\n"
    assert sorted(entry.name for entry in directory.iterdir()) == ["f"]
    assert workspace.run("move_file", {"source": "f", "destination": "g"}).ok
    assert (directory / "g").samefile(other)
    assert workspace.run("delete_file", {"path": "g"}).ok
    assert other.read_text() == "one\n"


def test_a_second_name_made_since_stops_an_undo(workspace, directory, tmp_path):
    """For the same reason, and with the same words."""
    path = directory / "f"
    path.write_text("one\n")
    assert workspace.run(*CHANGES["edit"]).ok
    os.link(path, tmp_path / "other")
    with pytest.raises(ToolError, match=r"f has 2 names \(hard links\)"):
        workspace.undo()
    assert path.read_text() == "two\n"
    (tmp_path / "other").unlink()
    workspace.undo()
    assert path.read_text() == "one\n"
