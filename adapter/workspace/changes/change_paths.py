"""Resolve the paths of a change anew for each step, and lock and sync their directories."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.changes.journal import ChangeRecord, ChangeStep, lock, sync_directory
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.resolved_path import ResolvedPath, describe_missing
from adapter.workspace.paths.resolver import RootGoneError, WorkspaceRoot, check_not_git


class PathGoneError(Exception):
    """Raised if a path of a change can no longer be resolved without following a link."""


class ChangePaths:
    """Resolves the paths of one change."""

    def __init__(self, root: WorkspaceRoot, record: ChangeRecord) -> None:
        self._root = root
        self._steps = record.steps

    @contextmanager
    def resolve(self, path: str) -> Iterator[ResolvedPath]:
        """Resolve a path of the plan. Raises ToolError for git's own data, or if a component has become a link."""
        with self._root.locate(f"./{path}", follow=False) as resolved:
            check_not_git(resolved.parts)
            if "/".join(resolved.parts) != path:
                raise ToolError(f"{escape_for_display(path)} has just been replaced by a link; try again")
            yield resolved

    @contextmanager
    def resolve_for_repair(self, path: str) -> Iterator[ResolvedPath]:
        """Resolve a path while repairing an interrupted change. Raises PathGoneError if its directory is missing, a
        component is a link, or it is git's own data."""
        with ExitStack() as stack:
            try:
                resolved = stack.enter_context(self._root.locate(f"./{path}", follow=False, parents="assume"))
                check_not_git(resolved.parts)
            except RootGoneError:
                raise
            except ToolError as error:
                raise PathGoneError(str(error)) from error
            if resolved.dirfd < 0 or "/".join(resolved.parts) != path:
                raise PathGoneError(describe_missing(resolved))
            yield resolved

    def _list_directories(self) -> list[tuple[str, ...]]:
        """Return the directories that get, lose or rename entries in the change, sorted and unique."""
        paths = [step.path for step in self._steps if step.kind != "directory"]
        paths += [step.destination for step in self._steps if step.kind == "move"]
        return sorted({tuple(path.split("/")[:-1]) for path in paths})

    @contextmanager
    def lock_directories(self) -> Iterator[None]:
        """Lock the directories of the change against all processes, including processes of other workspaces and
        users."""
        opened: list[tuple[int, int, int, str]] = []
        with ExitStack() as stack:
            for parts in self._list_directories():
                with suppress(ToolError), self._root.open_directory("/".join((".", *parts))) as (descriptor, resolved):
                    reopened = calls.open_lock_file(descriptor)
                    stack.callback(calls.close, reopened)
                    status = calls.fstat(reopened)
                    opened.append((status.st_dev, status.st_ino, reopened, resolved.display_path))
            for _, _, descriptor, shown in sorted(opened):  # all processes lock in this order, which avoids deadlock
                lock(descriptor, shown)
            yield

    def sync_directories(self) -> None:
        """Make the entries of the directories durable."""
        for parts in self._list_directories():
            with suppress(ToolError), self._root.open_directory("/".join((".", *parts))) as (descriptor, _):
                sync_directory(descriptor)


def remove_empty(resolved: ResolvedPath) -> None:
    """Remove a directory created by the change, unless it has entries by now."""
    try:
        calls.rmdir(resolved.name, resolved.dirfd)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise


def transfer(name: str, dirfd: int, stored: str, store: int) -> None:
    """Move the entry ``name`` of the open directory ``dirfd`` to ``stored`` in the open directory ``store``. Across
    file systems, copy it under a temporary name first."""
    try:
        calls.rename(name, dirfd, stored, store)
    except OSError as error:
        if error.errno not in tree_ops.NO_HARD_LINKS:
            raise
        part = f"{stored}.part"
        tree_ops.remove(part, store)
        tree_ops.clone(name, dirfd, part, store)
        calls.rename(part, store, stored, store)


def plan_missing_directories(root: WorkspaceRoot, parents: Sequence[tuple[str, ...]]) -> list[ChangeStep]:
    """Return the steps that create the directories ``parents``, given as path components, and their missing ancestors,
    from the top down."""
    missing: list[str] = []
    for parts in parents:
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            if path in missing:
                continue
            with root.locate(f"./{path}", follow=False, parents="assume") as resolved:
                if resolved.status is None:
                    missing.append(path)
    return [ChangeStep(kind="directory", path=path) for path in missing]
