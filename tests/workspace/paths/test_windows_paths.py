"""Paths as Windows parses them, on every system."""

import pytest

from adapter.core.errors import ToolError
from adapter.workspace.paths.path_validation import check_creatable, is_git, is_own_temp_file
from adapter.workspace.paths.windows_paths import is_below, is_short_name, split_windows_path


@pytest.mark.parametrize(
    ("path", "anchor", "parts"),
    [
        ("src/a.py", "", ("src", "a.py")),
        ("src\\a.py", "", ("src", "a.py")),
        (".\\src\\..\\a.py", "", ("src", "..", "a.py")),
        ("C:\\ws\\a.py", "c:/", ("ws", "a.py")),
        ("c:/ws//a.py", "c:/", ("ws", "a.py")),
        ("C:a.py", "c:", ("a.py",)),
        ("\\a.py", "/", ("a.py",)),
        ("/a.py", "/", ("a.py",)),
        ("\\\\Server\\Share\\a.py", "//server/share/", ("a.py",)),
        ("//server/share", "//server/share/", ()),
        ("\\\\?\\C:\\ws\\a.py", "c:/", ("ws", "a.py")),
        ("\\\\?\\UNC\\server\\share\\a", "//server/share/", ("a",)),
        ("\\\\.\\PhysicalDrive0", "//./", ("PhysicalDrive0",)),
        ("\\\\?\\GLOBALROOT\\Device\\x", "//./", ("GLOBALROOT", "Device", "x")),
        ("\\\\?\\C:a", "//./", ("C:a",)),
    ],
)
def test_paths_are_split(path, anchor, parts):
    """Only some absolute paths can be inside the workspace."""
    assert split_windows_path(path) == (anchor, parts)


@pytest.mark.parametrize(
    "name",
    [
        "CON",
        "nul.txt",
        "com1",
        "LPT9.log",
        "aux",
        "conin$",
        "a.",
        "a ",
        "file.txt::$DATA",
        "a:b",
        "x?",
        "a|b",
        "com\u00b9",
    ],
)
def test_names_with_another_meaning_are_refused(name):
    """Devices, alternate streams, and names with a trailing dot or space."""
    with pytest.raises(ToolError):
        check_creatable(name)


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".git.", ".git ", "git~1", "GIT~2", ".git::$INDEX_ALLOCATION", ".g\u200cit"]
)
def test_names_of_gits_folder(name):
    """In each spelling that NTFS or HFS+ accepts."""
    assert is_git(name)


def test_short_names():
    """Each may refer to a longer name."""
    assert all(map(is_short_name, ("PROGRA~1", "GIT~1", "a~1.txt", "LONGFI~12.P")))
    assert not any(map(is_short_name, ("backup~", "a~b", "longername~1", "notes.txt", "x~1.text")))


def test_case_is_ignored():
    """In the folders above the workspace, and in the names of our own files."""
    assert is_below(("Users", "Me", "WS", "a"), ("users", "me", "ws"))
    assert not is_below(("users", "me"), ("users", "me", "ws"))
    assert is_own_temp_file(".ADAPTER-0123456789ABCDEF.NEW")
