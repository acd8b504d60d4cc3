"""The one path gate: what a path from a model means, as descriptors, never as another path.

A path that was checked and is then opened by name can be swapped in between.
So the gate walks a path itself, one component at a time, on descriptors of the
directories it has already entered, and gives callers a directory descriptor
and a last name, on which all further work is done. Where the kernel can do the
same in one call and meets no link, it is left to the kernel.

Symbolic links are followed while they stay inside the root. ``..`` goes back
to the directory the walk came from. Absolute paths are read from the root when
they name something below it, compared by components.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias

from adapter.core.errors import ToolError, UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.paths.name_rules import OWN_PREFIX, check_creatable, check_path, is_git, is_own_temp_file
from adapter.workspace.paths.openat2 import open_beneath
from adapter.workspace.paths.resolved_path import (
    OPEN_DIRECTORY,
    ResolvedPath,
    check_directory_writable,
    missing_sentence,
    open_child_directory,
    regular_descriptor,
    require_existing,
)

MAX_LINKS = 40
"""Links followed in one path, as in Linux."""
MAX_DEPTH = 100
"""Directories one path may pass through; bounds the descriptors a walk holds."""

Parents: TypeAlias = Literal["exist", "imagine", "make"]
"""What to do about missing parent directories: refuse, go on as if they were there
(to preview a write), or make them."""


class RootGoneError(ToolError):
    """The workspace itself is not where it was: that says nothing about a path in it."""


class WorkspaceRoot:
    """An open workspace directory. Close it, or use it in a ``with``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd or os.stat not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise UsageError(
                "a workspace needs directory descriptors (openat), which this system does not have; "
                "run on Linux, macOS or inside WSL"
            )
        if not os.fspath(path):
            raise UsageError("the workspace is an empty name; give a directory, '.' for the one you are in")
        given = os.path.abspath(os.fspath(path))  # noqa: PTH100 - links stay as they were given
        self.path = os.path.realpath(given)
        """For people and messages; never opened by name after this."""
        self._spellings = tuple(tuple(_split(spelling)) for spelling in dict.fromkeys((given, self.path)))
        self._fd = -1
        try:
            self._fd = os.open(self.path, OPEN_DIRECTORY)
            self._identity = _identity(os.fstat(self._fd))
        except OSError as error:
            self.close()
            raise UsageError(f"cannot use {given!r} as a workspace: {error.strerror}; give a directory") from error
        self._hidden: tuple[str, ...] = ()

    def close(self) -> None:
        if self._fd >= 0:
            descriptor, self._fd = self._fd, -1  # not closed again, whatever the system says
            os.close(descriptor)

    def __enter__(self) -> WorkspaceRoot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()

    @contextmanager
    def locate(
        self, path: str, *, follow: bool = True, write: bool = False, parents: Parents = "exist"
    ) -> Iterator[ResolvedPath]:
        """Where ``path`` leads. The last name need not exist: then ``status`` is None.

        ``follow``: a link as the last name leads on (else it is the place itself).
        ``write``: refuse the root, ``.git``, read-only directories and names
        that should not be made.
        Directories made for ``parents="make"`` are removed again when the
        ``with`` body fails. Raises ToolError for whatever is outside or missing.
        """
        self._check_still_there()
        walk = _Walk(self, path, parents)
        try:
            place = walk.run(follow)
            if write:
                _check_writable(place, path)
            yield place
        except BaseException:
            walk.undo()
            raise
        finally:
            walk.close()

    @contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, ResolvedPath]]:
        """A descriptor for reading the regular file ``path``. Raises ToolError for anything else."""
        self._check_still_there()
        walk = _Walk(self, path, "exist")
        try:
            place = walk.run(follow=True)
            descriptor = regular_descriptor(place)
            try:
                yield descriptor, place
            finally:
                os.close(descriptor)
        finally:
            walk.close()

    @contextmanager
    def open_directory(self, path: str) -> Iterator[tuple[int, ResolvedPath]]:
        """A descriptor of the directory ``path``. Raises ToolError for anything else."""
        with self.locate(path) as place:
            require_existing(place)
            if not place.is_directory:
                raise ToolError(f"{place.shown} is a file, not a directory; give a directory, or read the file")
            descriptor = open_child_directory(place.name, place.dirfd)
            try:
                yield descriptor, place
            finally:
                os.close(descriptor)

    def components(self, path: str) -> tuple[str, ...]:
        """The components of ``path`` counted from the root. Raises ToolError for absolute paths elsewhere."""
        parts = tuple(_split(path))
        if not path.startswith("/"):
            return parts
        for spelling in self._spellings:
            if parts[: len(spelling)] == spelling:
                return parts[len(spelling) :]
        raise _outside(path)

    @property
    def inode(self) -> int:
        return self._identity[1]

    def hide(self, path: str) -> None:
        """Give nothing in the directory ``path`` (a real path) to anybody, should it be below the root."""
        own, parts = _split(self.path), _split(path)
        if parts[: len(own)] == own:
            self._hidden = tuple(parts[len(own) :])

    @property
    def hidden(self) -> str | None:
        """The hidden directory, as a path from the root."""
        return "/".join(self._hidden) or None

    def is_hidden(self, parts: tuple[str, ...]) -> bool:
        """Whether ``parts`` below the root is the hidden directory or in it, in any spelling of case."""
        if not self._hidden:
            return False
        start = parts[: len(self._hidden)]
        return [part.casefold() for part in start] == [part.casefold() for part in self._hidden]

    def holds_hidden(self, parts: tuple[str, ...]) -> bool:
        """Whether the hidden directory is ``parts`` or in it."""
        return bool(self._hidden) and self.is_hidden((*parts, *self._hidden[len(parts) :]))

    @property
    def descriptor(self) -> int:
        """The open root; not to be closed."""
        return self._fd

    def duplicate(self) -> int:
        return os.dup(self._fd)

    def _check_still_there(self) -> None:
        try:
            there = _identity(os.stat(self.path)) == self._identity
        except (FileNotFoundError, NotADirectoryError):
            there = False
        if self._fd < 0 or not there:
            raise RootGoneError("the workspace directory was moved, replaced or closed; nothing was done")


class _Walk:
    """One path being resolved. Holds a descriptor for each directory entered, after that of the root."""

    def __init__(self, root: WorkspaceRoot, path: str, parents: Parents) -> None:
        check_path(path)
        self._root = root
        self._path = path
        self._parents = parents
        self._pending = deque(root.components(path))
        self._open = [root.descriptor]
        self._names: list[str] = []
        self._made: list[tuple[int, str]] = []
        self._links = 0

    def run(self, follow: bool) -> ResolvedPath:
        return self._leap(follow) or self._walk(follow)

    def _leap(self, follow: bool) -> ResolvedPath | None:
        """The place by one system call, as the walk would find it; None when that takes a walk."""
        *parents, name = self._pending or ("",)
        if not parents or ".." in self._pending or len(parents) > MAX_DEPTH:
            return None
        descriptor = open_beneath(self._open[0], "/".join(parents), OPEN_DIRECTORY)
        if descriptor is None:
            return None
        self._open.append(descriptor)
        status = self._status(name)
        if follow and status is not None and stat.S_ISLNK(status.st_mode):
            os.close(self._open.pop())
            return None
        self._names = parents
        if OWN_PREFIX in self._path and any(map(is_own_temp_file, parents)):
            raise _not_for_tools(self._path)
        return self._place(name, status)

    def _walk(self, follow: bool) -> ResolvedPath:
        while self._pending:
            part = self._pending.popleft()
            if part == "..":
                self._leave()
                continue
            is_last = not self._pending
            status = self._status(part)
            if status is None:
                if is_last:
                    return self._place(part, None)
                if self._parents == "imagine":
                    return self._imagined(part)
                self._make(part)
            elif stat.S_ISLNK(status.st_mode):
                if is_last and not follow:
                    return self._place(part, status)
                self._follow(part)
                continue
            elif is_last:
                return self._place(part, status)
            self._enter(part)
        return self._end()

    def undo(self) -> None:
        """Remove the directories made on the way, as far as they are still empty."""
        for parent, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)

    def close(self) -> None:
        while len(self._open) > 1:
            with suppress(OSError):  # closed it is; the others are still to be
                os.close(self._open.pop())

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._open[-1], follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _leave(self) -> None:
        if not self._names:
            raise _outside(self._path)
        self._names.pop()
        os.close(self._open.pop())

    def _enter(self, name: str) -> None:
        if len(self._names) >= MAX_DEPTH:
            raise ToolError(f"{_quoted(self._path)} is more than {MAX_DEPTH} directories deep; use a shorter path")
        self._check_not_hidden(name)
        self._open.append(open_child_directory(name, self._open[-1]))
        self._names.append(name)

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise ToolError(f"{_quoted(self._path)} leads through more than {MAX_LINKS} links; probably a loop")
        target = os.readlink(name, dir_fd=self._open[-1])
        if target.startswith("/"):
            try:
                parts = self._root.components(target)
            except ToolError:
                raise _link_outside(self._path, name) from None
            while self._names:
                self._leave()
        else:
            parts = tuple(_split(target))
        self._pending.extendleft(reversed(parts))

    def _make(self, name: str) -> None:
        parts = (*self._names, name)
        if self._parents != "make":
            place = self._place(name, None)
            raise ToolError(missing_sentence(place))
        _check_not_git(parts)
        check_creatable(name)
        check_directory_writable(self._open[-1], parts)
        os.mkdir(name, dir_fd=self._open[-1])
        self._made.append((self._open[-1], name))

    def _imagined(self, first_missing: str) -> ResolvedPath:
        rest = [first_missing, *self._pending]
        if ".." in rest:
            raise ToolError(missing_sentence(self._place(first_missing, None)))
        _check_not_git((*self._names, *rest))
        for name in rest:
            self._check_not_hidden(name)
            check_creatable(name)
        check_directory_writable(self._open[-1], (*self._names, *rest))
        return ResolvedPath(-1, rest[-1], (*self._names, *rest), None)

    def _place(self, name: str, status: os.stat_result | None) -> ResolvedPath:
        self._check_not_hidden(name)
        return ResolvedPath(self._open[-1], name, (*self._names, name), status)

    def _check_not_hidden(self, name: str) -> None:
        if is_own_temp_file(name) or self._root.is_hidden((*self._names, name)):
            raise _not_for_tools(self._path)

    def _end(self) -> ResolvedPath:
        """The path ended in ``..``, ``.`` or a link to a directory above: the directory entered last."""
        if not self._names:
            return ResolvedPath(self._open[-1], ".", (), os.fstat(self._open[-1]))
        status = os.fstat(self._open[-1])
        return ResolvedPath(self._open[-2], self._names[-1], tuple(self._names), status)


def _check_writable(place: ResolvedPath, path: str) -> None:
    if not place.parts:
        raise ToolError(f"{_quoted(path)} is the workspace root, which is not changed itself; give a path inside it")
    _check_not_git(place.parts)
    if place.status is None:
        check_creatable(place.name)
    if place.dirfd >= 0:
        check_directory_writable(place.dirfd, place.parts)


def _check_not_git(parts: tuple[str, ...]) -> None:
    for part in parts:
        if is_git(part):
            raise ToolError(
                f"{escape_for_display('/'.join(parts))} belongs to git's own data ({escape_for_display(part)}), which is only read"
            )


def _not_for_tools(path: str) -> ToolError:
    return ToolError(f"{_quoted(path)} belongs to the records of changes, which tools leave alone")


def _outside(path: str) -> ToolError:
    return ToolError(f"{_quoted(path)} is outside the workspace; give a path relative to the workspace root")


def _link_outside(path: str, name: str) -> ToolError:
    return ToolError(
        f"{_quoted(path)} is outside the workspace: {escape_for_display(name)!r} is a link that leads out of it"
    )


def _quoted(path: str) -> str:
    return repr(escape_for_display(path if len(path) <= 200 else path[:200] + "..."))


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
