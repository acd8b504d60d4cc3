"""Delete, move and copy files and trees through descriptors, without following links or overwriting files.

Each operation takes effect by a single rename, so it is atomic and can be undone.
"""

from __future__ import annotations

import os
import stat

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import Copy, Delete, Move, OperationDone
from adapter.workspace.changes.journal import ChangeStep
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.changes.transactions import StagedContent
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.open_flags import NEW_FILE
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.path_validation import is_git
from adapter.workspace.paths.resolved_path import (
    ResolvedPath,
    hold_descriptor,
    open_child_directory,
    open_regular,
    require_existing,
)
from adapter.workspace.paths.resolver import WorkspaceRoot, check_writable
from adapter.workspace.paths.walk import Walk, WalkLimits
from adapter.workspace.workspace_context import WorkspaceContext

TREE_LIMITS = WalkLimits(entries=20_000, depth=64, seconds=30.0)
"""Limits of a tree that a tool call deletes, moves or copies."""
MAX_COPY_BYTES = 1024 * 1024 * 1024
"""Maximum total size of the files copied by a tool call, in bytes."""


def _check_delete(root: WorkspaceRoot, operation: Delete) -> tuple[ResolvedPath, str, dict[str, str]]:
    """Return the resolved path (its descriptor is closed), a summary, and the identity of each file to delete, by path.
    Raises ToolError if the path cannot be deleted."""
    with root.locate(operation.path, follow=False) as resolved:
        _check_removable(root, resolved, operation.path)
    state, display_path = _read_identities(root, resolved), resolved.display_path
    if not resolved.is_directory:
        return resolved, f"delete {display_path}", state
    entries = len(state) - 1
    counted = f"{entries} {'entry' if entries == 1 else 'entries'}"
    if not operation.recursive:
        raise ToolError(
            f"{display_path} is a directory with {counted} and was not deleted; pass recursive=true to delete it all"
        )
    return resolved, f"delete the directory {display_path} and the {counted} in it", state


def plan_delete(context: WorkspaceContext, operation: Delete) -> Plan:
    """Plan to delete a file, a link (not its target) or, if ``recursive``, a directory with its contents.

    If the disk is too full for an undo record, the summary for approval says that the deletion is permanent.
    """
    _, summary, state = _check_delete(context.root, operation)
    with convert_os_errors(f"{escape_for_display(operation.path)} was not deleted"):
        is_undoable = context.history.can_keep()
    if not is_undoable:
        summary += " for good (the disk is full: no undo)"
    return Plan(summary, lambda: _delete(context, operation, is_undoable), state=state)


def _delete(context: WorkspaceContext, operation: Delete, is_undoable: bool) -> OperationDone:
    resolved, summary, state = _check_delete(context.root, operation)
    path = "/".join(resolved.parts)
    with convert_os_errors(f"{resolved.display_path} was not deleted"):
        if is_undoable:
            notes = context.history.commit(summary, (), [ChangeStep(kind="take", path=path)], {})
        else:
            context.history.remove_for_good(path)
            notes = ("this cannot be undone: the disk was too full to record it",)
    context.read_tracker.forget(resolved.parts)
    return OperationDone(resolved.display_path, entries=len(state), notes=notes)


def plan_move_or_copy(context: WorkspaceContext, operation: Move | Copy) -> Plan:
    """Plan a move or a copy. Raises ToolError if the path cannot be moved or copied."""
    source, _, summary = _check_pair(context.root, operation)
    perform = _move if isinstance(operation, Move) else _copy
    return Plan(summary, lambda: perform(context, operation), state=_read_identities(context.root, source))


def _move(context: WorkspaceContext, operation: Move | Copy) -> OperationDone:
    """Rename a path within the workspace. The destination's parents are created, and no file is overwritten."""
    source, destination, summary = _check_pair(context.root, operation)
    _read_identities(context.root, source)
    step = ChangeStep(kind="move", path="/".join(source.parts), destination="/".join(destination.parts))
    with convert_os_errors(f"{source.display_path} was not moved"):
        notes = context.history.commit(summary, [destination.parts[:-1]], [step], {})
    context.read_tracker.move(source.parts, destination.parts)
    return OperationDone(source.display_path, destination.display_path, notes=notes)


def _copy(context: WorkspaceContext, operation: Move | Copy) -> OperationDone:
    """Copy a file, or a directory with its contents. The copy appears atomically."""
    source, destination, summary = _check_pair(context.root, operation)
    _read_identities(context.root, source)
    tree = _TreeCopy()

    def make(dirfd: int, name: str) -> None:
        with context.root.locate(operation.source) as resolved:
            require_existing(resolved)
            tree.add(resolved, name, dirfd)

    step = ChangeStep(kind="put", path="/".join(destination.parts))
    with convert_os_errors(f"{source.display_path} was not copied"):
        notes = context.history.commit(summary, [destination.parts[:-1]], [step], {0: StagedContent(make)})
    shown = source.display_path, destination.display_path
    return OperationDone(*shown, tree.entries, notes=(*tree.notes, *notes))


def _check_pair(root: WorkspaceRoot, operation: Move | Copy) -> tuple[ResolvedPath, ResolvedPath, str]:
    """Return the resolved source and destination, with their descriptors closed, and a summary of the operation. Raises
    ToolError if the source cannot be moved or copied to the destination."""
    moving = isinstance(operation, Move)
    with root.locate(operation.source, follow=not moving) as source:
        if moving:
            _check_removable(root, source, operation.source)
        else:
            require_existing(source)
    with root.locate(operation.destination, follow=False, write=True, parents="assume") as destination:
        display_path = destination.display_path
        if destination.is_directory or (operation.destination.endswith("/") and not source.is_directory):
            name = escape_for_display(source.parts[-1]) if source.parts else "name"
            is_there = "is" if destination.is_directory else "names"
            advice = f"give the full new path, such as {display_path}/{name}"
            raise ToolError(f"{display_path} {is_there} a directory; {advice}")
        if destination.parts == source.parts:
            raise ToolError(f"{display_path} is both source and destination; choose another destination")
        if destination.status is not None:
            raise ToolError(f"{display_path} already exists and was not overwritten; delete it first")
        if destination.parts[: len(source.parts)] == source.parts and source.is_directory:
            raise ToolError(f"{display_path} is inside {source.display_path}; choose a destination outside of it")
    if not (source.is_directory or source.is_file or moving):
        raise ToolError(f"{source.display_path} is not a regular file (a device, pipe or socket) and is not copied")
    verb = "move" if moving else "copy"
    return source, destination, f"{verb} {source.display_path} to {display_path}"


def _check_removable(root: WorkspaceRoot, resolved: ResolvedPath, path: str) -> None:
    require_existing(resolved)
    check_writable(resolved, path)
    if root.holds_hidden(resolved.parts):
        raise ToolError(
            f"{resolved.display_path} contains the change journal, which tools cannot access; use another path"
        )


def _read_identities(root: WorkspaceRoot, resolved: ResolvedPath) -> dict[str, str]:
    """Return the identity of a file, or of each entry in a directory, by path. Raises ToolError if it is too large or a
    repository."""
    path, display_path = "/".join(resolved.parts), resolved.display_path
    state = {path: tree_ops.build_identity(resolved.status)} if resolved.status is not None else {}
    if not resolved.is_directory:
        return state
    walk = Walk(root, f"./{path}", limits=TREE_LIMITS)
    for node in walk:
        if is_git(node.name):
            raise ToolError(
                f"{display_path} contains git's own data ({escape_for_display(node.path)}), "
                "which is read-only for tools; choose a path without it, or ask the user"
            )
        state[f"{path}/{node.path}"] = tree_ops.build_identity(node.read_status())
    if walk.notes:
        raise ToolError(f"{display_path} was not changed, because not all of it could be checked: {walk.notes[0]}")
    return state


class _TreeCopy:
    """Copies regular files and directories, counts the entries, and notes the entries left out."""

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
            self.notes.append(f"{source.display_path} is a link or a special file and was left out")
            return
        self.entries += 1

    def _add_directory(self, source: ResolvedPath, name: str, dirfd: int) -> None:
        calls.mkdir(name, dirfd)
        with (
            hold_descriptor(open_child_directory(source.name, source.dirfd)) as original,
            hold_descriptor(open_child_directory(name, dirfd)) as copied,
        ):
            for child in tree_ops.list_names(original):
                status = calls.stat(child, original)
                self.add(ResolvedPath(original, child, (*source.parts, child), status), child, copied)
            calls.fchmod(copied, stat.S_IMODE(calls.fstat(original).st_mode))

    def _add_file(self, source: ResolvedPath, name: str, dirfd: int) -> None:
        with open_regular(source) as original:
            self._check_size(os.fstat(original).st_size)
            with hold_descriptor(calls.open_file(name, dirfd, NEW_FILE, 0o600)) as copied:
                while chunk := os.read(original, tree_ops.CHUNK_BYTES):
                    self._check_size(len(chunk))
                    self._bytes += len(chunk)
                    tree_ops.write_all(copied, chunk)
                calls.fchmod(copied, stat.S_IMODE(calls.fstat(original).st_mode) & 0o777)
                os.fsync(copied)

    def _check_size(self, more: int) -> None:
        if self._bytes + more > MAX_COPY_BYTES:
            raise ToolError(f"the copy is larger than {MAX_COPY_BYTES} bytes; copy it with a command")
