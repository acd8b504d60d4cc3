"""How a change is taken back: the steps that undo it, as they fit to what is there now."""

from __future__ import annotations

from typing import NamedTuple

from adapter.core.errors import EditError, ToolError
from adapter.core.text.diffs import changed_lines, unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.editing.revert import revert_change
from adapter.workspace.changes.journal import ChangeRecord, ChangeStep, inside, read_bytes
from adapter.workspace.changes.staging import new_file
from adapter.workspace.changes.text_codec import decode, decode_for_editing, encode
from adapter.workspace.changes.transactions import StagedContent
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.resolved_path import ResolvedPath, open_regular
from adapter.workspace.paths.resolver import WorkspaceRoot

MAX_SHOWN_BYTES = 1024 * 1024
"""Larger files are not shown in the diff of an undo."""


class _Texts(NamedTuple):
    """A file before a change, as the change left it, and now; None where it is not small or not kept."""

    before: bytes | None
    after: bytes | None
    now: bytes | None


class UndoPlan:
    """Of the change ``record``, kept as ``name`` in the open store ``held``. Nothing is done yet; ``failures`` say why
    it cannot be."""

    def __init__(self, root: WorkspaceRoot, held: int, name: str, record: ChangeRecord) -> None:
        self._root, self._held, self._name = root, held, name
        self.steps: list[ChangeStep] = []
        self.stages: dict[int, StagedContent] = {}
        self.removes: list[str] = []
        self.diffs: list[str] = []
        self.notes: list[str] = []
        self.failures: list[str] = []
        for index in reversed(range(len(record.steps))):
            self._invert(index, record.steps[index])

    def _add(self, step: ChangeStep, stage: StagedContent | None = None) -> None:
        if stage is not None:
            self.stages[len(self.steps)] = stage
        self.steps.append(step)

    def _invert(self, index: int, step: ChangeStep) -> None:
        if step.kind == "directory":
            self.removes.append(step.path)
            return
        with self._root.locate(f"./{step.path}", follow=False, parents="imagine") as place:
            if "/".join(place.parts) != step.path:
                self.failures.append(f"a directory on the way to {escape_for_display(step.path)} is a link now")
            elif step.kind == "move":
                self._invert_move(step, place)
            elif (step.before or step.kind == "take") and not step.kept:
                self.failures.append(f"what {place.shown} was before is not kept, it was too large")
            elif step.kind == "take":
                self._invert_take(index, step, place)
            else:
                self._invert_put(index, step, place)

    def _invert_move(self, step: ChangeStep, place: ResolvedPath) -> None:
        with self._root.locate(f"./{step.destination}", follow=False, parents="imagine") as destination:
            if destination.status is None:
                self.failures.append(f"{destination.shown} is not there any more")
            elif place.status is not None:
                self.failures.append(f"there is a new {place.shown}")
            else:
                self._add(ChangeStep(kind="move", path=step.destination, destination=step.path))

    def _invert_take(self, index: int, step: ChangeStep, place: ResolvedPath) -> None:
        if place.status is not None:
            self.failures.append(f"there is a new {place.shown}; move it away")
            return
        with inside(self._held, self._name) as kept:
            after, old = tree_ops.fingerprint(str(index), kept), bytes_of(str(index), kept)
        self.diffs.append(_diff(place, None, old))
        self._add(ChangeStep(kind="put", path=step.path, after=after), self._from_store(index, old))

    def _invert_put(self, index: int, step: ChangeStep, place: ResolvedPath) -> None:
        now = tree_ops.fingerprint(place.name, place.dirfd) if place.status is not None else None
        with inside(self._held, self._name) as kept:
            old = bytes_of(str(index), kept) if step.before else None
            is_intact = step.before is None or tree_ops.fingerprint(str(index), kept) == step.before
            put = read_bytes(kept, f"{index}.after")
        present = bytes_of(place.name, place.dirfd) if place.is_file else None
        if not is_intact:
            self.failures.append(f"what {place.shown} was before has been changed since, by something that had it open")
        elif now == step.after:
            self.diffs.append(_diff(place, present, old))
            if step.before is None:
                self._add(ChangeStep(kind="take", path=step.path, before=now))
            else:
                restored = ChangeStep(kind="put", path=step.path, before=now, after=step.before)
                self._add(restored, self._from_store(index, old))
        elif now is None and step.before is None:
            self.notes.append(f"{place.shown} was gone already")
        elif now is None:
            self.failures.append(f"{place.shown} was removed since")
        else:
            self._merge(step, place, now, _Texts(old, put, present))

    def _merge(self, step: ChangeStep, place: ResolvedPath, now: str, texts: _Texts) -> None:
        """A file that somebody changed since: only the lines of the change go back."""
        old, put, present = texts
        if put is None or present is None or tree_ops.fingerprint_of(put) != step.after:
            self.failures.append(f"{place.shown} was changed since")
            return
        try:
            current = decode_for_editing(present, place.shown)
            written = decode(put, place.shown).text
            since = changed_lines(written, current.text)
            if old is None:
                self.failures.append(f"{place.shown} was made and has been changed since ({since}); delete it")
                return
            merged = revert_change(current.text, written, decode(old, place.shown).text)
            data = encode(merged, current.encoding, place.shown)
        except EditError:
            self.failures.append(f"{place.shown} was changed since where the change was made ({since})")
        except ToolError as error:
            self.failures.append(str(error))
        else:
            self.notes.append(f"{place.shown} was changed since ({since}); that was kept")
            self.diffs.append(_diff(place, present, data))
            after = tree_ops.fingerprint_of(data)
            self._add(ChangeStep(kind="put", path=step.path, before=now, after=after), _new_file(place, data))

    def _from_store(self, index: int, text: bytes | None) -> StagedContent:
        def make(dirfd: int, new: str) -> None:
            with inside(self._held, self._name) as kept:
                tree_ops.clone(str(index), kept, new, dirfd)

        return StagedContent(make, text)


def _new_file(place: ResolvedPath, data: bytes) -> StagedContent:
    return new_file(data, place.status, tree_ops.attributes(place.name, place.dirfd))


def bytes_of(name: str, dirfd: int) -> bytes | None:
    """The content of a regular file that is small enough to be shown or merged."""
    status = tree_ops.status_of(name, dirfd)
    place = ResolvedPath(dirfd, name, (name,), status)
    if status is None or not place.is_file or status.st_size > MAX_SHOWN_BYTES:
        return None
    with open_regular(place) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _diff(place: ResolvedPath, before: bytes | None, after: bytes | None) -> str:
    return unified_diff(text_of(before, place.shown), text_of(after, place.shown), place.shown)


def text_of(data: bytes | None, shown: str) -> str:
    try:
        return "" if data is None else decode(data, shown).text
    except ToolError:
        return f"({len(data or b'')} bytes that are not text)\n"
