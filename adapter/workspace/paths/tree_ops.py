"""Clone, remove and compare files, links and directory trees through descriptors. Links are never followed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.open_flags import NEW_FILE, OPEN_FILE
from adapter.workspace.paths.resolved_path import hold_descriptor, open_child_directory

CHUNK_BYTES = 1024 * 1024
"""Number of bytes copied at a time."""
MAX_HASHED_BYTES = 16 * 1024 * 1024
"""Maximum size of a file compared by hash; larger files are compared by size and modification time."""
NO_HARD_LINKS = {errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
ACCESS_LIST = "system.posix_acl_access"
_OF_CONTENT = {"security.capability", "security.ima", "security.evm"}
"""Attributes that describe a file's content. They are not copied; the system also drops them on a write."""


def find_status(name: str, dirfd: int) -> os.stat_result | None:
    """Return the status of ``name``, without following a link, or None if it does not exist."""
    try:
        return calls.stat(name, dirfd)
    except FileNotFoundError:
        return None


def list_names(dirfd: int) -> list[str]:
    """Return the sorted names in an open directory."""
    with calls.scandir(dirfd) as scan:
        return sorted(entry.name for entry in scan)


def read_file(name: str, dirfd: int) -> bytes:
    with (
        hold_descriptor(calls.open_file(name, dirfd, OPEN_FILE)) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        return file.read()


def compute_fingerprint(name: str, dirfd: int) -> str | None:
    """Return a string that identifies the content of ``name``, or None if it does not exist.

    For a directory tree, the string depends on names, sizes and times, but not on the contents of files.
    """
    status = find_status(name, dirfd)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        lines = "\n".join(_list_lines(name, dirfd, "")).encode(errors="surrogateescape")
        return f"tree:{hashlib.sha256(lines).hexdigest()}"
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_HASHED_BYTES:
        return fingerprint_bytes(read_file(name, dirfd))
    return _describe_entry(name, dirfd, status)


def build_identity(status: os.stat_result) -> str:
    """Return a string that changes when a file is replaced or written, or when a directory is replaced."""
    same = (status.st_dev, status.st_ino, status.st_mode)
    written = () if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return repr(same + written)


def fingerprint_bytes(data: bytes) -> str:
    """Return the fingerprint of a file with the content ``data``."""
    return "file:" + hashlib.sha256(data).hexdigest()


def _list_lines(name: str, dirfd: int, prefix: str) -> list[str]:
    """Return one line for each entry of a directory tree, in a fixed order."""
    lines: list[str] = []
    with hold_descriptor(open_child_directory(name, dirfd)) as descriptor:
        for child in list_names(descriptor):
            status = calls.stat(child, descriptor)
            path = f"{prefix}/{child}"
            if stat.S_ISDIR(status.st_mode):
                lines += [path + "/", *_list_lines(child, descriptor, path)]
            else:
                lines.append(f"{path} {_describe_entry(child, descriptor, status)}")
    return lines


def _describe_entry(name: str, dirfd: int, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "link:" + calls.readlink(name, dirfd)
    return f"looks:{stat.S_IFMT(status.st_mode)}:{status.st_size}:{status.st_mtime_ns}"


def measure_size(name: str, dirfd: int) -> int:
    """Return the total size of the regular files in ``name``, in bytes."""
    status = calls.stat(name, dirfd)
    if not stat.S_ISDIR(status.st_mode):
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    with hold_descriptor(open_child_directory(name, dirfd)) as descriptor:
        return sum(measure_size(child, descriptor) for child in list_names(descriptor))


def remove(name: str, dirfd: int) -> None:
    """Remove ``name``, which may have any type or not exist."""
    status = find_status(name, dirfd)
    if status is not None and stat.S_ISDIR(status.st_mode):
        with hold_descriptor(open_child_directory(name, dirfd)) as descriptor:
            for child in list_names(descriptor):
                remove(child, descriptor)
        calls.rmdir(name, dirfd)
    elif status is not None:
        with suppress(FileNotFoundError):
            calls.unlink(name, dirfd)


def clone(name: str, dirfd: int, copy: str, copy_dirfd: int) -> None:
    """Copy the content, mode and times of ``name`` to ``copy``. Links are copied as links, files as hard links if
    possible.

    Because of the hard links, remove either ``name`` or ``copy`` soon. Sockets and devices are left out.
    """
    status = calls.stat(name, dirfd)
    if stat.S_ISDIR(status.st_mode):
        _clone_directory(name, dirfd, copy, copy_dirfd, status)
    elif stat.S_ISREG(status.st_mode):
        _clone_file(name, dirfd, copy, copy_dirfd, status)
    elif stat.S_ISLNK(status.st_mode):
        calls.symlink(calls.readlink(name, dirfd), copy, copy_dirfd)
    elif stat.S_ISFIFO(status.st_mode):
        calls.mkfifo(copy, stat.S_IMODE(status.st_mode), copy_dirfd)


def _clone_directory(name: str, dirfd: int, copy: str, copy_dirfd: int, status: os.stat_result) -> None:
    calls.mkdir(copy, copy_dirfd, 0o700)
    with (
        hold_descriptor(open_child_directory(name, dirfd)) as source,
        hold_descriptor(open_child_directory(copy, copy_dirfd)) as target,
    ):
        for child in list_names(source):
            clone(child, source, child, target)
        _adopt(target, status)


def _clone_file(name: str, dirfd: int, copy: str, copy_dirfd: int, status: os.stat_result) -> None:
    try:
        calls.link(name, dirfd, copy, copy_dirfd)
        return
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
    with (
        hold_descriptor(calls.open_file(name, dirfd, OPEN_FILE)) as source,
        hold_descriptor(calls.open_file(copy, copy_dirfd, NEW_FILE, 0o600)) as target,
    ):
        while chunk := os.read(source, CHUNK_BYTES):
            write_all(target, chunk)
        _adopt(target, status)
        with suppress(OSError):  # the other file system may not support them
            adopt_attributes(target, read_open_attributes(source))
        os.fsync(target)


def _adopt(descriptor: int, status: os.stat_result) -> None:
    adopt_owner(descriptor, status)
    calls.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    calls.utime(descriptor, (status.st_atime_ns, status.st_mtime_ns))


def read_open_attributes(descriptor: int) -> dict[str, bytes]:
    """Return the extended attributes of an open file, including its access control list; empty if not supported."""
    if not hasattr(os, "listxattr"):
        return {}
    values: dict[str, bytes] = {}
    with suppress(OSError):  # a file system without them
        for name in os.listxattr(descriptor):
            with suppress(OSError):  # removed meanwhile, or not readable for this user
                values[name] = os.getxattr(descriptor, name)
    return values


def read_attributes(name: str, dirfd: int) -> dict[str, bytes]:
    """Return the extended attributes of the regular file ``name``."""
    with hold_descriptor(calls.open_file(name, dirfd, OPEN_FILE)) as descriptor:
        return read_open_attributes(descriptor)


def adopt_attributes(descriptor: int, old: Mapping[str, bytes]) -> None:
    """Set the extended attributes ``old`` on the open file. If they contain no access control list, remove the list
    inherited by the file from its directory.

    Raises OSError if a user attribute or the access control list cannot be set. Other attributes are set only if
    permitted.
    """
    if ACCESS_LIST not in old and ACCESS_LIST in read_open_attributes(descriptor):
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
    """Set the owner of the open file to the owner of ``old``, if permitted."""
    new = calls.fstat(descriptor)
    if hasattr(os, "fchown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)


def write_all(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def rename_no_replace(name: str, dirfd: int, new: str, new_dirfd: int) -> None:
    """Rename ``name`` to ``new``, but raise FileExistsError if ``new`` exists.

    A file is hard-linked to ``new``, which fails if that exists; then ``name`` is unlinked. If the process is killed in
    between, both names refer to the same file. A directory is renamed, which can replace only an empty directory.
    """
    status = calls.stat(name, dirfd)
    if not stat.S_ISDIR(status.st_mode):
        try:
            calls.link(name, dirfd, new, new_dirfd)
        except OSError as error:
            if error.errno not in NO_HARD_LINKS - {errno.EXDEV}:
                raise
            if find_status(new, new_dirfd) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        else:
            calls.unlink(name, dirfd)
            return
    calls.rename(name, dirfd, new, new_dirfd)


def is_same_file(name: str, dirfd: int, other: str, other_dirfd: int) -> bool:
    """Return whether both names exist and are the same file."""
    first, second = find_status(name, dirfd), find_status(other, other_dirfd)
    return first is not None and second is not None and os.path.samestat(first, second)
