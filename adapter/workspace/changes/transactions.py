"""Several steps as one change: all of them, or, whatever fails or dies on the way, none.

The name of the store's directory says how far a change has come, and so what
is to be done about one whose process died:

``staging``  Directories are made. Beside each path what is new lies ready as ``.new``, on disk, and
             the file to be replaced has a second name, ``.old``. Repair: remove these.
``moving``   Each ``.new`` takes its name, what is taken away becomes ``.old``: renames alone, which
             need no space. Repair: everything back, the old file itself with its times and mode.
``closing``  The change is made. What was there before goes from ``.old`` into the store. Repair: go on.

A state is left only when all of it is on disk. Paths are resolved anew for
each step, and one that has become a link is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.changes.change_paths import ChangePaths, PathGoneError, remove_empty, transfer
from adapter.workspace.changes.journal import (
    MAX_KEPT_BYTES,
    STATES,
    ChangeJournal,
    ChangeRecord,
    ChangeStep,
    State,
    forget_surplus,
    inside,
    numbered,
    read_record,
    sync_directory,
    write_bytes,
    write_record,
)
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.name_rules import temp_name
from adapter.workspace.paths.resolved_path import ResolvedPath, check_directory_writable
from adapter.workspace.paths.resolver import WorkspaceRoot

MAX_AFTER_BYTES = 1024 * 1024
"""Up to here the new text is kept too: an undo can then be merged with later changes of the file."""


@dataclass(frozen=True, slots=True)
class StagedContent:
    """How to make what a ``put`` puts: ``make(dirfd, name)``. ``text``: its bytes, where they are few."""

    make: Callable[[int, str], None]
    text: bytes | None = None


def perform(
    root: WorkspaceRoot, store: ChangeJournal, record: ChangeRecord, stages: Mapping[int, StagedContent]
) -> None:
    """Do all steps or none. ``stages`` are those of the ``put`` steps, by index.

    No path may occur twice, and nothing may be in need of repair. Raises ToolError or OSError; then all is as before.
    """
    with store.locked() as held:
        change = _FileChange(root, held, record)
        try:
            change.begin()
            with change.places.locked():
                change.stage(stages)
                change.move()
        except BaseException as error:
            try:
                change.take_back()
            except (OSError, ToolError) as second:
                raise ToolError(
                    f"the change failed ({error}) and could not be taken back ({second}). It will be before the "
                    "next change, or when the workspace is opened again; until then files may be half changed"
                ) from error
            raise
        try:
            change.close()
        except (OSError, ToolError) as error:
            store.notes.append(f"the change was made, but cannot be undone yet: {error}")
        store.notes += change.notes


def repair(root: WorkspaceRoot, store: ChangeJournal, held: int) -> None:
    """Put right what a process that died left half done; what was done about it goes to the store's notes."""
    for state in STATES:
        if tree_ops.status_of(state, held) is None:
            continue
        record = read_record(held, state)
        if record is None:  # the record comes first: without one nothing was done
            tree_ops.remove(state, held)
            continue
        change = _FileChange(root, held, record, state)
        if state == "closing":
            change.close()
            store.notes.append(f"a change was cut off when it was made already, and is complete: {record.summary}")
        else:
            change.take_back()
            store.notes.append(f"a change was cut off, and everything is as it was before it: {record.summary}")
        store.notes += change.notes


class _FileChange:
    """One change on its way through the states. Every method can be repeated after a crash."""

    def __init__(self, root: WorkspaceRoot, store: int, record: ChangeRecord, state: State | None = None) -> None:
        self.places = ChangePaths(root, record)
        self._store = store
        self._record = record
        self._state = state
        # A single rename is never half done, so only several need to survive a power failure in order.
        self._durable = len(record.steps) > 1
        self.notes: list[str] = []

    # --------------------------------------------------------------------- forward

    def begin(self) -> None:
        """The record first, so that a crash leaves nothing that it does not name; then the directories."""
        os.mkdir("staging", 0o700, dir_fd=self._store)
        self._state = "staging"
        write_record(self._store, "staging", self._record, self._durable)
        if self._durable:
            sync_directory(self._store)
        for step in self._record.steps:
            if step.kind == "directory":
                with self.places.at(step.path) as place, suppress(FileExistsError):
                    check_directory_writable(place.dirfd, place.parts)
                    os.mkdir(place.name, dir_fd=place.dirfd)

    def stage(self, stages: Mapping[int, StagedContent]) -> None:
        for index, step in enumerate(self._record.steps):
            if step.kind != "directory":
                with self.places.at(step.path) as place:
                    self._stage(index, step, place, stages)
        if self._durable:
            self.places.sync()

    def _stage(self, index: int, step: ChangeStep, place: ResolvedPath, stages: Mapping[int, StagedContent]) -> None:
        check_directory_writable(place.dirfd, place.parts)
        for suffix in ("new", "old"):
            tree_ops.remove(temp_name(place.name, suffix), place.dirfd)
        if step.kind == "move":
            return
        if (step.kind == "put" or step.before) and tree_ops.fingerprint(place.name, place.dirfd) != step.before:
            raise ToolError(f"{place.shown} changed in the meantime and was not written; read it again")
        if step.kind == "take":
            return
        if step.before:
            _check_only_name(place)
            tree_ops.clone(place.name, place.dirfd, temp_name(place.name, "old"), place.dirfd)
        stage = stages[index]
        stage.make(place.dirfd, temp_name(place.name, "new"))
        if stage.text is not None and len(stage.text) <= MAX_AFTER_BYTES and self._record.kept_as != "nothing":
            with inside(self._store, "staging") as descriptor:
                write_bytes(descriptor, f"{index}.after", stage.text)

    def move(self) -> None:
        self._enter("moving")
        for step in self._record.steps:
            if step.kind != "directory":
                self._move(step)
        self.places.sync()
        self._enter("closing")

    def _move(self, step: ChangeStep) -> None:
        with self.places.at(step.path) as place:
            new, old = temp_name(place.name, "new"), temp_name(place.name, "old")
            if step.kind == "take":
                os.rename(place.name, old, src_dir_fd=place.dirfd, dst_dir_fd=place.dirfd)
            elif step.kind == "move":
                with self.places.at(step.destination) as destination:
                    tree_ops.rename_to_free(place.name, place.dirfd, destination.name, destination.dirfd)
            elif step.before is None:
                tree_ops.rename_to_free(new, place.dirfd, place.name, place.dirfd)
            else:
                if tree_ops.status_of(place.name, place.dirfd) is None:
                    raise ToolError(f"{place.shown} was removed in the meantime and was not written")
                os.rename(new, place.name, src_dir_fd=place.dirfd, dst_dir_fd=place.dirfd)

    def close(self) -> None:
        """Keep what was there before, or forget it; and forget the change that this one takes back."""
        name = "" if self._record.kept_as == "nothing" else self._keep_all()
        for step in self._record.steps if not name else ():
            if step.kind in ("put", "take"):
                with suppress(PathGoneError), self.places.again(step.path) as place:
                    tree_ops.remove(temp_name(place.name, "old"), place.dirfd)
        for path in self._record.removes:
            with suppress(PathGoneError, OSError), self.places.again(path) as place:  # an empty directory does no harm
                remove_empty(place)
        undone = numbered(self._store).get(self._record.undoes or 0)
        if undone:
            tree_ops.remove(undone, self._store)
        if name:
            os.rename("closing", name, src_dir_fd=self._store, dst_dir_fd=self._store)
            forget_surplus(self._store)
        else:
            tree_ops.remove("closing", self._store)
        self._state = None

    def _keep_all(self) -> str:
        """The name under which the change is kept from now on."""
        size = 0
        steps: list[ChangeStep] = []
        back = "redone" if self._record.kept_as == "undo" else "undone"
        with inside(self._store, "closing") as kept:
            for index, step in enumerate(self._record.steps):
                steps.append(self._keep(index, step, kept, size))
                size += tree_ops.size_of(str(index), kept) if steps[-1].kept else 0
                if not steps[-1].kept and (step.kind == "take" or (step.kind == "put" and step.before)):
                    self.notes.append(
                        f"{escape_for_display(step.path)} was too large to be kept: this change cannot be {back}"
                    )
        self._record = self._record.model_copy(update={"steps": tuple(steps)})
        write_record(self._store, "closing", self._record, self._durable)
        return f"{max(numbered(self._store), default=0) + 1:08d}-{size}"

    def _keep(self, index: int, step: ChangeStep, kept: int, size: int) -> ChangeStep:
        """Bring ``.old`` into the store, when it is not there yet and not too large."""
        if step.kind not in ("put", "take"):
            return step
        after = step.after
        with suppress(PathGoneError), self.places.again(step.path) as place:
            old = temp_name(place.name, "old")
            after = step.after or (tree_ops.fingerprint(place.name, place.dirfd) if step.kind == "put" else None)
            if tree_ops.status_of(old, place.dirfd) is not None:
                if tree_ops.status_of(str(index), kept) is None:
                    if tree_ops.size_of(old, place.dirfd) + size <= MAX_KEPT_BYTES:
                        with suppress(OSError):
                            transfer(old, place.dirfd, str(index), kept)
                    tree_ops.remove(f"{index}.part", kept)
                tree_ops.remove(old, place.dirfd)
        return step.model_copy(update={"after": after, "kept": tree_ops.status_of(str(index), kept) is not None})

    # -------------------------------------------------------------------- backward

    def take_back(self) -> None:
        """Everything as it was before, unless the change is made already. Nothing here needs space on the disk."""
        if self._state is None or tree_ops.status_of("closing", self._store) is not None:
            return
        with ExitStack() as stack:
            if self._state == "moving":
                stack.enter_context(self.places.locked())
            for step in reversed(self._record.steps):
                with suppress(PathGoneError), self.places.again(step.path) as place:
                    if step.kind == "directory":
                        remove_empty(place)
                    elif self._state == "moving":
                        self._move_back(step, place)
                    elif step.kind == "put":
                        self._remove_staged(place)
        if self._state == "moving":
            self.places.sync()
        tree_ops.remove(self._state, self._store)
        self._state = None

    def _move_back(self, step: ChangeStep, place: ResolvedPath) -> None:
        name, dirfd = place.name, place.dirfd
        new, old = temp_name(name, "new"), temp_name(name, "old")
        if step.kind == "move":
            with suppress(PathGoneError), self.places.again(step.destination) as destination:
                self._rename_back(place, destination)
        elif step.kind == "take":
            if tree_ops.same_file(old, dirfd, name, dirfd):
                tree_ops.remove(old, dirfd)
            elif tree_ops.status_of(old, dirfd) is not None:
                self._restore(place, is_free=tree_ops.status_of(name, dirfd) is None)
        elif tree_ops.status_of(new, dirfd) is not None:
            if step.before is None and tree_ops.same_file(new, dirfd, name, dirfd):
                os.unlink(name, dir_fd=dirfd)
            self._remove_staged(place)
        elif step.before is None:
            if step.after is None or tree_ops.fingerprint(name, dirfd) == step.after:
                tree_ops.remove(name, dirfd)
            elif tree_ops.status_of(name, dirfd) is not None:
                self.notes.append(f"{place.shown} was changed since and is still there")
        elif tree_ops.status_of(old, dirfd) is not None:
            self._restore(place, is_free=tree_ops.fingerprint(name, dirfd) in (step.after, None))

    def _rename_back(self, source: ResolvedPath, destination: ResolvedPath) -> None:
        if tree_ops.status_of(destination.name, destination.dirfd) is None:
            return
        if tree_ops.status_of(source.name, source.dirfd) is None:
            tree_ops.rename_to_free(destination.name, destination.dirfd, source.name, source.dirfd)
        elif tree_ops.same_file(source.name, source.dirfd, destination.name, destination.dirfd):
            os.unlink(destination.name, dir_fd=destination.dirfd)

    def _restore(self, place: ResolvedPath, is_free: bool) -> None:
        """``.old`` gets its name back, unless somebody has used the name since."""
        old = temp_name(place.name, "old")
        if is_free:
            os.rename(old, place.name, src_dir_fd=place.dirfd, dst_dir_fd=place.dirfd)
            return
        with suppress(FileExistsError):
            os.mkdir("rescued", 0o700, dir_fd=self._store)
        with inside(self._store, "rescued") as rescued:
            kept = f"{len(tree_ops.names_in(rescued))}-{place.name}"[:200]
            transfer(old, place.dirfd, kept, rescued)
            tree_ops.remove(old, place.dirfd)
        self.notes.append(f"{place.shown} was changed since and left; what was there before is kept as rescued/{kept}")

    def _remove_staged(self, place: ResolvedPath) -> None:
        for suffix in ("new", "old"):
            tree_ops.remove(temp_name(place.name, suffix), place.dirfd)

    def _enter(self, state: State) -> None:
        assert self._state is not None
        if self._durable:
            with inside(self._store, self._state) as descriptor:
                sync_directory(descriptor)
        os.rename(self._state, state, src_dir_fd=self._store, dst_dir_fd=self._store)
        self._state = state
        if self._durable:
            sync_directory(self._store)


def _check_only_name(place: ResolvedPath) -> None:
    """Raises ToolError when the file has another name, which a new file in its place would not have."""
    status = tree_ops.status_of(place.name, place.dirfd)
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise ToolError(
            f"{place.shown} has {status.st_nlink} names (hard links), and a change would be seen under this one alone: "
            "it was not written. Ask the user to make it a file of its own (copy it, move the copy to its name)"
        )
