"""Make system calls on names in open directories, in one of two ways.

`DescriptorCalls` uses directory descriptors (openat and its relatives): the system resolves a name in the directory
that was opened, even if another process moves or replaces it. `PathCalls`, for systems without them, uses paths and
checks every directory of the path before and after each call. The environment variable ``ADAPTER_PATHS`` selects
``descriptors`` or ``portable``; by default, descriptors are used if the system has them.

The methods are named after the functions of `os` that they replace, and raise OSError like them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

from adapter.core.errors import UsageError
from adapter.workspace.paths.open_flags import OPEN_DIRECTORY
from adapter.workspace.paths.openat2 import open_beneath
from adapter.workspace.paths.path_syscalls import PathCalls


class DescriptorCalls:
    """Makes the calls with directory descriptors. ``dirfd``: an open directory, from `open_root`, `open_directory`,
    `open_beneath` or `dup`."""

    def open_root(self, path: str) -> int:
        """Open the directory with the absolute ``path``. Its last name must not be a link."""
        return os.open(path, OPEN_DIRECTORY)

    def open_directory(self, name: str, dirfd: int) -> int:
        """Open the directory ``name``, which must not be a link. ``.`` opens ``dirfd`` again."""
        return os.open(name, OPEN_DIRECTORY, dir_fd=dirfd)

    def open_beneath(self, dirfd: int, path: str) -> int | None:
        """Open the directory ``path`` in a single system call that refuses links. Return None if it must be opened one
        component at a time.
        """
        return open_beneath(dirfd, path, OPEN_DIRECTORY)

    def open_file(self, name: str, dirfd: int, flags: int, mode: int = 0o777) -> int:
        """Open or create the file ``name``, which must not be a link, and return an ordinary file descriptor."""
        return os.open(name, flags, mode, dir_fd=dirfd)

    def dup(self, dirfd: int) -> int:
        return os.dup(dirfd)

    def close(self, descriptor: int) -> None:
        """Close a directory or an ordinary descriptor."""
        os.close(descriptor)

    def stat(self, name: str, dirfd: int) -> os.stat_result:
        """Return the status of ``name``, without following a link."""
        return os.stat(name, dir_fd=dirfd, follow_symlinks=False)

    def fstat(self, descriptor: int) -> os.stat_result:
        """Return the status of an open directory or file."""
        return os.fstat(descriptor)

    def scandir(self, dirfd: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(dirfd)

    def mkdir(self, name: str, dirfd: int, mode: int = 0o777) -> None:
        os.mkdir(name, mode, dir_fd=dirfd)

    def rmdir(self, name: str, dirfd: int) -> None:
        os.rmdir(name, dir_fd=dirfd)

    def unlink(self, name: str, dirfd: int) -> None:
        os.unlink(name, dir_fd=dirfd)

    def rename(self, name: str, dirfd: int, new: str, new_dirfd: int) -> None:
        """Rename an entry, replacing a file that already has the new name."""
        os.rename(name, new, src_dir_fd=dirfd, dst_dir_fd=new_dirfd)

    def link(self, name: str, dirfd: int, new: str, new_dirfd: int) -> None:
        """Make a hard link. If ``name`` is a symbolic link, link to it and not to its target."""
        os.link(name, new, src_dir_fd=dirfd, dst_dir_fd=new_dirfd, follow_symlinks=False)

    def symlink(self, target: str, name: str, dirfd: int) -> None:
        os.symlink(target, name, dir_fd=dirfd)

    def readlink(self, name: str, dirfd: int) -> str:
        return os.readlink(name, dir_fd=dirfd)

    def mkfifo(self, name: str, mode: int, dirfd: int) -> None:
        os.mkfifo(name, mode, dir_fd=dirfd)

    def fchmod(self, descriptor: int, mode: int) -> None:
        """Set the mode of an open directory or file, if the system supports it."""
        os.fchmod(descriptor, mode)

    def utime(self, descriptor: int, ns: tuple[int, int]) -> None:
        """Set the times of an open directory or file in nanoseconds, if the system supports it."""
        os.utime(descriptor, ns=ns)

    def fsync(self, dirfd: int) -> None:
        """Make renames in the directory durable, if the system supports it."""
        os.fsync(dirfd)

    def open_lock_file(self, dirfd: int) -> int:
        """Reopen the directory, and return the new descriptor. Locking it locks the directory."""
        return os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=dirfd)  # each open file has its own lock

    def find_path(self, dirfd: int) -> str | None:  # noqa: ARG002
        """Return the directory's path for a child process, or None if the child can inherit the descriptor."""
        return None


def has_descriptors() -> bool:
    """Return whether the system can open, inspect and rename names relative to a directory descriptor."""
    needed = {os.open, os.stat, os.rename}
    return needed <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


def _choose() -> DescriptorCalls | PathCalls:
    choice = os.environ.get("ADAPTER_PATHS", "")
    if choice not in ("", "descriptors", "portable"):
        raise UsageError(f"ADAPTER_PATHS is {choice!r}; expected 'descriptors' or 'portable', or no value")
    if choice == "descriptors" and not has_descriptors():
        raise UsageError(
            "ADAPTER_PATHS is 'descriptors', which this system does not support; set it to 'portable', or unset it"
        )
    return PathCalls() if choice == "portable" or not has_descriptors() else DescriptorCalls()


calls = _choose()
"""The calls used by this process."""
