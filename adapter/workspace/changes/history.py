"""The change history of a workspace: commit changes atomically, list, undo and redo them, without git.

An undo reverts only the recorded change, and keeps later edits of the same file. It is refused if a line to revert no
longer occurs exactly once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias
from uuid import uuid4

from adapter.core.errors import ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations.autorun_files import explain_autorun
from adapter.workspace.changes import journal
from adapter.workspace.changes.change_paths import plan_missing_directories
from adapter.workspace.changes.journal import ChangeRecord, ChangeStep, open_subdirectory
from adapter.workspace.changes.text_codec import decode_for_diff
from adapter.workspace.changes.transactions import StagedContent, perform_change, repair_interrupted_change
from adapter.workspace.changes.undo_plan import UndoPlan, read_file_bytes
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.path_validation import build_temp_name
from adapter.workspace.paths.resolver import WorkspaceRoot

BATCH = "batch"
MAX_DIGITS = 15
"""Maximum number of digits of a change's number."""
UNDO = "undo: "
"""Prefix of the summary of an undo."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change in the history. ``paths``: the paths that it changed. ``time``: in seconds since the epoch."""

    number: int
    summary: str
    paths: tuple[str, ...]
    time: float
    session: str


UndoReview: TypeAlias = Callable[[RecordedChange, Sequence[str], str], None]
"""Called with a change, the paths changed by its undo and the diff. Raises an exception to refuse the undo."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of an undo or redo. ``diff``: its effect on text files."""

    change: RecordedChange
    diff: str
    notes: tuple[str, ...] = ()


class History:
    """The changes of the workspace ``root``, stored below ``home`` (None: the user's state directory).

    Opening the history repairs a change interrupted by a crash; ``recovered`` has notes on the repair.
    """

    def __init__(self, root: WorkspaceRoot, home: str | None = None) -> None:
        self._root = root
        self.store = journal.ChangeJournal(root.path, root.inode, home)
        self._in_batch = False
        self.session = uuid4().hex[:12]
        root.hide(self.store.home)
        self.recovered: tuple[str, ...] = self._recover()

    def close(self) -> None:
        if self.store.is_temporary:
            self._recover()  # a temporary store cannot be found after a crash
        self.store.close()

    def commit(
        self,
        summary: str,
        parents: Sequence[tuple[str, ...]],
        steps: Sequence[journal.ChangeStep],
        stages: Mapping[int, StagedContent],
    ) -> tuple[str, ...]:
        """Create the directories ``parents``, then perform all steps or none, and return notes.

        ``stages``: new contents by index in ``steps``. If this raises ToolError or OSError, nothing has changed.
        """
        with self.store.lock_journal() as store_fd:
            self._repair(store_fd)
            parent_steps = plan_missing_directories(self._root, parents)
            shifted = {index + len(parent_steps): stage for index, stage in stages.items()}
            record = journal.ChangeRecord(
                summary=summary[: journal.MAX_SUMMARY],
                session=self.session,
                time=time.time(),
                steps=(*parent_steps, *steps),
            )
            perform_change(self._root, self.store, record, shifted)
            return self.take_notes()

    def can_keep(self) -> bool:
        """Return whether the disk has room to record a change for undo. In a batch, raise ToolError instead of
        returning False."""
        if self.store.has_room():
            return True
        if self._in_batch:
            raise ToolError("the disk is full, so this change could not be undone later; send the call alone")
        return False

    def remove_for_good(self, path: str) -> None:
        """Remove ``path`` completely or not at all, without a record for undo. This needs no space on the disk."""
        with ExitStack() as stack:
            if self.store.exists:
                store_fd = stack.enter_context(self.store.lock_journal())
                with suppress(OSError):  # a finished change may still wait for disk space
                    self._repair(store_fd)
            resolved = stack.enter_context(self._root.locate(f"./{path}", follow=False, write=True))
            if "/".join(resolved.parts) != path:
                raise ToolError(f"{escape_for_display(path)} has just been replaced by a link; try again")
            stack.enter_context(journal.lock_directory(resolved.dirfd, resolved.display_path))
            doomed = resolved.name
            if resolved.is_directory:  # hidden at once by a rename, then removed entry by entry
                doomed = build_temp_name(resolved.name, "new")
                tree_ops.remove(doomed, resolved.dirfd)
                calls.rename(resolved.name, resolved.dirfd, doomed, resolved.dirfd)
            tree_ops.remove(doomed, resolved.dirfd)

    def list_undoable_changes(self, session: str | None = None) -> tuple[RecordedChange, ...]:
        """Return the changes that can be undone, newest first, of ``session`` or of all sessions."""
        if not self.store.exists:
            return ()
        with self.store.lock_journal() as store_fd:
            return tuple(change for change, _ in self._iter_undoable(store_fd, session))

    def render_diff(self, session: str | None = None) -> str:
        """Return a diff per file, from its content before the oldest undoable change to its current content."""
        if not self.store.exists:
            return ""
        with self.store.lock_journal() as store_fd:
            names = journal.list_changes(store_fd)
            undoable = [(names[change.number], record) for change, record in self._iter_undoable(store_fd, session)]
            return render_net_diff(self._root, store_fd, reversed(undoable))

    def undo(self, session: str | None = None, review: UndoReview | None = None) -> UndoResult:
        """Undo the newest change of ``session`` or of all sessions. Raises ToolError if it cannot be undone.

        ``review``: called before any file is changed; the undo is refused if it raises an exception.
        """
        other = ""
        if self.store.exists:
            with self.store.lock_journal() as store_fd:
                self._repair(store_fd)
                for change, record in self._iter_undoable(store_fd, session):
                    return self._undo(store_fd, change, record, "undo", review)
                other = next((change.summary for change, _ in self._iter_undoable(store_fd, None)), "")
        if other:
            raise ToolError(
                f"nothing to undo in this session. The last change of an earlier session is: {other}. "
                "To undo it, use `adapter undo` or Workspace.history.undo()"
            )
        raise ToolError("nothing to undo: the history of this workspace is empty")

    def redo(self, session: str | None = None, review: UndoReview | None = None) -> UndoResult:
        """Redo the last undone change of ``session`` or of all sessions. ``review``: as in `undo`.

        Raises ToolError if it cannot be redone or another change was made since.
        """
        if self.store.exists:
            with self.store.lock_journal() as store_fd:
                self._repair(store_fd)
                for change, record in self._iter_newest_first(store_fd):
                    if session in (None, change.session) and record.kept_as != "redo":
                        if record.kept_as == "undo":
                            return self._undo(store_fd, change, record, "redo", review)
                        break
        raise ToolError("nothing to redo: nothing was undone since the last change")

    @contextmanager
    def combine_changes(self) -> Iterator[None]:
        """Combine all changes made in the ``with`` body into one change.

        If the body fails or the process dies, all of its changes are reverted. Other threads and processes cannot
        change the workspace until the body ends.
        """
        with self.store.lock_journal() as store_fd:
            self._repair(store_fd)
            before = max(journal.list_changes(store_fd), default=0)
            journal.write_bytes(store_fd, BATCH, str(before).encode(), durable=True)
            journal.sync_directory(store_fd)
            self._in_batch = True
            try:
                yield
            except BaseException:
                self._undo_after(store_fd, before)
                raise
            finally:
                self._in_batch = False
                tree_ops.remove(BATCH, store_fd)

    def take_notes(self) -> tuple[str, ...]:
        """Return and clear the notes on repairs and on changes that cannot be undone."""
        notes = tuple(self.store.notes)
        self.store.notes.clear()
        return notes

    def _recover(self) -> tuple[str, ...]:
        if not self.store.holds(*journal.STATES, BATCH):  # no need to wait for the lock
            return ()
        try:
            with self.store.lock_journal() as store_fd:
                self._repair(store_fd)
        except (OSError, ToolError) as error:
            return (f"could not check for an interrupted change ({error}); the next change will try again",)
        return self.take_notes()

    def _repair(self, store_fd: int) -> None:
        repair_interrupted_change(self._root, self.store, store_fd)
        interrupted = None if self._in_batch else journal.read_bytes(store_fd, BATCH, MAX_DIGITS)
        if interrupted is None:
            return
        if interrupted.isdigit():
            self.store.notes.append("an interrupted batch of changes was rolled back")
            self._undo_after(store_fd, int(interrupted), _refuse_autorun_files)
        tree_ops.remove(BATCH, store_fd)

    def _undo_after(self, store_fd: int, number: int, review: UndoReview | None = None) -> None:
        """Undo the changes after ``number``, newest first. If one cannot be undone, stop there and add a note."""
        for change, record in self._iter_newest_first(store_fd):
            if change.number <= number:
                break
            try:
                self._undo(store_fd, change, record, "nothing", review)
            except (ToolError, OSError) as error:
                self.store.notes.append(f"could not be undone: {change.summary} ({error})")
                break

    def _iter_undoable(
        self, store_fd: int, session: str | None
    ) -> Iterator[tuple[RecordedChange, journal.ChangeRecord]]:
        """Yield the changes that can be undone, newest first."""
        for change, record in self._iter_newest_first(store_fd):
            if record.kept_as != "undo" and session in (None, change.session):
                yield change, record

    def _iter_newest_first(self, store_fd: int) -> Iterator[tuple[RecordedChange, journal.ChangeRecord]]:
        for number, name in reversed(journal.list_changes(store_fd).items()):
            record = journal.read_record(store_fd, name)
            if record is not None:
                paths = tuple(dict.fromkeys(path for step in record.steps for path in (step.destination, step.path)))
                shown = tuple(escape_for_display(path) for path in paths if path)
                summary = record.summary.removeprefix(UNDO)
                yield RecordedChange(number, summary, shown, record.time, record.session), record

    def _undo(
        self,
        store_fd: int,
        change: RecordedChange,
        record: journal.ChangeRecord,
        kept_as: Literal["undo", "redo", "nothing"],
        review: UndoReview | None,
    ) -> UndoResult:
        name = journal.list_changes(store_fd)[change.number]
        inverse = UndoPlan(self._root, store_fd, name, record)
        if review is not None and not inverse.failures:
            review(change, inverse.paths, "".join(reversed(inverse.diffs)))
            shown, inverse = inverse, UndoPlan(self._root, store_fd, name, record)
            if (inverse.steps, inverse.diffs) != (shown.steps, shown.diffs):
                raise ToolError(
                    f"not undone: {change.summary}. The files changed while approval was requested; try again"
                )
        if inverse.failures:
            raise ToolError(
                f"not {'redone' if kept_as == 'redo' else 'undone'}: {change.summary}. "
                + "; ".join(reversed(inverse.failures))
                + ". Nothing was changed"
            )
        parents = [_get_parent(step.destination or step.path) for step in inverse.steps if step.kind != "take"]
        parents += [tuple(path.split("/")) for path in record.removes]
        parent_steps = plan_missing_directories(self._root, parents)
        undo = journal.ChangeRecord(
            summary=change.summary if kept_as == "redo" else f"{UNDO}{change.summary}",
            session=change.session,
            time=time.time(),
            steps=(*parent_steps, *inverse.steps),
            undoes=change.number,
            removes=tuple(inverse.removes),
            kept_as=kept_as,
        )
        stages = {index + len(parent_steps): stage for index, stage in inverse.stages.items()}
        perform_change(self._root, self.store, undo, stages)
        return UndoResult(change, "".join(reversed(inverse.diffs)), tuple(reversed(inverse.notes)))


def _refuse_autorun_files(_change: RecordedChange, paths: Sequence[str], _diff: str) -> None:
    if reason := explain_autorun(paths):
        raise ToolError(f"its undo needs your approval, because {reason}; use `adapter undo`")


def _get_parent(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[:-1])


def render_net_diff(root: WorkspaceRoot, store_fd: int, changes: Iterable[tuple[str, ChangeRecord]]) -> str:
    """Return one diff per file, from its content before ``changes`` to its current content.

    ``changes``: the directory name of each change in the store ``store_fd``, and its record, oldest first.
    """
    net = _NetDiff()
    for name, record in changes:
        with open_subdirectory(store_fd, name) as stored_fd:
            for index, step in enumerate(record.steps):
                net.add(step, read_file_bytes(str(index), stored_fd) if step.before or step.kind == "take" else None)
    return "".join(net.render_diffs(root))


class _NetDiff:
    def __init__(self) -> None:
        self._before: dict[str, bytes | None] = {}  # by the file's original path
        self._first: dict[str, str] = {}  # original path by current path

    def add(self, step: ChangeStep, before: bytes | None) -> None:
        if step.kind == "move":
            below = [path for path in self._first if f"{path}/".startswith(f"{step.path}/")]
            for path in [step.path, *(path for path in below if path != step.path)]:
                self._first[step.destination + path[len(step.path) :]] = self._first.pop(path, path)
        elif step.kind != "directory":
            self._before.setdefault(self._first.setdefault(step.path, step.path), before)

    def render_diffs(self, root: WorkspaceRoot) -> Iterable[str]:
        for path, first in sorted(self._first.items()):
            now = _read_current_content(root, path)
            if path != first:
                yield f"rename from {escape_for_display(first)}\nrename to {escape_for_display(path)}\n"
            if first in self._before and (now, self._before[first]) != (None, None):
                yield render_unified_diff(
                    decode_for_diff(self._before[first], first), decode_for_diff(now, path), escape_for_display(path)
                )


def _read_current_content(root: WorkspaceRoot, path: str) -> bytes | None:
    try:
        with root.locate(f"./{path}", follow=False, parents="assume") as resolved:
            return read_file_bytes(resolved.name, resolved.dirfd) if resolved.dirfd >= 0 and resolved.is_file else None
    except (ToolError, OSError):
        return None
