"""Directories checked by path: a replaced directory is detected by any later call."""

import errno
import os
from types import SimpleNamespace
from typing import cast

import pytest

from adapter.core.errors import ToolError
from adapter.core.file_lock import try_lock
from adapter.workspace.paths.descriptor_syscalls import DescriptorCalls
from adapter.workspace.paths.open_flags import NEW_FILE, OPEN_FILE
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.path_syscalls import MAX_ATTEMPTS, PathCalls, is_link_or_mount
from tests.workspace.conditions import IS_WINE


@pytest.fixture
def tree(tmp_path):
    """``top/inner/f`` and, outside ``top``, ``secret/f``."""
    for name, text in (("top/inner/f", "mine"), ("secret/f", "secret")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def paths():
    return PathCalls()


@pytest.fixture
def inner(tree, paths):
    top = paths.open_root(str(tree / "top"))
    return paths.open_directory("inner", top)


def replace_inner(tree, by):
    """Replace ``inner`` by a link to the secret, or by another directory."""
    (tree / "top" / "inner").rename(tree / "top" / "moved")
    if by == "link":
        (tree / "top" / "inner").symlink_to(tree / "secret")
    else:
        (tree / "secret").rename(tree / "top" / "inner")


EVERY_CALL = {
    "open_directory": lambda paths, inner: paths.open_directory("f", inner),
    "open_file": lambda paths, inner: paths.open_file("f", inner, OPEN_FILE),
    "new file": lambda paths, inner: paths.open_file("new", inner, NEW_FILE, 0o600),
    "stat": lambda paths, inner: paths.stat("f", inner),
    "fstat": lambda paths, inner: paths.fstat(inner),
    "scandir": lambda paths, inner: paths.scandir(inner).__enter__(),
    "mkdir": lambda paths, inner: paths.mkdir("new", inner),
    "rmdir": lambda paths, inner: paths.rmdir("f", inner),
    "unlink": lambda paths, inner: paths.unlink("f", inner),
    "rename": lambda paths, inner: paths.rename("f", inner, "new", inner),
    "link": lambda paths, inner: paths.link("f", inner, "new", inner),
    "symlink": lambda paths, inner: paths.symlink("f", "new", inner),
    "readlink": lambda paths, inner: paths.readlink("f", inner),
    "mkfifo": lambda paths, inner: paths.mkfifo("new", 0o600, inner),
    "fchmod": lambda paths, inner: paths.fchmod(inner, 0o700),
    "utime": lambda paths, inner: paths.utime(inner, (1, 1)),
    "find_path": lambda paths, inner: paths.find_path(inner),
}


def test_every_call_is_tried():
    """With the same names as with descriptors."""
    names = {name for name in vars(DescriptorCalls) if not name.startswith("_")}
    untouched = {"open_root", "open_beneath", "dup", "close", "fsync", "open_lock_file"}
    assert {name.split()[0] for name in EVERY_CALL} - {"new"} == names - untouched
    assert names == {name for name in vars(PathCalls) if not name.startswith("_")}


@pytest.mark.parametrize("by", ["link", "directory"])
@pytest.mark.parametrize("name", EVERY_CALL)
def test_call_in_replaced_directory_is_refused(tree, paths, inner, name, by):
    """And the content of the new directory is unchanged."""
    replace_inner(tree, by)
    with pytest.raises(OSError, match="replaced") as raised:
        EVERY_CALL[name](paths, inner)
    assert raised.value.errno == errno.ELOOP
    secret = tree / "secret" if by == "link" else tree / "top" / "inner"
    assert [path.name for path in secret.iterdir()] == ["f"]
    assert (secret / "f").read_text() == "secret"


def test_directory_above_is_checked(tree, paths, inner):
    deep = tree / "top" / "inner" / "deep"
    deep.mkdir()
    opened = paths.open_directory("deep", inner)
    replace_inner(tree, "link")
    (tree / "secret" / "deep").mkdir()
    with pytest.raises(OSError, match="replaced"):
        paths.scandir(opened).__enter__()


def test_swap_during_open_is_noticed(tree, paths, inner, monkeypatch):
    """The directory is replaced after the check, just before the file is opened. The descriptor is closed."""
    real, opened = os.open, []

    def swapping(path, flags, mode=0o777):
        replace_inner(tree, "link")
        opened.append(real(path, flags, mode))
        return opened[-1]

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(OSError, match="replaced"):
        paths.open_file("f", inner, OPEN_FILE)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_swap_during_a_change_is_reported(tree, paths, inner, monkeypatch):
    """The change was made in the new folder, and the error reports it."""
    real = os.replace

    def swapping(source, target):
        replace_inner(tree, "link")
        real(source, target)

    monkeypatch.setattr(os, "replace", swapping)
    with (
        pytest.raises(ToolError, match=r"replaced a directory .* f was not renamed\. Something may have been changed"),
        convert_os_errors("f was not renamed"),
    ):
        paths.rename("f", inner, "g", inner)


def test_unreadable_status_after_a_change_is_tolerated(paths, inner, monkeypatch):
    """The change was made, and is reported."""
    real, seen = os.lstat, []

    def failing(path):
        seen.append(path)
        if len(seen) > 4:
            raise OSError(errno.EIO, "Input/output error")
        return real(path)

    monkeypatch.setattr(os, "lstat", failing)
    paths.rename("f", inner, "g", inner)
    assert len(seen) > 4
    monkeypatch.undo()
    assert paths.stat("g", inner).st_size == 4


def test_link_is_not_opened(tree, paths, inner):
    """Neither as a file nor as a directory."""
    (tree / "top" / "inner" / "to-file").symlink_to(tree / "secret" / "f")
    (tree / "top" / "inner" / "to-folder").symlink_to(tree / "secret")
    with pytest.raises(OSError, match=r"link|loop|Too many levels"):
        paths.open_file("to-file", inner, OPEN_FILE)
    with pytest.raises(OSError, match="link"):
        paths.open_directory("to-folder", inner)
    with pytest.raises(NotADirectoryError):
        paths.open_directory("f", inner)


@pytest.mark.parametrize("name", ["", "..", "a/b", "../secret/f", "/etc/passwd"])
def test_only_single_names_are_taken(paths, inner, name):
    """Paths are split before, so a name with a separator is a bug."""
    with pytest.raises(OSError, match="not a single file name"):
        paths.stat(name, inner)


def test_closed_directory_is_refused(paths, inner):
    """Like a closed descriptor."""
    again = paths.dup(inner)
    paths.close(inner)
    for use in (paths.close, paths.fstat, paths.dup):
        with pytest.raises(OSError, match="Bad file descriptor"):
            use(inner)
    assert paths.stat("f", again).st_size == 4


@pytest.mark.skipif(IS_WINE, reason="Wine reports a lock of another program without an error number")
def test_directory_is_locked_through_a_file(tree, paths, inner, tmp_path, monkeypatch):
    """The same file for every program, outside the workspace."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, other = paths.open_lock_file(inner), PathCalls()
    directory = other.open_root(paths.find_path(inner))
    second = other.open_lock_file(directory)
    assert try_lock(first)
    assert not try_lock(second)
    os.close(first)
    assert try_lock(second)
    os.close(second)
    assert [path.name for path in (tree / "top" / "inner").iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [(0xA0000003, True), (0xA000000C, True), (0x9000001A, False), (0, False)],
    ids=["junction", "symbolic link", "file in a cloud", "none"],
)
def test_reparse_points_that_lead_elsewhere(tag, expected):
    """The tags are from winnt.h: only name surrogates refer to another file."""
    status = SimpleNamespace(st_mode=0o40755, st_reparse_tag=tag)
    assert is_link_or_mount(cast(os.stat_result, status)) is expected


@pytest.mark.parametrize("replacements", [MAX_ATTEMPTS - 1, MAX_ATTEMPTS])
def test_file_that_is_replaced_while_it_is_opened_is_opened_again(tree, paths, inner, monkeypatch, replacements):
    """An edit by another process replaces the file. A file that is replaced each time is refused."""
    texts = [str(number) for number in range(replacements)]
    really_open = os.open

    def open_and_replace(path, *rest, **options):
        descriptor = really_open(path, *rest, **options)
        if texts and str(path).endswith("f"):
            (tree / "next").write_text(texts.pop())
            (tree / "next").replace(tree / "top" / "inner" / "f")
        return descriptor

    monkeypatch.setattr(os, "open", open_and_replace)
    if replacements == MAX_ATTEMPTS:
        with pytest.raises(OSError, match="f"):
            paths.open_file("f", inner, OPEN_FILE)
    else:
        descriptor = paths.open_file("f", inner, OPEN_FILE)
        assert os.read(descriptor, 9) == b"0"
        os.close(descriptor)
