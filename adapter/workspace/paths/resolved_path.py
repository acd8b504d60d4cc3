"""A place in the workspace, as the gate gives it, and the safe ways to open it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.paths.name_rules import nearest_name

OPEN_DIRECTORY = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
OPEN_FILE = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO would block the open
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags that a system lacks are left out, so that this can be imported there: its gate says what is missing."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Where a path leads: ``name`` in the open directory ``dirfd``, valid inside the ``with``.

    ``status`` is that of the name itself, links not followed; None when nothing
    is there. ``dirfd`` is -1 when a parent was only imagined. ``parts`` are the
    components below the root, for messages and comparisons; the root is ``()``
    with the name ``.``.
    """

    dirfd: int
    name: str
    parts: tuple[str, ...]
    status: os.stat_result | None

    @property
    def shown(self) -> str:
        """The path as messages and results show it."""
        return escape_for_display("/".join(self.parts)) or "."

    @property
    def is_directory(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return self.status is not None and stat.S_ISREG(self.status.st_mode)


@contextmanager
def open_regular(place: ResolvedPath) -> Iterator[int]:
    """A descriptor for reading the regular file at ``place``; never waits on a FIFO or a device."""
    descriptor = regular_descriptor(place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def regular_descriptor(place: ResolvedPath) -> int:
    """As `open_regular`, for the caller to close."""
    if not place.is_file:
        require_existing(place)
        if place.is_directory:
            raise ToolError(f"{place.shown} is a directory; list it, or give the path of a file in it")
        raise ToolError(f"{place.shown} is not a regular file (a device, pipe or socket) and is not opened")
    descriptor = os.open(place.name, OPEN_FILE, dir_fd=place.dirfd)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolError(f"{place.shown} changed while it was being opened; try again")
    except (OSError, ToolError):
        os.close(descriptor)
        raise
    return descriptor


def open_child_directory(name: str, dirfd: int) -> int:
    """A descriptor of the directory ``name`` in ``dirfd``. A link swapped in is not followed."""
    try:
        return os.open(name, OPEN_DIRECTORY, dir_fd=dirfd)
    except NotADirectoryError:
        raise ToolError(f"{escape_for_display(name)} is a file, not a directory; check the path") from None


def require_existing(place: ResolvedPath) -> None:
    """Raises ToolError that names what is there instead."""
    if place.status is None:
        raise ToolError(missing_sentence(place))


def missing_sentence(place: ResolvedPath) -> str:
    """That nothing is at ``place``, and the nearest name in its directory."""
    folder = escape_for_display("/".join(place.parts[:-1])) or "the workspace root"
    near = nearest_name(place.name, place.dirfd) if place.dirfd >= 0 else None
    if near is None:
        return f"{place.shown} does not exist; list {folder} to see what is there"
    suggestion = escape_for_display("/".join((*place.parts[:-1], near)))
    return f"{place.shown} does not exist (did you mean {suggestion!r}?)"


def check_directory_writable(dirfd: int, parts: tuple[str, ...]) -> None:
    """Raises ToolError when the open directory that ``parts`` is to be changed in is read-only.

    By the owner's mode bit, so that it also holds for root, whom the system lets write anywhere.
    """
    if not os.fstat(dirfd).st_mode & stat.S_IWUSR:
        raise ToolError(
            f"{escape_for_display('/'.join(parts))} was not changed: its directory is read-only. "
            "Choose another place, or ask the user to make it writable"
        )
