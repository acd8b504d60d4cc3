"""Perform several steps as one atomic change: all or none, even if the process dies during the change.

The name of the change's directory in the journal is its state, which determines the repair after a crash:

``staging``  Directories are created. Next to each path, the new content is on disk as ``.new``, and the file to be
             replaced has a second name, ``.old``. Repair: remove these.
``moving``   Each ``.new`` takes its name, removed paths become ``.old``: renames only, which need no space.
             Repair: restore everything, including the old file itself with its times and mode.
``closing``  The change is done. The old content moves from ``.old`` into the journal. Repair: continue.

A state ends only when all of its data is on disk. Each step resolves its path again, and refuses a path that has become
a link.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.changes import journal
from adapter.workspace.changes.change_paths import ChangePaths, PathGoneError, remove_empty, transfer
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.path_validation import build_temp_name
from adapter.workspace.paths.resolved_path import ResolvedPath, check_directory_writable
from adapter.workspace.paths.resolver import WorkspaceRoot

MAX_AFTER_BYTES = 1024 * 1024
"""Maximum size of new text stored in the journal, in bytes. An undo needs the text to keep later edits of the file."""


@dataclass(frozen=True, slots=True)
class StagedContent:
    """New content of a ``put`` step. ``make(dirfd, name)`` writes it. ``text`` is the content, or None if unknown."""

    make: Callable[[int, str], None]
    text: bytes | None = None


def perform_change(
    root: WorkspaceRoot, store: journal.ChangeJournal, record: journal.ChangeRecord, stages: Mapping[int, StagedContent]
) -> None:
    """Perform all steps of ``record`` or none. ``stages``: content of the ``put`` steps, by index.

    No path may occur twice, and no repair may be pending. If this raises ToolError or OSError, nothing has changed,
    unless the message states that the change could not be reverted.
    """
    with store.lock_journal() as store_fd:
        change = _FileChange(root, store_fd, record)
        try:
            change.begin()
            with change.paths.lock_directories():
                change.stage(stages)
                change.move()
        except BaseException as error:
            try:
                change.roll_back()
            except (OSError, ToolError) as second:
                raise ToolError(
                    f"the change failed ({error}) and could not be reverted ({second}). It will be reverted before the "
                    "next change, or when the workspace is opened again; until then, files may be partly changed"
                ) from error
            raise
        try:
            change.close()
        except (OSError, ToolError) as error:
            store.notes.append(f"the change was made, but cannot be undone yet: {error}")
        store.notes += change.notes


def repair_interrupted_change(root: WorkspaceRoot, store: journal.ChangeJournal, store_fd: int) -> None:
    """Finish or revert a change interrupted by a crash, and add notes on it to ``store.notes``."""
    for state in journal.STATES:
        if tree_ops.find_status(state, store_fd) is None:
            continue
        record = journal.read_record(store_fd, state)
        if record is None:  # without a record, which is written first, nothing was done
            tree_ops.remove(state, store_fd)
            continue
        change = _FileChange(root, store_fd, record, state)
        if state == "closing" or change.skip_to_closing():
            change.close()
            store.notes.append(f"an interrupted change was already made, and was completed: {record.summary}")
        else:
            change.roll_back()
            store.notes.append(f"an interrupted change was rolled back: {record.summary}")
        store.notes += change.notes


class _FileChange:
    """A change in progress. Every method can be repeated after a crash."""

    def __init__(
        self, root: WorkspaceRoot, store: int, record: journal.ChangeRecord, state: journal.State | None = None
    ) -> None:
        self.paths = ChangePaths(root, record)
        self._store = store
        self._record = record
        self._state = state
        # A single rename is atomic, so only the record must reach the disk before it. Several must be in order.
        self._durable = len(record.steps) > 1
        self.notes: list[str] = []

    def begin(self) -> None:
        """Record the change in the journal, then make directories. In this order, a crash leaves nothing unrecorded."""
        calls.mkdir("staging", self._store, 0o700)
        self._state = "staging"
        journal.write_record(self._store, "staging", self._record, durable=True)
        if self._durable:
            journal.sync_directory(self._store)
        for step in self._record.steps:
            if step.kind == "directory":
                with self.paths.resolve(step.path) as resolved, suppress(FileExistsError):
                    check_directory_writable(resolved.dirfd, resolved.parts)
                    calls.mkdir(resolved.name, resolved.dirfd)

    def stage(self, stages: Mapping[int, StagedContent]) -> None:
        for index, step in enumerate(self._record.steps):
            if step.kind != "directory":
                with self.paths.resolve(step.path) as resolved:
                    self._stage(index, step, resolved, stages)
        if self._durable:
            self.paths.sync_directories()

    def _stage(
        self, index: int, step: journal.ChangeStep, resolved: ResolvedPath, stages: Mapping[int, StagedContent]
    ) -> None:
        check_directory_writable(resolved.dirfd, resolved.parts)
        for suffix in ("new", "old"):
            tree_ops.remove(build_temp_name(resolved.name, suffix), resolved.dirfd)
        if step.kind == "move":
            return
        if (step.kind == "put" or step.before) and tree_ops.compute_fingerprint(
            resolved.name, resolved.dirfd
        ) != step.before:
            raise ToolError(
                f"another program has just changed {resolved.display_path}, so it was not written; read it again"
            )
        if step.kind == "take":
            return
        if step.before:
            _check_only_name(resolved)
            tree_ops.clone(resolved.name, resolved.dirfd, build_temp_name(resolved.name, "old"), resolved.dirfd)
        stage = stages[index]
        stage.make(resolved.dirfd, build_temp_name(resolved.name, "new"))
        if stage.text is not None and len(stage.text) <= MAX_AFTER_BYTES and self._record.kept_as != "nothing":
            with journal.open_subdirectory(self._store, "staging") as descriptor:
                journal.write_bytes(descriptor, f"{index}.after", stage.text)

    def move(self) -> None:
        self._enter("moving", is_durable=True)
        for step in self._record.steps:
            if step.kind != "directory":
                self._move(step)
        self.paths.sync_directories()
        self._enter("closing", is_durable=self._durable)

    def _move(self, step: journal.ChangeStep) -> None:
        with self.paths.resolve(step.path) as resolved:
            new, old = build_temp_name(resolved.name, "new"), build_temp_name(resolved.name, "old")
            if step.kind == "take":
                calls.rename(resolved.name, resolved.dirfd, old, resolved.dirfd)
            elif step.kind == "move":
                with self.paths.resolve(step.destination) as destination:
                    tree_ops.rename_no_replace(resolved.name, resolved.dirfd, destination.name, destination.dirfd)
            elif step.before is None:
                tree_ops.rename_no_replace(new, resolved.dirfd, resolved.name, resolved.dirfd)
            else:
                if tree_ops.find_status(resolved.name, resolved.dirfd) is None:
                    raise ToolError(
                        f"another program has just removed {resolved.display_path}, so it was not written; list its "
                        "directory, then try again"
                    )
                calls.rename(new, resolved.dirfd, resolved.name, resolved.dirfd)

    def close(self) -> None:
        """End the change. Keep the old content if it is needed for undo. If the change undoes an earlier one, drop the
        earlier one's record."""
        name = "" if self._record.kept_as == "nothing" else self._keep_all()
        for step in self._record.steps if not name else ():
            if step.kind in ("put", "take"):
                with suppress(PathGoneError), self.paths.resolve_for_repair(step.path) as resolved:
                    tree_ops.remove(build_temp_name(resolved.name, "old"), resolved.dirfd)
        for path in self._record.removes:
            with (
                suppress(PathGoneError, OSError),
                self.paths.resolve_for_repair(path) as resolved,
            ):  # an empty directory that remains does no harm
                remove_empty(resolved)
        undone = journal.list_changes(self._store).get(self._record.undoes or 0)
        if undone:
            tree_ops.remove(undone, self._store)
        if name:
            calls.rename("closing", self._store, name, self._store)
            journal.drop_oldest(self._store)
        else:
            tree_ops.remove("closing", self._store)
        self._state = None

    def _keep_all(self) -> str:
        """Store the old content of all steps, and return the directory name of the finished change."""
        size = 0
        steps: list[journal.ChangeStep] = []
        undone = "redone" if self._record.kept_as == "undo" else "undone"
        with journal.open_subdirectory(self._store, "closing") as stored_fd:
            for index, step in enumerate(self._record.steps):
                steps.append(self._keep(index, step, stored_fd, size))
                size += tree_ops.measure_size(str(index), stored_fd) if steps[-1].kept else 0
                if not steps[-1].kept and (step.kind == "take" or (step.kind == "put" and step.before)):
                    self.notes.append(
                        f"{escape_for_display(step.path)} was too large to store: this change cannot be {undone}"
                    )
        self._record = self._record.model_copy(update={"steps": tuple(steps)})
        journal.write_record(self._store, "closing", self._record, self._durable)
        return f"{max(journal.list_changes(self._store), default=0) + 1:08d}-{size}"

    def _keep(self, index: int, step: journal.ChangeStep, stored_fd: int, size: int) -> journal.ChangeStep:
        """Move the ``.old`` file of a step into the journal unless it is too large, and return the updated step."""
        if step.kind not in ("put", "take"):
            return step
        after = step.after
        with suppress(PathGoneError), self.paths.resolve_for_repair(step.path) as resolved:
            old = build_temp_name(resolved.name, "old")
            after = step.after or (
                tree_ops.compute_fingerprint(resolved.name, resolved.dirfd) if step.kind == "put" else None
            )
            if tree_ops.find_status(old, resolved.dirfd) is not None:
                if tree_ops.find_status(str(index), stored_fd) is None:
                    if tree_ops.measure_size(old, resolved.dirfd) + size <= journal.MAX_KEPT_BYTES:
                        with suppress(OSError):
                            transfer(old, resolved.dirfd, str(index), stored_fd)
                    tree_ops.remove(f"{index}.part", stored_fd)
                tree_ops.remove(old, resolved.dirfd)
        return step.model_copy(update={"after": after, "kept": tree_ops.find_status(str(index), stored_fd) is not None})

    def skip_to_closing(self) -> bool:
        """If the change is to one file, which already has its new content, enter the state ``closing`` and return
        True."""
        if self._state != "moving" or not self._is_made():
            return False
        self._enter("closing", is_durable=False)
        return True

    def _is_made(self) -> bool:
        steps = [step for step in self._record.steps if step.kind != "directory"]
        if len(steps) != 1 or steps[0].kind != "put" or steps[0].after is None:
            return False
        with suppress(PathGoneError), self.paths.resolve_for_repair(steps[0].path) as resolved:
            is_new = tree_ops.compute_fingerprint(resolved.name, resolved.dirfd) == steps[0].after
            return is_new and tree_ops.find_status(build_temp_name(resolved.name, "new"), resolved.dirfd) is None
        return False

    def roll_back(self) -> None:
        """Restore the old content, unless the change is already complete. This needs no space on the disk."""
        if self._state is None or tree_ops.find_status("closing", self._store) is not None:
            return
        with ExitStack() as stack:
            if self._state == "moving":
                stack.enter_context(self.paths.lock_directories())
            for step in reversed(self._record.steps):
                with suppress(PathGoneError), self.paths.resolve_for_repair(step.path) as resolved:
                    if step.kind == "directory":
                        remove_empty(resolved)
                    elif self._state == "moving":
                        self._move_back(step, resolved)
                    elif step.kind == "put":
                        self._remove_staged(resolved)
        if self._state == "moving":
            self.paths.sync_directories()
        tree_ops.remove(self._state, self._store)
        self._state = None

    def _move_back(self, step: journal.ChangeStep, resolved: ResolvedPath) -> None:
        name, dirfd = resolved.name, resolved.dirfd
        new, old = build_temp_name(name, "new"), build_temp_name(name, "old")
        if step.kind == "move":
            with suppress(PathGoneError), self.paths.resolve_for_repair(step.destination) as destination:
                self._rename_back(resolved, destination)
        elif step.kind == "take":
            if tree_ops.is_same_file(old, dirfd, name, dirfd):
                tree_ops.remove(old, dirfd)
            elif tree_ops.find_status(old, dirfd) is not None:
                self._restore(resolved, is_free=tree_ops.find_status(name, dirfd) is None)
        elif tree_ops.find_status(new, dirfd) is not None:
            if step.before is None and tree_ops.is_same_file(new, dirfd, name, dirfd):
                calls.unlink(name, dirfd)
            self._remove_staged(resolved)
        elif step.before is None:
            if step.after is None or tree_ops.compute_fingerprint(name, dirfd) == step.after:
                tree_ops.remove(name, dirfd)
            elif tree_ops.find_status(name, dirfd) is not None:
                self.notes.append(f"{resolved.display_path} was changed since and was kept")
        elif tree_ops.find_status(old, dirfd) is not None:
            self._restore(resolved, is_free=tree_ops.compute_fingerprint(name, dirfd) in (step.after, None))

    def _rename_back(self, source: ResolvedPath, destination: ResolvedPath) -> None:
        if tree_ops.find_status(destination.name, destination.dirfd) is None:
            return
        if tree_ops.find_status(source.name, source.dirfd) is None:
            tree_ops.rename_no_replace(destination.name, destination.dirfd, source.name, source.dirfd)
        elif tree_ops.is_same_file(source.name, source.dirfd, destination.name, destination.dirfd):
            calls.unlink(destination.name, destination.dirfd)

    def _restore(self, resolved: ResolvedPath, is_free: bool) -> None:
        """Rename the ``.old`` file to its original name, or store it in ``rescued`` if that name is taken."""
        old = build_temp_name(resolved.name, "old")
        if is_free:
            calls.rename(old, resolved.dirfd, resolved.name, resolved.dirfd)
            return
        with suppress(FileExistsError):
            calls.mkdir("rescued", self._store, 0o700)
        with journal.open_subdirectory(self._store, "rescued") as rescued:
            name = f"{len(tree_ops.list_names(rescued))}-{resolved.name}"[:200]
            transfer(old, resolved.dirfd, name, rescued)
            tree_ops.remove(old, resolved.dirfd)
        self.notes.append(
            f"{resolved.display_path} was changed since and was kept; its old content is stored as rescued/{name}"
        )

    def _remove_staged(self, resolved: ResolvedPath) -> None:
        for suffix in ("new", "old"):
            tree_ops.remove(build_temp_name(resolved.name, suffix), resolved.dirfd)

    def _enter(self, state: journal.State, *, is_durable: bool) -> None:
        assert self._state is not None
        if self._durable:
            with journal.open_subdirectory(self._store, self._state) as descriptor:
                journal.sync_directory(descriptor)
        calls.rename(self._state, self._store, state, self._store)
        self._state = state
        if is_durable:
            journal.sync_directory(self._store)


def _check_only_name(resolved: ResolvedPath) -> None:
    """Raise ToolError if the file has several hard links. Only one of them would get the new content."""
    status = tree_ops.find_status(resolved.name, resolved.dirfd)
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise ToolError(
            f"{resolved.display_path} has {status.st_nlink} names (hard links). It was not written, because only this "
            "name would get the new content. Ask the user to replace it with a separate copy of itself"
        )
