"""File attributes on a real file system: extended attributes, access lists, hard links."""

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
    """Return a POSIX access list as Linux stores it: full access for the owner, read access for ``user``."""
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
    """And its undo."""
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


def test_extended_attributes_survive_merging_undo(workspace, directory):
    """The file changed in between, and its current attributes are kept."""
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
    """The edit creates a new file with all attributes of the old one."""
    (directory / "f").write_text("one\n")
    set_or_skip(directory / "f", "user.origin", b"here")
    patch = "*** Begin Patch\n*** Update File: f\n*** Move to: g\n-one\n+two\n*** End Patch"
    assert workspace.run("apply_patch", {"patches": patch}).ok
    assert (directory / "g").read_text() == "two\n"
    assert os.getxattr(directory / "g", "user.origin") == b"here"


@pytest.mark.parametrize("change", CHANGES)
def test_access_list_survives_a_change(workspace, directory, change):
    path = directory / "f"
    path.write_text("one\n")
    set_or_skip(path, ACCESS_LIST, access_list(user=4711))
    before = os.getxattr(path, ACCESS_LIST), path.stat().st_mode
    assert workspace.run(*CHANGES[change]).ok
    assert (os.getxattr(path, ACCESS_LIST), path.stat().st_mode) == before


@pytest.mark.parametrize("change", CHANGES)
def test_edited_file_inherits_no_access_list(workspace, directory, change):
    """A default list is for new files. A file without a list keeps its narrow mode."""
    path = directory / "f"
    path.write_text("one\n")
    path.chmod(0o600)
    set_or_skip(directory, DEFAULT_LIST, access_list(user=4711))
    assert workspace.run(*CHANGES[change]).ok
    assert ACCESS_LIST not in os.listxattr(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_lost_user_attribute_is_an_error(directory):
    """An attribute that cannot be set is an error. Attributes that certify content are not copied to other content."""
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
def test_file_with_hard_link_is_refused(workspace, directory, tmp_path, change):
    """The link is not broken, and the other name is not written. Deleting and moving a name works."""
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


def test_hard_link_made_since_prevents_undo(workspace, directory, tmp_path):
    """With the same message."""
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
