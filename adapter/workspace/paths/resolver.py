"""Resolve paths from models to descriptors, confined to the workspace root.

If a path is checked and then opened by name, another process can replace it in between. So the resolver opens a path
one component at a time, each relative to the descriptor of the previous one. Callers get the descriptor of the last
directory and a name in it. If the kernel can resolve the path in one call without links, the resolver uses that call.

Symbolic links are followed while they stay inside the root. ``..`` returns to the directory that was entered before.
Absolute paths are accepted if they are below the root, compared by components.
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
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.path_validation import OWN_PREFIX, check_creatable, check_path, is_git, is_own_temp_file
from adapter.workspace.paths.resolved_path import (
    ResolvedPath,
    check_directory_writable,
    describe_missing,
    hold_descriptor,
    open_child_directory,
    open_regular,
    require_existing,
)
from adapter.workspace.paths.tree_ops import list_names
from adapter.workspace.paths.windows_paths import (
    IS_WINDOWS,
    WindowsPath,
    is_below,
    is_short_name,
    split_components,
    split_windows_path,
)

MAX_LINKS = 40
"""Maximum number of links followed in one path, as in Linux."""
MAX_DEPTH = 100
"""Maximum number of directories in a path. A walk keeps each of them open."""

Parents: TypeAlias = Literal["exist", "assume"]
"""Treatment of missing parent directories: reject them, or assume that they exist, to plan a write."""


class RootGoneError(ToolError):
    """Raised if the workspace directory was moved or replaced. Its paths can then no longer be resolved."""


class WorkspaceRoot:
    """An open workspace directory. Close it, or use it in a ``with`` statement."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.fspath(path):
            raise UsageError("the workspace path is empty; pass a directory, or '.' for the current one")
        spelling = os.path.abspath(os.fspath(path))  # noqa: PTH100 - keeps links
        self.path = os.path.realpath(spelling)
        """Real path for display; never opened by name after this line."""
        self._spellings = tuple(_split(each) for each in dict.fromkeys((spelling, self.path)))
        self._fd = -1
        try:
            self._fd = calls.open_root(self.path)
            self._identity = _build_identity(calls.fstat(self._fd))
        except OSError as error:
            self.close()
            raise UsageError(f"cannot use {spelling!r} as a workspace: {error.strerror}; pass a directory") from error
        self._hidden: tuple[str, ...] = ()

    def close(self) -> None:
        if self._fd >= 0:
            descriptor, self._fd = self._fd, -1  # never closed twice, even if closing fails
            calls.close(descriptor)

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
        """Resolve ``path``. The last name need not exist; if it does not, ``status`` is None.

        ``follow``: whether to follow a link in the last name. ``write``: whether to also reject the root, ``.git``,
        read-only directories and names that should not be created. Raises ToolError if the path is outside the root or
        its directory does not exist.
        """
        self._check_still_there()
        walk = _Walk(self, path, parents)
        try:
            resolved = walk.run(follow)
            if write:
                check_writable(resolved, path)
            yield resolved
        finally:
            walk.close()

    @contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, ResolvedPath]]:
        """Open the regular file ``path`` for reading. Raises ToolError if it is not a regular file."""
        with self.locate(path) as resolved, open_regular(resolved) as descriptor:
            yield descriptor, resolved

    @contextmanager
    def open_directory(self, path: str) -> Iterator[tuple[int, ResolvedPath]]:
        """Open the directory ``path``. Raises ToolError if it is not a directory."""
        with self.locate(path) as resolved:
            require_existing(resolved)
            if not resolved.is_directory:
                raise ToolError(
                    f"{resolved.display_path} is a file, not a directory; give a directory, or read the file"
                )
            with hold_descriptor(open_child_directory(resolved.name, resolved.dirfd)) as descriptor:
                yield descriptor, resolved

    def split_components(self, path: str) -> tuple[str, ...]:
        """Split ``path`` into components below the root. Raises ToolError if it is absolute and outside the root."""
        anchor, parts = _split(path)
        if not anchor:
            return parts
        for root_anchor, root in self._spellings:
            if anchor == root_anchor and (is_below(parts, root) if IS_WINDOWS else parts[: len(root)] == root):
                return parts[len(root) :]
        raise _build_outside_error(path)

    def find_parts(self, other: WorkspaceRoot) -> tuple[str, ...] | None:
        """Return the components of another root below this one, or None if it is outside."""
        try:
            return self.split_components(other.path)
        except ToolError:
            return None

    @property
    def inode(self) -> int:
        return self._identity[1]

    def hide(self, path: str) -> None:
        """Hide a directory from tools if it is below the root. ``path``: its real path."""
        with suppress(ToolError):  # outside
            self._hidden = self.split_components(path)

    @property
    def hidden(self) -> str | None:
        """The hidden directory, relative to the root; None if no directory is hidden."""
        return "/".join(self._hidden) or None

    def is_hidden(self, parts: tuple[str, ...]) -> bool:
        """Return whether ``parts`` is the hidden directory or inside it, ignoring case."""
        return bool(self._hidden) and is_below(parts, self._hidden)

    def holds_hidden(self, parts: tuple[str, ...]) -> bool:
        """Return whether the hidden directory is ``parts`` or inside it."""
        return bool(self._hidden) and self.is_hidden((*parts, *self._hidden[len(parts) :]))

    @property
    def descriptor(self) -> int:
        """Descriptor of the open root; callers must not close it."""
        return self._fd

    def _check_still_there(self) -> None:
        try:
            is_same = _build_identity(os.stat(self.path)) == self._identity
        except (FileNotFoundError, NotADirectoryError):
            is_same = False
        if self._fd < 0 or not is_same:
            raise RootGoneError("the workspace directory was moved, replaced or closed; nothing was done")


class _Walk:
    """Resolves one path. Keeps descriptors of the root and of each directory entered."""

    def __init__(self, root: WorkspaceRoot, path: str, parents: Parents) -> None:
        check_path(path)
        self._root = root
        self._path = path
        self._parents = parents
        self._pending = deque(root.split_components(path))
        self._open = [root.descriptor]
        self._names: list[str] = []
        self._links = 0

    def run(self, follow: bool) -> ResolvedPath:
        return self._resolve_in_kernel(follow) or self._walk(follow)

    def _resolve_in_kernel(self, follow: bool) -> ResolvedPath | None:
        """Resolve the path with one system call, with the same result as a walk; None if a walk is needed."""
        *parents, name = self._pending or ("",)
        if not parents or ".." in self._pending or len(parents) > MAX_DEPTH:
            return None
        descriptor = calls.open_beneath(self._open[0], "/".join(parents))
        if descriptor is None:
            return None
        self._open.append(descriptor)
        status = self._find_status(name)
        if follow and status is not None and stat.S_ISLNK(status.st_mode):
            calls.close(self._open.pop())
            return None
        self._names = parents
        if OWN_PREFIX in self._path.casefold() and any(map(is_own_temp_file, parents)):
            raise _build_denied_error(self._path)
        return self._resolve_name(name, status)

    def _walk(self, follow: bool) -> ResolvedPath:
        if self._parents == "assume" and len(self._pending) > MAX_DEPTH + 1 and ".." not in self._pending:
            raise self._build_depth_error()
        while self._pending:
            part = self._pending.popleft()
            if part == "..":
                self._leave()
                continue
            is_last = not self._pending
            status = self._find_status(part)
            if status is None:
                if is_last:
                    return self._resolve_name(part, None)
                if self._parents == "assume":
                    return self._resolve_missing_parents(part)
                raise ToolError(describe_missing(self._resolve_name(part, None)))
            if stat.S_ISLNK(status.st_mode) and (follow or not is_last):
                self._follow(part)
            elif is_last:
                return self._resolve_name(part, status)
            else:
                self._enter(part)
        return self._resolve_directory()

    def close(self) -> None:
        while len(self._open) > 1:
            with suppress(OSError):  # the descriptor is closed even then, and the rest must be closed too
                calls.close(self._open.pop())

    def _find_status(self, name: str) -> os.stat_result | None:
        if IS_WINDOWS:
            check_creatable(name)
            self._check_not_alias(name)
        try:
            return calls.stat(name, self._open[-1])
        except FileNotFoundError:
            return None

    def _check_not_alias(self, name: str) -> None:
        """Raise ToolError for an 8.3 name that is not listed in the directory."""
        if is_short_name(name) and not any(is_below((name,), (entry,)) for entry in list_names(self._open[-1])):
            raise ToolError(f"{_quote_path(name)} may be the short form of another name; give the full name")

    def _leave(self) -> None:
        if not self._names:
            raise _build_outside_error(self._path)
        self._names.pop()
        calls.close(self._open.pop())

    def _enter(self, name: str) -> None:
        if len(self._names) >= MAX_DEPTH:
            raise self._build_depth_error()
        self._check_not_hidden(name)
        self._open.append(open_child_directory(name, self._open[-1]))
        self._names.append(name)

    def _build_depth_error(self) -> ToolError:
        return ToolError(f"{_quote_path(self._path)} is more than {MAX_DEPTH} directories deep; use a shorter path")

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            path = _quote_path(self._path)
            raise ToolError(f"{path} passes through more than {MAX_LINKS} links, probably in a loop; use another path")
        target = calls.readlink(name, self._open[-1])
        if _split(target)[0]:
            try:
                parts = self._root.split_components(target)
            except ToolError:
                raise _build_link_error(self._path, name) from None
            while self._names:
                self._leave()
        else:
            parts = _split(target)[1]
        self._pending.extendleft(reversed(parts))

    def _resolve_missing_parents(self, first_missing: str) -> ResolvedPath:
        rest = [first_missing, *self._pending]
        if ".." in rest:
            raise ToolError(describe_missing(self._resolve_name(first_missing, None)))
        check_not_git((*self._names, *rest))
        for name in rest:
            self._check_not_hidden(name)
            check_creatable(name)
        check_directory_writable(self._open[-1], (*self._names, *rest))
        return ResolvedPath(-1, rest[-1], (*self._names, *rest), None)

    def _resolve_name(self, name: str, status: os.stat_result | None) -> ResolvedPath:
        self._check_not_hidden(name)
        return ResolvedPath(self._open[-1], name, (*self._names, name), status)

    def _check_not_hidden(self, name: str) -> None:
        if is_own_temp_file(name) or self._root.is_hidden((*self._names, name)):
            raise _build_denied_error(self._path)

    def _resolve_directory(self) -> ResolvedPath:
        """Return the directory entered last. Used for paths that end in ``..``, ``.`` or a link to a parent."""
        status = calls.fstat(self._open[-1])
        if not self._names:
            return ResolvedPath(self._open[-1], ".", (), status)
        return ResolvedPath(self._open[-2], self._names[-1], tuple(self._names), status)


def check_writable(resolved: ResolvedPath, path: str) -> None:
    """Raise ToolError if the path must not be changed: if it is the root, in ``.git`` or in a read-only directory, or
    if its name should not be created."""
    if not resolved.parts:
        raise ToolError(f"{_quote_path(path)} is the workspace root, which cannot be changed; give a path inside it")
    check_not_git(resolved.parts)
    if resolved.status is None:
        check_creatable(resolved.name)
    if resolved.dirfd >= 0:
        check_directory_writable(resolved.dirfd, resolved.parts)


def check_not_git(parts: tuple[str, ...]) -> None:
    """Raise ToolError if at least one file system would treat a component of the path as ``.git``."""
    for part in parts:
        if is_git(part):
            path = escape_for_display("/".join(parts))
            raise ToolError(
                f"{path} belongs to git's own data ({escape_for_display(part)}), which is read-only for tools; "
                "leave it unchanged, or ask the user to change it"
            )


def _build_denied_error(path: str) -> ToolError:
    return ToolError(f"{_quote_path(path)} belongs to the change journal, which tools cannot access; use another path")


def _build_outside_error(path: str) -> ToolError:
    return ToolError(f"{_quote_path(path)} is outside the workspace; give a path relative to the workspace root")


def _build_link_error(path: str, name: str) -> ToolError:
    link = escape_for_display(name)
    return ToolError(f"{_quote_path(path)} is outside the workspace: {link!r} is a link out of it; use another path")


def _quote_path(path: str) -> str:
    return repr(escape_for_display(path if len(path) <= 200 else path[:200] + "..."))


def _split(path: str) -> WindowsPath:
    if IS_WINDOWS:
        return split_windows_path(path)
    return WindowsPath("/" if path.startswith("/") else "", split_components(path))


def _build_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
