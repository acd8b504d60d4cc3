"""Represent a path as a directory descriptor and a name, and open it safely."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.open_flags import OPEN_FILE
from adapter.workspace.paths.path_validation import find_file_below, find_matching_names, find_nearest_name

MAX_MATCHES = 10
"""Maximum number of names in an error about a pattern."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """The target of a path: ``name`` in the open directory ``dirfd``, valid inside the ``with``.

    ``status``: status of the name, without following a link; None if the name does not exist. ``dirfd`` is -1 if a
    parent does not exist yet. ``parts``: components below the root, for messages and comparisons. The root has the
    parts ``()`` and the name ``.``.
    """

    dirfd: int
    name: str
    parts: tuple[str, ...]
    status: os.stat_result | None

    @property
    def display_path(self) -> str:
        """The path as shown in messages and results."""
        return escape_for_display("/".join(self.parts)) or "."

    @property
    def is_directory(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return self.status is not None and stat.S_ISREG(self.status.st_mode)


@contextmanager
def hold_descriptor(descriptor: int) -> Iterator[int]:
    """Close the descriptor after the ``with`` body."""
    try:
        yield descriptor
    finally:
        calls.close(descriptor)


@contextmanager
def open_regular(resolved: ResolvedPath) -> Iterator[int]:
    """Open a regular file for reading. A FIFO or device never blocks the call."""
    if not resolved.is_file:
        require_existing(resolved)
        if resolved.is_directory:
            raise ToolError(f"{resolved.display_path} is a directory; list it, or give the path of a file in it")
        raise ToolError(
            f"{resolved.display_path} is not a regular file (a device, pipe or socket), which tools do not open"
        )
    with hold_descriptor(calls.open_file(resolved.name, resolved.dirfd, OPEN_FILE)) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolError(f"{resolved.display_path} changed while it was being opened; try again")
        yield descriptor


def open_child_directory(name: str, dirfd: int) -> int:
    """Open the directory ``name`` in ``dirfd``, without following a link that has replaced it."""
    try:
        return calls.open_directory(name, dirfd)
    except NotADirectoryError:
        raise ToolError(f"{escape_for_display(name)} is a file, not a directory; check the path") from None


def require_existing(resolved: ResolvedPath) -> None:
    """Raise ToolError if the path does not exist. The message contains the nearest existing name."""
    if resolved.status is None:
        raise ToolError(describe_missing(resolved))


def describe_missing(resolved: ResolvedPath, *, is_edited: bool = False) -> str:
    """Describe a missing path, with the names that match it, the nearest existing name in its directory, or a file with
    this name in a directory below. ``is_edited``: whether the call edits the file; the message then suggests creating
    it."""
    name, dirfd, above = resolved.name, resolved.dirfd, resolved.parts[:-1]
    step = "write the whole file to create it, or " if is_edited else ""
    if "*" in name:
        matches = find_matching_names(name, dirfd) if dirfd >= 0 else []
        step = "patterns are not expanded here; "
        names = ", ".join(_quote(above, match) for match in matches[:MAX_MATCHES])
        more = f" and {len(matches) - MAX_MATCHES} more" if len(matches) > MAX_MATCHES else ""
        near = f"; {step}call this for each of {names}{more}" if names else ""
    else:
        similar = (find_file_below(name, dirfd) or find_nearest_name(name, dirfd)) if dirfd >= 0 else None
        near = f" (did you mean {_quote(above, similar)}?)" if similar else ""
    directory = escape_for_display("/".join(above)) or "the workspace root"
    return f"{resolved.display_path} does not exist{near or f'; {step}list {directory} to see what is there'}"


def _quote(above: tuple[str, ...], name: str) -> str:
    """Return a path in quotes, as it is shown to a model."""
    return repr(escape_for_display("/".join((*above, name))))


def check_directory_writable(dirfd: int, parts: tuple[str, ...]) -> None:
    """Raise ToolError if the open directory that contains ``parts`` is read-only.

    Only the owner's mode bit is checked, so that a read-only directory is also respected for root. On Windows the bit
    does not protect a directory.
    """
    if sys.platform != "win32" and not calls.fstat(dirfd).st_mode & stat.S_IWUSR:
        raise ToolError(
            f"{escape_for_display('/'.join(parts))} was not changed: its directory is read-only. "
            "Choose another path, or ask the user to make it writable"
        )


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read ``size`` bytes at ``offset`` without moving the file position, even if the system has no pread."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, offset, os.SEEK_SET)
    try:
        return os.read(descriptor, size)
    finally:
        os.lseek(descriptor, position, os.SEEK_SET)
