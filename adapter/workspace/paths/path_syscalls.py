"""Make system calls by path, and check every directory of the path before and after each call.

This is for systems without directory descriptors, such as Windows. A number represents an open directory: its path, and
the identities (volume and file index) of all directories from the opened root down to it. A call fails if one of these
has been replaced or has become a link. Another process can still replace a directory between a check and its call. The
check after the call detects that, but by then a file may have been created or renamed elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

_FIRST = 1 << 30
"""The first number of an open directory: greater than every file descriptor."""
MAX_ATTEMPTS = 5
"""Maximum number of attempts to open a file for reading that another process replaces meanwhile."""
_NAME_SURROGATE = 0x2000_0000
"""Bit in the reparse tags of symbolic links, junctions and mount points (Microsoft Learn, Reparse Point Tags). Files
without this bit, such as files in OneDrive, are ordinary files."""
_Identity: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _OpenDirectory:
    """An open directory. ``chain``: the paths and identities of all directories from the root down to this one."""

    chain: tuple[tuple[str, _Identity], ...]

    @property
    def path(self) -> str:
        return self.chain[-1][0]

    def check(self) -> None:
        """Raise OSError unless all directories are the ones that were opened."""
        for path, identity in self.chain:
            status = os.lstat(path)
            if not stat.S_ISDIR(status.st_mode) or is_link_or_mount(status) or _build_identity(status) != identity:
                raise _build_changed_error(path)

    def join(self, name: str) -> str:
        """Return the path of ``name`` in the directory. Raises OSError unless it is a single name."""
        if name == ".":
            return self.path
        if name in ("", "..") or "/" in name or os.sep in name or (os.altsep and os.altsep in name):
            raise OSError(errno.EINVAL, "not a single file name", name)
        return os.path.join(self.path, name)


class PathCalls:
    """The same methods as `DescriptorCalls`, implemented with paths."""

    def __init__(self) -> None:
        self._numbers = count(_FIRST)
        self._open: dict[int, _OpenDirectory] = {}

    def open_root(self, path: str) -> int:
        return self._add((), path)

    def open_directory(self, name: str, dirfd: int) -> int:
        if name == ".":
            return self.dup(dirfd)
        with self._check_around(dirfd) as directory:
            return self._add(directory.chain, directory.join(name))

    def open_beneath(self, dirfd: int, path: str) -> None:  # noqa: ARG002
        return None

    def open_file(self, name: str, dirfd: int, flags: int, mode: int = 0o777) -> int:
        directory = self._get_directory(dirfd)
        directory.check()
        path = directory.join(name)
        only_reads = not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        for _ in range(MAX_ATTEMPTS if only_reads else 1):
            if not flags & os.O_CREAT and is_link_or_mount(os.lstat(path)):
                raise _build_changed_error(path)
            descriptor = os.open(path, flags, mode)
            try:
                status = os.lstat(path)
                if is_link_or_mount(status):
                    raise _build_changed_error(path)
                is_same = _build_identity(status) == _build_identity(os.fstat(descriptor))
                directory.check()
            except OSError:
                os.close(descriptor)
                raise
            if is_same:
                return descriptor
            os.close(descriptor)
        raise _build_changed_error(path)

    def dup(self, dirfd: int) -> int:
        return self._get_number(self._get_directory(dirfd))

    def close(self, descriptor: int) -> None:
        if descriptor < _FIRST:
            os.close(descriptor)
        elif self._open.pop(descriptor, None) is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def stat(self, name: str, dirfd: int) -> os.stat_result:
        with self._check_around(dirfd) as directory:
            return os.lstat(directory.join(name))

    def fstat(self, descriptor: int) -> os.stat_result:
        return os.fstat(descriptor) if descriptor < _FIRST else self.stat(".", descriptor)

    @contextmanager
    def scandir(self, dirfd: int) -> Iterator[Iterator[os.DirEntry[str]]]:
        with self._check_around(dirfd) as directory, os.scandir(directory.path) as entries:
            yield entries

    def mkdir(self, name: str, dirfd: int, mode: int = 0o777) -> None:
        with self._check_change(dirfd) as directory:
            os.mkdir(directory.join(name), mode)

    def rmdir(self, name: str, dirfd: int) -> None:
        with self._check_change(dirfd) as directory:
            os.rmdir(directory.join(name))

    def unlink(self, name: str, dirfd: int) -> None:
        with self._check_change(dirfd) as directory:
            os.unlink(directory.join(name))

    def rename(self, name: str, dirfd: int, new: str, new_dirfd: int) -> None:
        with self._check_change(dirfd) as directory, self._check_change(new_dirfd) as target:
            os.replace(directory.join(name), target.join(new))

    def link(self, name: str, dirfd: int, new: str, new_dirfd: int) -> None:
        follow = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}
        with self._check_change(dirfd) as directory, self._check_change(new_dirfd) as target:
            os.link(directory.join(name), target.join(new), **follow)

    def symlink(self, target: str, name: str, dirfd: int) -> None:
        with self._check_change(dirfd) as directory:
            os.symlink(target, directory.join(name))

    def readlink(self, name: str, dirfd: int) -> str:
        with self._check_around(dirfd) as directory:
            return os.readlink(directory.join(name))

    def mkfifo(self, name: str, mode: int, dirfd: int) -> None:
        with self._check_change(dirfd) as directory:
            os.mkfifo(directory.join(name), mode)

    def fchmod(self, descriptor: int, mode: int) -> None:
        if descriptor >= _FIRST:
            with self._check_change(descriptor) as directory:
                os.chmod(directory.path, mode)
        elif hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)

    def utime(self, descriptor: int, ns: tuple[int, int]) -> None:
        if descriptor >= _FIRST:
            with self._check_change(descriptor) as directory:
                os.utime(directory.path, ns=ns)
        elif os.utime in os.supports_fd:
            os.utime(descriptor, ns=ns)

    def fsync(self, dirfd: int) -> None:
        """Do nothing: only a descriptor of the directory could be synced."""

    def open_lock_file(self, dirfd: int) -> int:
        device, index = self._get_directory(dirfd).chain[-1][1]
        user = os.getuid() if hasattr(os, "getuid") else ""
        directory = os.path.join(tempfile.gettempdir(), f"toolcall-adapter-locks-{user}")
        with suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        locks = self.open_root(directory)
        try:
            status = self.fstat(locks)
            if user != "" and status.st_uid != user:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
            return self.open_file(f"{device:x}-{index:x}", locks, flags, 0o600)
        finally:
            self.close(locks)

    def find_path(self, dirfd: int) -> str:
        directory = self._get_directory(dirfd)
        directory.check()
        return directory.path

    def _get_directory(self, dirfd: int) -> _OpenDirectory:
        try:
            return self._open[dirfd]
        except KeyError:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from None

    @contextmanager
    def _check_around(self, dirfd: int) -> Iterator[_OpenDirectory]:
        """Check the directory before the ``with`` body, and again after a body that succeeded."""
        directory = self._get_directory(dirfd)
        directory.check()
        yield directory
        directory.check()

    @contextmanager
    def _check_change(self, dirfd: int) -> Iterator[_OpenDirectory]:
        """Like `_check_around`, but raise ESTALE if the directory was replaced, since the change may be elsewhere."""
        directory = self._get_directory(dirfd)
        directory.check()
        yield directory
        try:
            directory.check()
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOENT, errno.ENOTDIR):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), directory.path) from error

    def _add(self, above: tuple[tuple[str, _Identity], ...], path: str) -> int:
        status = os.lstat(path)
        if is_link_or_mount(status):
            raise _build_changed_error(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return self._get_number(_OpenDirectory((*above, (path, _build_identity(status)))))

    def _get_number(self, directory: _OpenDirectory) -> int:
        number = next(self._numbers)
        self._open[number] = directory
        return number


def is_link_or_mount(status: os.stat_result) -> bool:
    """Return whether ``status`` belongs to a symbolic link, junction or mount point."""
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_reparse_tag", 0) & _NAME_SURROGATE)


def _build_identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _build_changed_error(path: str) -> OSError:
    return OSError(errno.ELOOP, "a link, or replaced during the call", path)
