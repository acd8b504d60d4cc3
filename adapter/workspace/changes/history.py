"""The changes of a workspace: made as one, listed, and undone without git, newest first.

An undo takes back only what the change did. A file that somebody changed since
is merged, when each of the lines to be taken back is still there, exactly and
once; else the undo is refused and nothing is done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

from adapter.edits.merging import take_back
from adapter.text.diffs import changed_lines, unified_diff
from adapter.text.visible import visible
from adapter.values.errors import EditError, ToolError
from adapter.workspace.changes.documents import decode, decode_for_editing, encode
from adapter.workspace.changes.places import missing_directories
from adapter.workspace.changes.storage import new_file
from adapter.workspace.changes.store import (
    STATES,
    Record,
    Step,
    Store,
    inside,
    lock,
    numbered,
    read_bytes,
    read_record,
    sync_directory,
    write_bytes,
)
from adapter.workspace.changes.transactions import Stage, perform, repair
from adapter.workspace.paths import trees
from adapter.workspace.paths.gate import Root
from adapter.workspace.paths.names import own_name
from adapter.workspace.paths.place import Place, open_regular

BATCH = "batch"
MAX_SHOWN_BYTES = 1024 * 1024
"""Larger files are not shown in the diff of an undo."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was made. ``paths`` are those it touched, ``time`` seconds since the epoch."""

    number: int
    summary: str
    paths: tuple[str, ...]
    time: float
    session: str


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo took back; ``diff`` is what it did to the text files."""

    change: Change
    diff: str
    notes: tuple[str, ...] = ()


@dataclass
class _Inverse:
    """The steps that take a change back, as they are found."""

    steps: list[Step] = field(default_factory=list)
    stages: dict[int, Stage] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, step: Step, stage: Stage | None = None) -> None:
        if stage is not None:
            self.stages[len(self.steps)] = stage
        self.steps.append(step)


class _Texts(NamedTuple):
    """A file before a change, as the change left it, and now; None where it is not small or not kept."""

    before: bytes | None
    after: bytes | None
    now: bytes | None


class History:
    """The changes of the workspace ``root``, kept below ``home`` (None: the user's state directory).

    What a process that died left half done is put right at once; ``recovered`` says what was.
    """

    def __init__(self, root: Root, home: str | None = None) -> None:
        self._root = root
        self.store = Store(root.path, root.inode, home)
        self._in_batch = False
        self.session = uuid4().hex[:12]
        root.hide(self.store.home)
        self.recovered: tuple[str, ...] = self._recover()

    def close(self) -> None:
        if self.store.is_temporary:
            self._recover()  # nobody finds it later
        self.store.close()

    def commit(
        self, summary: str, parents: Sequence[tuple[str, ...]], steps: Sequence[Step], stages: Mapping[int, Stage]
    ) -> tuple[str, ...]:
        """Do all steps or none, with the directories ``parents`` made first. ``stages``: by index in ``steps``.

        Returns notes. Raises ToolError or OSError; then all is as before.
        """
        with self.store.locked() as held:
            self._repair(held)
            made = missing_directories(self._root, parents)
            shifted = {index + len(made): stage for index, stage in stages.items()}
            record = Record(summary=summary, session=self.session, time=time.time(), steps=(*made, *steps))
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
                raise ToolError(f"{visible(path)} changed into a link in the meantime; try again")
            beside = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place.dirfd)  # a lock belongs to one open()
            stack.callback(os.close, beside)
            lock(beside, place.shown)
            away = place.name
            if place.is_directory:  # gone whole from sight, before it goes piece by piece
                away = own_name(place.name, "new")
                trees.remove(away, place.dirfd)
                os.rename(place.name, away, src_dir_fd=place.dirfd, dst_dir_fd=place.dirfd)
            trees.remove(away, place.dirfd)

    def changes(self, session: str | None = None) -> tuple[Change, ...]:
        """The changes that can be undone, newest first; of one session or of all."""
        if not self.store.exists:
            return ()
        with self.store.locked() as held:
            return tuple(change for change, _ in self._listed(held) if session in (None, change.session))

    def undo(self, session: str | None = None) -> Undone:
        """Take back the newest change, of ``session`` or of all. Raises ToolError when that cannot be done."""
        if not self.store.exists:
            raise ToolError("there is nothing to undo: no change of this workspace is recorded")
        with self.store.locked() as held:
            self._repair(held)
            for change, record in self._listed(held):
                if session in (None, change.session):
                    return self._undo(held, change, record)
        raise ToolError("there is nothing to undo: no change of this workspace is recorded")

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
                trees.remove(BATCH, held)

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
        trees.remove(BATCH, held)

    def _undo_after(self, held: int, number: int) -> None:
        """Take back every change above ``number``; what cannot be is left and noted."""
        for change, record in self._listed(held):
            if change.number <= number:
                break
            try:
                self._undo(held, change, record)
            except (ToolError, OSError) as error:
                self.store.notes.append(f"could not be taken back: {change.summary} ({error})")
                break

    def _listed(self, held: int) -> Iterator[tuple[Change, Record]]:
        for number, name in reversed(numbered(held).items()):
            record = read_record(held, name)
            if record is not None:
                paths = tuple(dict.fromkeys(path for step in record.steps for path in (step.destination, step.path)))
                shown = tuple(visible(path) for path in paths if path)
                yield Change(number, record.summary, shown, record.time, record.session), record

    # ------------------------------------------------------------------------ undo

    def _undo(self, held: int, change: Change, record: Record) -> Undone:
        name = numbered(held)[change.number]
        inverse = _Inverse()
        for index in reversed(range(len(record.steps))):
            self._invert(held, name, index, record.steps[index], inverse)
        if inverse.failures:
            raise ToolError(
                f"not undone: {change.summary}. " + "; ".join(reversed(inverse.failures)) + ". Nothing was changed"
            )
        parents = [_parent(step.destination or step.path) for step in inverse.steps if step.kind != "take"]
        made = missing_directories(self._root, parents)
        undo = Record(
            summary=f"undo: {change.summary}",
            session=self.session,
            time=time.time(),
            steps=(*made, *inverse.steps),
            undoes=change.number,
            removes=tuple(inverse.removes),
        )
        stages = {index + len(made): stage for index, stage in inverse.stages.items()}
        perform(self._root, self.store, undo, stages)
        return Undone(change, "".join(reversed(inverse.diffs)), tuple(reversed(inverse.notes)))

    def _invert(self, held: int, name: str, index: int, step: Step, inverse: _Inverse) -> None:
        if step.kind == "directory":
            inverse.removes.append(step.path)
            return
        with self._root.locate(f"./{step.path}", follow=False, parents="imagine") as place:
            if "/".join(place.parts) != step.path:
                inverse.failures.append(f"a directory on the way to {visible(step.path)} is a link now")
            elif step.kind == "move":
                self._invert_move(step, place, inverse)
            elif (step.before or step.kind == "take") and not step.kept:
                inverse.failures.append(f"what {place.shown} was before is not kept, it was too large")
            elif step.kind == "take":
                self._invert_take(held, name, index, step, place, inverse)
            else:
                self._invert_put(held, name, index, step, place, inverse)

    def _invert_move(self, step: Step, place: Place, inverse: _Inverse) -> None:
        with self._root.locate(f"./{step.destination}", follow=False, parents="imagine") as destination:
            if destination.status is None:
                inverse.failures.append(f"{destination.shown} is not there any more")
            elif place.status is not None:
                inverse.failures.append(f"there is a new {place.shown}")
            else:
                inverse.add(Step(kind="move", path=step.destination, destination=step.path))

    def _invert_take(self, held: int, name: str, index: int, step: Step, place: Place, inverse: _Inverse) -> None:
        if place.status is not None:
            inverse.failures.append(f"there is a new {place.shown}; move it away")
            return
        with inside(held, name) as kept:
            after = trees.fingerprint(str(index), kept)
            inverse.diffs.append(_diff(place, None, _bytes(str(index), kept)))
        inverse.add(Step(kind="put", path=step.path, after=after), _from_store(held, name, index))

    def _invert_put(self, held: int, name: str, index: int, step: Step, place: Place, inverse: _Inverse) -> None:
        now = trees.fingerprint(place.name, place.dirfd) if place.status is not None else None
        with inside(held, name) as kept:
            old = _bytes(str(index), kept) if step.before else None
            is_intact = step.before is None or trees.fingerprint(str(index), kept) == step.before
            put = read_bytes(kept, f"{index}.after")
        present = _bytes(place.name, place.dirfd) if place.is_file else None
        if not is_intact:
            inverse.failures.append(
                f"what {place.shown} was before has been changed since, by something that had it open"
            )
        elif now == step.after:
            inverse.diffs.append(_diff(place, present, old))
            if step.before is None:
                inverse.add(Step(kind="take", path=step.path, before=now))
            else:
                restored = Step(kind="put", path=step.path, before=now, after=step.before)
                inverse.add(restored, _from_store(held, name, index))
        elif now is None and step.before is None:
            inverse.notes.append(f"{place.shown} was gone already")
        elif now is None:
            inverse.failures.append(f"{place.shown} was removed since")
        else:
            self._merge(step, place, now, _Texts(old, put, present), inverse)

    def _merge(self, step: Step, place: Place, now: str, texts: _Texts, inverse: _Inverse) -> None:
        """A file that somebody changed since: only the lines of the change go back."""
        old, put, present = texts
        if put is None or present is None or trees.fingerprint_of(put) != step.after:
            inverse.failures.append(f"{place.shown} was changed since")
            return
        try:
            current = decode_for_editing(present, place.shown)
            written = decode(put, place.shown).text
            since = changed_lines(written, current.text)
            if old is None:
                inverse.failures.append(f"{place.shown} was made and has been changed since ({since}); delete it")
                return
            merged = take_back(current.text, written, decode(old, place.shown).text)
            data = encode(merged, current.encoding, place.shown)
        except EditError:
            inverse.failures.append(f"{place.shown} was changed since where the change was made ({since})")
        except ToolError as error:
            inverse.failures.append(str(error))
        else:
            inverse.notes.append(f"{place.shown} was changed since ({since}); that was kept")
            inverse.diffs.append(_diff(place, present, data))
            after = trees.fingerprint_of(data)
            inverse.add(Step(kind="put", path=step.path, before=now, after=after), _new_file(place, data))


def _from_store(held: int, name: str, index: int) -> Stage:
    def make(dirfd: int, new: str) -> None:
        with inside(held, name) as kept:
            trees.clone(str(index), kept, new, dirfd)

    return Stage(make)


def _new_file(place: Place, data: bytes) -> Stage:
    return new_file(data, place.status, trees.attributes(place.name, place.dirfd))


def _bytes(name: str, dirfd: int) -> bytes | None:
    """The content of a regular file that is small enough to be shown or merged."""
    status = trees.status_of(name, dirfd)
    place = Place(dirfd, name, (name,), status)
    if status is None or not place.is_file or status.st_size > MAX_SHOWN_BYTES:
        return None
    with open_regular(place) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _diff(place: Place, before: bytes | None, after: bytes | None) -> str:
    return unified_diff(_text(before, place.shown), _text(after, place.shown), place.shown)


def _text(data: bytes | None, shown: str) -> str:
    try:
        return "" if data is None else decode(data, shown).text
    except ToolError:
        return f"({len(data or b'')} bytes that are not text)\n"


def _parent(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[:-1])
