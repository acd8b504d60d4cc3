"""Deleting, moving and copying: whole trees on descriptors, links never followed, nothing overwritten.

Each is one rename, so that it is done whole or not at all, and can be undone.
"""

from __future__ import annotations

import os
import stat

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import Copy, Delete, Move, OperationDone
from adapter.workspace.changes.journal import ChangeStep
from adapter.workspace.changes.plan import Plan
from adapter.workspace.changes.transactions import StagedContent
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.name_rules import is_git
from adapter.workspace.paths.os_errors import os_errors_explained
from adapter.workspace.paths.resolved_path import (
    NEW_FILE,
    ResolvedPath,
    open_child_directory,
    open_regular,
    require_existing,
)
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import Walk, WalkLimits

TREE_LIMITS = WalkLimits(entries=20_000, depth=64, seconds=30.0)
"""A tree beyond this is not deleted or copied by a tool call."""
MAX_COPY_BYTES = 1024 * 1024 * 1024
"""Of one copy, all files together."""


def check_delete(root: WorkspaceRoot, operation: Delete) -> str:
    """What would be deleted, in words. Raises ToolError for what cannot be."""
    with root.locate(operation.path, follow=False, write=True) as place:
        require_existing(place)
        _check_not_holding_records(root, place)
        shown, is_directory = place.shown, place.is_directory
    if not is_directory:
        return f"delete {shown}"
    entries = _count(root, operation.path)
    if not operation.recursive:
        raise ToolError(
            f"{shown} is a directory with {entries} entries and was not deleted; pass recursive=true to delete it all"
        )
    return f"delete the directory {shown} and the {entries} entries in it"


def plan_delete(desk: WorkspaceContext, operation: Delete) -> Plan:
    """Delete a file, a link (not its target) or, when ``recursive``, a directory with all it holds.

    Where nothing can be kept of it, because the disk is full, whoever approves is told that it is for good.
    """
    summary = check_delete(desk.root, operation)
    with os_errors_explained(f"{escape_for_display(operation.path)} was not deleted"):
        kept = desk.history.can_keep()
    if not kept:
        summary += " for good (the disk is full: no undo)"
    return Plan(summary, lambda: _delete(desk, operation, kept))


def delete(desk: WorkspaceContext, operation: Delete) -> OperationDone:
    return _delete(desk, operation, desk.history.can_keep())


def _delete(desk: WorkspaceContext, operation: Delete, kept: bool) -> OperationDone:
    summary = check_delete(desk.root, operation)
    with desk.root.locate(operation.path, follow=False, write=True) as place:
        require_existing(place)
        with os_errors_explained(f"{place.shown} was not deleted"):
            entries = tree_ops.count(place.name, place.dirfd) + 1
    path = "/".join(place.parts)
    with os_errors_explained(f"{place.shown} was not deleted"):
        if kept:
            notes = desk.history.commit(summary, (), [ChangeStep(kind="take", path=path)], {})
        else:
            desk.history.remove_for_good(path)
            notes = ("nothing of it was kept, because the disk is full: this cannot be undone",)
    desk.seen.forget(place.parts)
    return OperationDone(place.shown, entries=entries, notes=notes)


def check_move(root: WorkspaceRoot, operation: Move) -> str:
    """What would be moved where, in words. Raises ToolError for what cannot be."""
    source, destination = _check_pair(root, operation.source, operation.destination, moving=True)
    return f"move {source.shown} to {destination.shown}"


def move(desk: WorkspaceContext, operation: Move) -> OperationDone:
    """Rename within the workspace; parents of the destination are made, nothing is overwritten."""
    source, destination = _check_pair(desk.root, operation.source, operation.destination, moving=True)
    step = ChangeStep(kind="move", path="/".join(source.parts), destination="/".join(destination.parts))
    with os_errors_explained(f"{source.shown} was not moved"):
        summary = f"move {source.shown} to {destination.shown}"
        notes = desk.history.commit(summary, [destination.parts[:-1]], [step], {})
    desk.seen.move(source.parts, destination.parts)
    return OperationDone(source.shown, destination.shown, notes=notes)


def check_copy(root: WorkspaceRoot, operation: Copy) -> str:
    """What would be copied where, in words. Raises ToolError for what cannot be."""
    source, destination = _check_pair(root, operation.source, operation.destination, moving=False)
    return f"copy {source.shown} to {destination.shown}"


def copy(desk: WorkspaceContext, operation: Copy) -> OperationDone:
    """Copy a file or a directory with all it holds. The copy appears whole or not at all."""
    source, destination = _check_pair(desk.root, operation.source, operation.destination, moving=False)
    copied = _TreeCopy()

    def make(dirfd: int, name: str) -> None:
        with desk.root.locate(operation.source) as place:
            require_existing(place)
            copied.add(place, name, dirfd)

    step = ChangeStep(kind="put", path="/".join(destination.parts))
    with os_errors_explained(f"{source.shown} was not copied"):
        summary = f"copy {source.shown} to {destination.shown}"
        notes = desk.history.commit(summary, [destination.parts[:-1]], [step], {0: StagedContent(make)})
    return OperationDone(source.shown, destination.shown, copied.entries, (*copied.notes, *notes))


def _check_pair(
    root: WorkspaceRoot, source_path: str, destination_path: str, moving: bool
) -> tuple[ResolvedPath, ResolvedPath]:
    """Where both are, their descriptors closed again. Raises ToolError for what cannot be moved or copied."""
    with root.locate(source_path, follow=not moving, write=moving) as source:
        require_existing(source)
        if moving:
            _check_not_holding_records(root, source)
    with root.locate(destination_path, follow=False, write=True, parents="imagine") as destination:
        if destination.is_directory:
            raise ToolError(
                f"{destination.shown} is a directory; give the full new path, "
                f"such as {destination.shown}/{escape_for_display(source.parts[-1]) if source.parts else 'name'}"
            )
        if destination.status is not None:
            raise ToolError(f"{destination.shown} exists already and is not overwritten; delete it first")
        if destination.parts[: len(source.parts)] == source.parts and source.is_directory:
            raise ToolError(f"{destination.shown} is inside {source.shown} itself; choose a destination outside of it")
    if source.is_directory:
        _count(root, source_path)
    elif not source.is_file and not moving:
        raise ToolError(f"{source.shown} is not a regular file (a device, pipe or socket) and is not copied")
    return source, destination


def _check_not_holding_records(root: WorkspaceRoot, place: ResolvedPath) -> None:
    if root.holds_hidden(place.parts):
        raise ToolError(f"{place.shown} holds the records of changes, which tools leave alone")


def _count(root: WorkspaceRoot, path: str) -> int:
    """The entries of a tree. Raises ToolError when it is too large or holds a git repository."""
    walk = Walk(root, path, limits=TREE_LIMITS)
    count = 0
    for node in walk:
        count += 1
        if is_git(node.name):
            raise ToolError(
                f"{escape_for_display(path)} holds git's own data ({escape_for_display(node.path)}), which is only read"
            )
    if walk.notes:
        raise ToolError(f"{escape_for_display(path)} was left as it is, it could not be gone through: {walk.notes[0]}")
    return count


class _TreeCopy:
    """Copies regular files and directories; counts what it copied, notes what it left out."""

    def __init__(self) -> None:
        self.entries = 0
        self.notes: list[str] = []
        self._bytes = 0

    def add(self, source: ResolvedPath, name: str, dirfd: int) -> None:
        """Copy ``source`` to ``name`` in ``dirfd``."""
        if source.is_directory:
            self._add_directory(source, name, dirfd)
        elif source.is_file:
            self._add_file(source, name, dirfd)
        else:
            self.notes.append(f"{source.shown} is a link or a special file and was left out")
            return
        self.entries += 1

    def _add_directory(self, source: ResolvedPath, name: str, dirfd: int) -> None:
        os.mkdir(name, dir_fd=dirfd)
        original = open_child_directory(source.name, source.dirfd)
        try:
            copied = open_child_directory(name, dirfd)
            try:
                for child in tree_ops.names_in(original):
                    status = os.stat(child, dir_fd=original, follow_symlinks=False)
                    self.add(ResolvedPath(original, child, (*source.parts, child), status), child, copied)
                os.fchmod(copied, stat.S_IMODE(os.fstat(original).st_mode))
            finally:
                os.close(copied)
        finally:
            os.close(original)

    def _add_file(self, source: ResolvedPath, name: str, dirfd: int) -> None:
        with open_regular(source) as original:
            self._check_size(os.fstat(original).st_size)
            copied = os.open(name, NEW_FILE, 0o600, dir_fd=dirfd)
            try:
                while chunk := os.read(original, tree_ops.CHUNK_BYTES):
                    self._check_size(len(chunk))
                    self._bytes += len(chunk)
                    tree_ops.write_all(copied, chunk)
                os.fchmod(copied, stat.S_IMODE(os.fstat(original).st_mode) & 0o777)
                os.fsync(copied)
            finally:
                os.close(copied)

    def _check_size(self, more: int) -> None:
        if self._bytes + more > MAX_COPY_BYTES:
            raise ToolError(f"more than {MAX_COPY_BYTES} bytes are not copied; use a command for that")
