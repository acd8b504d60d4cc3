"""The changes of a workspace: made as one, listed, undone without git, newest first, and redone.

An undo takes back only what the change did. A file that somebody changed since
is merged, when each of the lines to be taken back is still there, exactly and
once; else the undo is refused and nothing is done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.changes.change_paths import missing_directories
from adapter.workspace.changes.journal import (
    STATES,
    ChangeJournal,
    ChangeRecord,
    ChangeStep,
    lock,
    numbered,
    read_bytes,
    read_record,
    sync_directory,
    write_bytes,
)
from adapter.workspace.changes.net_diff import net_diff
from adapter.workspace.changes.transactions import StagedContent, perform, repair
from adapter.workspace.changes.undo_plan import UndoPlan
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.name_rules import temp_name
from adapter.workspace.paths.resolver import WorkspaceRoot

BATCH = "batch"
UNDO = "undo: "
"""How the summary of the record of an undo begins."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change that was made. ``paths`` are those it touched, ``time`` seconds since the epoch."""

    number: int
    summary: str
    paths: tuple[str, ...]
    time: float
    session: str


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo took back; ``diff`` is what it did to the text files."""

    change: RecordedChange
    diff: str
    notes: tuple[str, ...] = ()


class History:
    """The changes of the workspace ``root``, kept below ``home`` (None: the user's state directory).

    What a process that died left half done is put right at once; ``recovered`` says what was.
    """

    def __init__(self, root: WorkspaceRoot, home: str | None = None) -> None:
        self._root = root
        self.store = ChangeJournal(root.path, root.inode, home)
        self._in_batch = False
        self.session = uuid4().hex[:12]
        root.hide(self.store.home)
        self.recovered: tuple[str, ...] = self._recover()

    def close(self) -> None:
        if self.store.is_temporary:
            self._recover()  # nobody finds it later
        self.store.close()

    def commit(
        self,
        summary: str,
        parents: Sequence[tuple[str, ...]],
        steps: Sequence[ChangeStep],
        stages: Mapping[int, StagedContent],
    ) -> tuple[str, ...]:
        """Do all steps or none, with the directories ``parents`` made first. ``stages``: by index in ``steps``.

        Returns notes. Raises ToolError or OSError; then all is as before.
        """
        with self.store.locked() as held:
            self._repair(held)
            made = missing_directories(self._root, parents)
            shifted = {index + len(made): stage for index, stage in stages.items()}
            record = ChangeRecord(summary=summary, session=self.session, time=time.time(), steps=(*made, *steps))
            perform(self._root, self.store, record, shifted)
            return self.take_notes()

    def can_keep(self) -> bool:
        """Whether a change can be recorded now, so that it can be undone. Raises ToolError in a batch where not."""
        if self.store.has_room():
            return True
        if self._in_batch:
            raise ToolError("the disk is full, so that this could not be taken back; send it alone")
        return False

    def remove_for_good(self, path: str) -> None:
        """Take away what is at ``path`` without a record, whole or not at all. Needs no room on the disk."""
        with ExitStack() as stack:
            if self.store.exists:
                held = stack.enter_context(self.store.locked())
                with suppress(OSError):  # what is made already and waits for room to be recorded
                    self._repair(held)
            place = stack.enter_context(self._root.locate(f"./{path}", follow=False, write=True))
            if "/".join(place.parts) != path:
                raise ToolError(f"{escape_for_display(path)} changed into a link in the meantime; try again")
            beside = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place.dirfd)  # a lock belongs to one open()
            stack.callback(os.close, beside)
            lock(beside, place.shown)
            away = place.name
            if place.is_directory:  # gone whole from sight, before it goes piece by piece
                away = temp_name(place.name, "new")
                tree_ops.remove(away, place.dirfd)
                os.rename(place.name, away, src_dir_fd=place.dirfd, dst_dir_fd=place.dirfd)
            tree_ops.remove(away, place.dirfd)

    def changes(self, session: str | None = None) -> tuple[RecordedChange, ...]:
        """The changes that can be undone, newest first; of one session or of all."""
        if not self.store.exists:
            return ()
        with self.store.locked() as held:
            return tuple(change for change, _ in self._made(held, session))

    def diff(self, session: str | None = None) -> str:
        """What the changes that can be undone have made of the files, all together, against what is there now."""
        if not self.store.exists:
            return ""
        with self.store.locked() as held:
            names = numbered(held)
            made = [(names[change.number], record) for change, record in self._made(held, session)]
            return net_diff(self._root, held, reversed(made))

    def undo(self, session: str | None = None) -> UndoResult:
        """Take back the newest change, of ``session`` or of all. Raises ToolError when that cannot be done."""
        if not self.store.exists:
            raise ToolError("there is nothing to undo: no change of this workspace is recorded")
        with self.store.locked() as held:
            self._repair(held)
            for change, record in self._made(held, session):
                return self._undo(held, change, record, "undo")
        raise ToolError("there is nothing to undo: no change of this workspace is recorded")

    def redo(self, session: str | None = None) -> UndoResult:
        """Make the change again that was undone last, unless others were made since, of ``session`` or of all.

        Raises ToolError when that cannot be done.
        """
        if self.store.exists:
            with self.store.locked() as held:
                self._repair(held)
                for change, record in self._listed(held):
                    if session in (None, change.session) and record.kept_as != "redo":
                        if record.kept_as == "undo":
                            return self._undo(held, change, record, "redo")
                        break
        raise ToolError("there is nothing to redo: no change was undone since the last one was made")

    @contextmanager
    def batch(self) -> Iterator[None]:
        """All changes made in the ``with`` body are one: when it fails, or the process dies, none of them stays.

        Nobody else changes anything in the workspace meanwhile.
        """
        with self.store.locked() as held:
            self._repair(held)
            before = max(numbered(held), default=0)
            write_bytes(held, BATCH, str(before).encode(), durable=True)
            sync_directory(held)
            self._in_batch = True
            try:
                yield
            except BaseException:
                self._undo_after(held, before)
                raise
            finally:
                self._in_batch = False
                tree_ops.remove(BATCH, held)

    def take_notes(self) -> tuple[str, ...]:
        """What is to be said since this was last called: repairs, and what cannot be undone."""
        notes = tuple(self.store.notes)
        self.store.notes.clear()
        return notes

    # ---------------------------------------------------------------------- repair

    def _recover(self) -> tuple[str, ...]:
        if not self.store.holds(*STATES, BATCH):  # then nobody has to be waited for
            return ()
        try:
            with self.store.locked() as held:
                self._repair(held)
        except (OSError, ToolError) as error:
            return (f"whether a change was cut off here could not be seen ({error}); the next change will try again",)
        return self.take_notes()

    def _repair(self, held: int) -> None:
        repair(self._root, self.store, held)
        cut_off = None if self._in_batch else read_bytes(held, BATCH)
        if cut_off is None:
            return
        if cut_off.isdigit():
            self.store.notes.append("several changes that belong together were cut off; they are taken back")
            self._undo_after(held, int(cut_off))
        tree_ops.remove(BATCH, held)

    def _undo_after(self, held: int, number: int) -> None:
        """Take back every change above ``number``; what cannot be is left and noted."""
        for change, record in self._listed(held):
            if change.number <= number:
                break
            try:
                self._undo(held, change, record, "nothing")
            except (ToolError, OSError) as error:
                self.store.notes.append(f"could not be taken back: {change.summary} ({error})")
                break

    def _made(self, held: int, session: str | None) -> Iterator[tuple[RecordedChange, ChangeRecord]]:
        """What can be undone, newest first."""
        for change, record in self._listed(held):
            if record.kept_as != "undo" and session in (None, change.session):
                yield change, record

    def _listed(self, held: int) -> Iterator[tuple[RecordedChange, ChangeRecord]]:
        for number, name in reversed(numbered(held).items()):
            record = read_record(held, name)
            if record is not None:
                paths = tuple(dict.fromkeys(path for step in record.steps for path in (step.destination, step.path)))
                shown = tuple(escape_for_display(path) for path in paths if path)
                summary = record.summary.removeprefix(UNDO)
                yield RecordedChange(number, summary, shown, record.time, record.session), record

    # ------------------------------------------------------------------------ undo

    def _undo(
        self, held: int, change: RecordedChange, record: ChangeRecord, kept_as: Literal["undo", "redo", "nothing"]
    ) -> UndoResult:
        name = numbered(held)[change.number]
        inverse = UndoPlan(self._root, held, name, record)
        if inverse.failures:
            raise ToolError(
                f"not {'redone' if kept_as == 'redo' else 'undone'}: {change.summary}. "
                + "; ".join(reversed(inverse.failures))
                + ". Nothing was changed"
            )
        parents = [_parent(step.destination or step.path) for step in inverse.steps if step.kind != "take"]
        parents += [tuple(path.split("/")) for path in record.removes]
        made = missing_directories(self._root, parents)
        undo = ChangeRecord(
            summary=change.summary if kept_as == "redo" else f"{UNDO}{change.summary}",
            session=change.session,
            time=time.time(),
            steps=(*made, *inverse.steps),
            undoes=change.number,
            removes=tuple(inverse.removes),
            kept_as=kept_as,
        )
        stages = {index + len(made): stage for index, stage in inverse.stages.items()}
        perform(self._root, self.store, undo, stages)
        return UndoResult(change, "".join(reversed(inverse.diffs)), tuple(reversed(inverse.notes)))


def _parent(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[:-1])
