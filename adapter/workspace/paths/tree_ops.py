"""A file, a link or a directory with all it holds, as one thing: cloned, removed, compared, on descriptors.

Links are never followed: a link is cloned, removed and compared as a link.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from adapter.workspace.paths.resolved_path import NEW_FILE, OPEN_FILE, open_child_directory

CHUNK_BYTES = 1024 * 1024
"""Copied at once."""
MAX_HASHED_BYTES = 16 * 1024 * 1024
"""Larger files are compared by size and time of change."""
NO_HARD_LINKS = {errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
ACCESS_LIST = "system.posix_acl_access"
_OF_CONTENT = {"security.capability", "security.ima", "security.evm"}
"""Attributes that vouch for what a file holds; the system, too, drops them when it is written to."""


def status_of(name: str, dirfd: int) -> os.stat_result | None:
    """The status of the name itself; None when nothing is there."""
    try:
        return os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def names_in(dirfd: int) -> list[str]:
    """The names in an open directory, sorted."""
    with os.scandir(dirfd) as scan:
        return sorted(entry.name for entry in scan)


def read_file(name: str, dirfd: int) -> bytes:
    descriptor = os.open(name, OPEN_FILE, dir_fd=dirfd)
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def fingerprint(name: str, dirfd: int) -> str | None:
    """What tells one content from another; None when nothing is there. The time a tree takes is that of listing it."""
    status = status_of(name, dirfd)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        return "tree:" + hashlib.sha256("\n".join(_lines(name, dirfd, "")).encode(errors="surrogateescape")).hexdigest()
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_HASHED_BYTES:
        return fingerprint_of(read_file(name, dirfd))
    return _looks(name, dirfd, status)


def fingerprint_of(data: bytes) -> str:
    """The fingerprint of a file with this content."""
    return "file:" + hashlib.sha256(data).hexdigest()


def _lines(name: str, dirfd: int, prefix: str) -> list[str]:
    """A line for every entry of a directory, in a fixed order."""
    lines: list[str] = []
    descriptor = open_child_directory(name, dirfd)
    try:
        for child in names_in(descriptor):
            status = os.stat(child, dir_fd=descriptor, follow_symlinks=False)
            path = f"{prefix}/{child}"
            if stat.S_ISDIR(status.st_mode):
                lines += [path + "/", *_lines(child, descriptor, path)]
            else:
                lines.append(f"{path} {_looks(child, descriptor, status)}")
    finally:
        os.close(descriptor)
    return lines


def _looks(name: str, dirfd: int, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "link:" + os.readlink(name, dir_fd=dirfd)
    return f"looks:{stat.S_IFMT(status.st_mode)}:{status.st_size}:{status.st_mtime_ns}"


def size_of(name: str, dirfd: int) -> int:
    """Bytes of the regular files."""
    status = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    descriptor = open_child_directory(name, dirfd)
    try:
        return sum(size_of(child, descriptor) for child in names_in(descriptor))
    finally:
        os.close(descriptor)


def remove(name: str, dirfd: int) -> int:
    """Remove whatever ``name`` is, if it is there. Returns the entries that a directory held."""
    status = status_of(name, dirfd)
    if status is None:
        return 0
    if not stat.S_ISDIR(status.st_mode):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=dirfd)
        return 0
    return _remove_directory(name, dirfd)


def _remove_directory(name: str, dirfd: int) -> int:
    descriptor = open_child_directory(name, dirfd)
    removed = 0
    try:
        with os.scandir(descriptor) as scan:
            entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan)
        for child, is_directory in entries:
            if is_directory:
                removed += _remove_directory(child, descriptor)
            else:
                os.unlink(child, dir_fd=descriptor)
            removed += 1
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=dirfd)
    return removed


def count(name: str, dirfd: int) -> int:
    """The entries in the directory ``name``; 0 for anything else."""
    status = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        return 0
    descriptor = open_child_directory(name, dirfd)
    try:
        return sum(1 + count(child, descriptor) for child in names_in(descriptor))
    finally:
        os.close(descriptor)


def clone(name: str, dirfd: int, copy: str, copy_dirfd: int) -> None:
    """Make ``copy`` the same as ``name``: content, mode, times, links as links; files by hard link where possible.

    For what is kept only until one of the two is removed. Sockets and devices are left out.
    """
    status = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        _clone_directory(name, dirfd, copy, copy_dirfd, status)
    elif stat.S_ISREG(status.st_mode):
        _clone_file(name, dirfd, copy, copy_dirfd, status)
    elif stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=dirfd), copy, dir_fd=copy_dirfd)
    elif stat.S_ISFIFO(status.st_mode):
        os.mkfifo(copy, stat.S_IMODE(status.st_mode), dir_fd=copy_dirfd)


def _clone_directory(name: str, dirfd: int, copy: str, copy_dirfd: int, status: os.stat_result) -> None:
    os.mkdir(copy, 0o700, dir_fd=copy_dirfd)
    source = open_child_directory(name, dirfd)
    try:
        target = open_child_directory(copy, copy_dirfd)
        try:
            for child in names_in(source):
                clone(child, source, child, target)
            _adopt(target, status)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _clone_file(name: str, dirfd: int, copy: str, copy_dirfd: int, status: os.stat_result) -> None:
    try:
        os.link(name, copy, src_dir_fd=dirfd, dst_dir_fd=copy_dirfd, follow_symlinks=False)
        return
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
    source = os.open(name, OPEN_FILE, dir_fd=dirfd)
    try:
        target = os.open(copy, NEW_FILE, 0o600, dir_fd=copy_dirfd)
        try:
            while chunk := os.read(source, CHUNK_BYTES):
                write_all(target, chunk)
            _adopt(target, status)
            with suppress(OSError):  # the other file system may have none
                adopt_attributes(target, attributes_of(source))
            os.fsync(target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _adopt(descriptor: int, status: os.stat_result) -> None:
    adopt_owner(descriptor, status)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))


def attributes_of(descriptor: int) -> dict[str, bytes]:
    """The extended attributes of an open file, access lists among them; none where the system has none."""
    if not hasattr(os, "listxattr"):
        return {}
    found: dict[str, bytes] = {}
    with suppress(OSError):  # a file system without them
        for name in os.listxattr(descriptor):
            with suppress(OSError):  # gone meanwhile, or not to be read by this user
                found[name] = os.getxattr(descriptor, name)
    return found


def attributes(name: str, dirfd: int) -> dict[str, bytes]:
    """The extended attributes of the regular file ``name``."""
    descriptor = os.open(name, OPEN_FILE, dir_fd=dirfd)
    try:
        return attributes_of(descriptor)
    finally:
        os.close(descriptor)


def adopt_attributes(descriptor: int, old: Mapping[str, bytes]) -> None:
    """Give the open file these extended attributes, and no access list that its directory gave it.

    Raises OSError for the user's own and for access lists; the system's are kept where that is allowed.
    """
    if ACCESS_LIST not in old and ACCESS_LIST in attributes_of(descriptor):
        os.removexattr(descriptor, ACCESS_LIST)
    for name, value in old.items():
        if name in _OF_CONTENT:
            continue
        try:
            os.setxattr(descriptor, name, value)
        except OSError:
            if name.startswith("user.") or name == ACCESS_LIST:
                raise


def adopt_owner(descriptor: int, old: os.stat_result) -> None:
    """Give the open file the owner of ``old``, where that is allowed."""
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)


def write_all(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def rename_to_free(name: str, dirfd: int, new: str, new_dirfd: int) -> None:
    """Rename without overwriting what may have appeared at ``new`` meanwhile.

    A hard link fails when the name is taken, which rename does not; directories
    replace at most an empty directory. Killed in between, both names are the same file.
    """
    fds = {"src_dir_fd": dirfd, "dst_dir_fd": new_dirfd}
    status = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        try:
            os.link(name, new, follow_symlinks=False, **fds)
        except OSError as error:
            if error.errno not in NO_HARD_LINKS - {errno.EXDEV}:
                raise
            if status_of(new, new_dirfd) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        else:
            os.unlink(name, dir_fd=dirfd)
            return
    os.rename(name, new, **fds)  # noqa: PTH104 - pathlib takes no descriptors


def same_file(name: str, dirfd: int, other: str, other_dirfd: int) -> bool:
    """Whether both names are there and are one file."""
    first, second = status_of(name, dirfd), status_of(other, other_dirfd)
    return first is not None and second is not None and os.path.samestat(first, second)
