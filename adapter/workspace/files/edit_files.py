"""Files: write, patch one or several, look at, make a directory for.

A change is planned first and committed after: the plan holds the diff that is
shown for approval, and the commit makes exactly that change or none. A file
that is replaced is the old one or the new one at any time.

Old states: an edit goes where it fits exactly, whatever else changed in the
file. Overwriting a file that changed since the model read it is refused, with
what changed. Overwriting one that was never read is allowed, as every tool
document promises; the result says so, and the change can be undone.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.core.errors import EditError, ToolError
from adapter.core.text.diffs import unified_diff
from adapter.editing import PatchResult
from adapter.tools.operations import (
    FileEdit,
    FileInfo,
    FilePatched,
    FilesPatched,
    FileWritten,
    MakeDirectory,
    OperationDone,
    Outcome,
    Patch,
    PatchFiles,
    PatchText,
    Stat,
    WriteText,
)
from adapter.workspace.changes.journal import ChangeStep
from adapter.workspace.changes.staging import check_replaceable, new_file
from adapter.workspace.changes.text_codec import MAX_TEXT_BYTES, DecodedText, decode, encode
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.files.edit_strictness import apply_edit_mode, choice_note
from adapter.workspace.files.patch_bytes import changed_places, creates_file, patch_bytes
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.os_errors import os_errors_explained
from adapter.workspace.paths.resolved_path import ResolvedPath, missing_sentence, open_regular, require_existing
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.tree_ops import CHUNK_BYTES, fingerprint_of

MAX_FILES = 200
"""Files of one change; bounds the locks it holds."""
COUNTING_SECONDS = 10.0
"""For the lines of a file: some gigabytes."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was found, or the free place for one: ``data`` is None where there is none."""

    parts: tuple[str, ...]
    shown: str
    data: bytes | None
    status: os.stat_result | None
    attributes: Mapping[str, bytes] = field(default_factory=dict)
    """The extended ones."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A planned change: what each file becomes (None: it is deleted), the ``diff`` and what to answer."""

    summary: str
    files: tuple[tuple[FileState, bytes | None], ...]
    diff: str
    outcome: FileWritten | FilePatched | FilesPatched
    models: Mapping[tuple[str, ...], FileState]
    """Whose mode, owner and attributes a new file gets."""
    diffs: tuple[str, ...] = ()
    """Of several files: one for each edit."""

    def commit(self, desk: WorkspaceContext) -> Outcome:
        """Write all files or none. Raises ToolError when one is not what it was when this was planned."""
        steps, stages = [], {}
        for file, after in self.files:
            path, before = "/".join(file.parts), None if file.data is None else fingerprint_of(file.data)
            if after is None:
                steps.append(ChangeStep(kind="take", path=path, before=before))
                continue
            model = file if file.status else self.models.get(file.parts, file)
            stages[len(steps)] = new_file(after, model.status, model.attributes)
            steps.append(ChangeStep(kind="put", path=path, before=before, after=fingerprint_of(after)))
        parents = [file.parts[:-1] for file, after in self.files if after is not None]
        with os_errors_explained(_unchanged([file for file, _ in self.files])):
            notes = desk.history.commit(self.summary, parents, steps, stages) if steps else ()
        for file, after in self.files:
            if after is None:
                desk.seen.forget(file.parts)
            else:
                desk.seen.note(file.parts, after)
        return replace(self.outcome, notes=(*self.outcome.notes, *notes))


def _unchanged(files: Sequence[FileState]) -> str:
    if len(files) == 1:
        return f"{files[0].shown} was not changed"
    return f"none of the {len(files)} files was changed ({', '.join(file.shown for file in files)})"


def plan_write(desk: WorkspaceContext, operation: WriteText) -> FileChange:
    """What ``write_file`` would do. Raises ToolError for what cannot be written."""
    file = find_file(desk.root, operation.path)
    if operation.path.endswith("/"):
        raise ToolError(f"{file.shown}/ ends with '/', which names a directory; add a file name")
    if file.data is not None and (changed := desk.seen.change_of(file.parts, file.data)):
        raise ToolError(
            f"{file.shown} was changed by something else since it was read here ({changed}) and was not overwritten; "
            "read it again, then write it with that change, or edit only the lines that are meant"
        )
    after = encode(operation.content, "utf-8", file.shown)
    diff = unified_diff(_text_for_diff(file.data, file.shown), operation.content, file.shown)
    notes = (f"{file.shown} was overwritten without having been read here before",) if _is_unread(desk, file) else ()
    verb = "create" if file.data is None else "overwrite"
    outcome = FileWritten(file.shown, len(after), file.data is None, diff, notes)
    return FileChange(f"{verb} {file.shown}", ((file, after),), diff, outcome, {})


def _is_unread(desk: WorkspaceContext, file: FileState) -> bool:
    return bool(file.data) and not desk.seen.knows(file.parts)


def plan_patch(desk: WorkspaceContext, operation: PatchText) -> FileChange:
    """What an edit would do. Raises EditError when patches do not fit, ToolError for other reasons."""
    creates = creates_file(operation.patches) or (
        operation.empty_old_text == "create" and not any(patch.old_text for patch in operation.patches)
    )
    file = find_file(desk.root, operation.path, must_exist=not creates)
    result, after = _patched(desk, file, file.data or b"", operation)
    notes = _notes(desk, operation.patches, result)
    outcome = FilePatched(file.shown, len(result.matches), result.diff, notes, tuple(changed_places(result)))
    verb = "create" if file.data is None else "edit"
    return FileChange(f"{verb} {file.shown}", ((file, after),), result.diff, outcome, {})


def _patched(desk: WorkspaceContext, file: FileState, data: bytes, operation: PatchText) -> tuple[PatchResult, bytes]:
    """The patched text and its bytes. What is loose is refused in a file that changed since it was read."""
    shown = file.shown
    operation = replace(operation, patches=apply_edit_mode(operation.patches, desk.edits))
    changed = desk.seen.change_of(file.parts, data) if data == file.data else ""
    since = f" {shown} was changed by something else since it was read here ({changed}); read it again." * bool(changed)
    try:
        result, after = patch_bytes(data, operation, shown, desk.encoding)
    except EditError as error:
        raise EditError(f"{shown}: {error}{since}", error.failures, error.kinds) from None
    if since and any(match.notes or match.strictness != "exact" for match in result.matches):
        raise EditError(f"{shown}: the patches fit only roughly and were not applied.{since}")
    return result, after


def _notes(desk: WorkspaceContext, asked: Sequence[Patch], result: PatchResult) -> tuple[str, ...]:
    """What was tolerated, one sentence each, and by whose choice."""
    notes = tuple(note for match in result.matches for note in match.notes)
    return (*notes, *result.notes, *choice_note(asked, result.matches, desk.edits))


def plan_files(desk: WorkspaceContext, operation: PatchFiles) -> FileChange:
    """What the edits would do together. Raises EditError that lists every one that cannot be done."""
    if not operation.files:
        raise EditError("no edits were given; name at least one file")
    draft = _MultiFileEdit(desk, operation)
    failures: list[str] = []
    for edit in operation.files:
        try:
            draft.add(edit)
        except ToolError as error:
            failures.append(str(error))
    if failures:
        raise EditError("\n".join([*failures, "No file was changed: send all edits again."]), failures)
    if len(draft.changed) > MAX_FILES:
        raise ToolError(f"{len(draft.changed)} files in one change; at most {MAX_FILES} are possible. Split it")
    outcome = FilesPatched(tuple(draft.done), draft.diff, tuple(draft.notes))
    return FileChange(draft.summary, draft.changed, draft.diff, outcome, draft.models, tuple(draft.diffs))


class _MultiFileEdit:
    """Edits of several files, each on what the ones before it left; nothing is written."""

    def __init__(self, desk: WorkspaceContext, operation: PatchFiles) -> None:
        self._desk = desk
        self._operation = operation
        self._found: dict[tuple[str, ...], FileState] = {}
        self._now: dict[tuple[str, ...], bytes | None] = {}
        self._sources: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.models: dict[tuple[str, ...], FileState] = {}
        self.done: list[str] = []
        self.diffs: list[str] = []
        self.notes: list[str] = []

    def add(self, edit: FileEdit) -> None:
        file = self._file(edit.path)
        now = self._now[file.parts]
        self._edit(edit, file, now)
        target = file if edit.moved_to is None else self._file(edit.moved_to)
        after = self._now[target.parts]
        texts = _text_for_diff(now, file.shown), _text_for_diff(after, target.shown)
        self.diffs.append(unified_diff(*texts, target.shown))

    def _edit(self, edit: FileEdit, file: FileState, now: bytes | None) -> None:
        if edit.action == "add":
            if now is not None:
                raise EditError(f"{file.shown} is there already and was not added; update it, or delete it first")
            self._now[file.parts] = encode(edit.content, "utf-8", file.shown)
            self.done.append(f"added {file.shown}")
            return
        if now is None and edit.action == "update" and creates_file(edit.patches):
            now = b""
        if now is None:
            with self._desk.root.locate(edit.path, parents="imagine") as place:
                raise EditError(missing_sentence(place))
        if edit.action == "delete":
            self._now[file.parts] = None
            self.done.append(f"deleted {file.shown}")
            return
        after = self._update(file, now, edit)
        if edit.moved_to is None:
            self._now[file.parts] = after
            self.done.append(f"{'added' if file.data is None else 'updated'} {file.shown}")
        else:
            self._move(file, edit.moved_to, after)

    def _update(self, file: FileState, now: bytes, edit: FileEdit) -> bytes:
        if not edit.patches and edit.moved_to:
            return now
        operation = self._operation
        asked = PatchText(edit.path, edit.patches, operation.basis, operation.empty_old_text, operation.names)
        result, after = _patched(self._desk, file, now, asked)
        self.notes += [f"{file.shown}: {note}" for note in _notes(self._desk, edit.patches, result)]
        return after

    def _move(self, file: FileState, moved_to: str, after: bytes) -> None:
        target = self._file(moved_to)
        if self._now[target.parts] is not None:
            raise EditError(f"{target.shown} exists already and is not overwritten; delete it first")
        self._now[file.parts], self._now[target.parts] = None, after
        self.models[target.parts] = file if file.status else self.models.get(file.parts, file)
        self._sources[target.parts] = self._sources.pop(file.parts, file.parts)
        self.done.append(f"moved {file.shown} to {target.shown}")

    def _file(self, path: str) -> FileState:
        file = find_file(self._desk.root, path)
        if file.parts not in self._found:
            self._found[file.parts] = file
            self._now[file.parts] = file.data
        return self._found[file.parts]

    @property
    def changed(self) -> tuple[tuple[FileState, bytes | None], ...]:
        return tuple((file, self._now[parts]) for parts, file in self._found.items() if self._now[parts] != file.data)

    @property
    def summary(self) -> str:
        return ", ".join(self.done)

    @property
    def diff(self) -> str:
        moved = {source for target, source in self._sources.items() if self._now[target] is not None}
        return "".join(
            self._diff(file, after) for file, after in self.changed if after is not None or file.parts not in moved
        )

    def _diff(self, file: FileState, after: bytes | None) -> str:
        source = self._found.get(self._sources.get(file.parts, ()), file)
        before = _text_for_diff(source.data, source.shown)
        diff = unified_diff(before, _text_for_diff(after, file.shown), file.shown)
        return f"rename from {source.shown}\nrename to {file.shown}\n{diff}" if source is not file else diff


def find_file(root: WorkspaceRoot, path: str, must_exist: bool = False) -> FileState:
    """The file that ``path`` names, to be changed. Raises ToolError for what cannot be."""
    with root.locate(path, write=True, parents="exist" if must_exist else "imagine") as place:
        if must_exist:
            require_existing(place)
        check_replaceable(place)
        if place.status is None:
            return FileState(place.parts, place.shown, None, None)
        with open_regular(place) as descriptor:
            data, attributes = _read_all(descriptor, place), tree_ops.attributes_of(descriptor)
        return FileState(place.parts, place.shown, data, place.status, attributes)


def get_info(root: WorkspaceRoot, operation: Stat) -> FileInfo:
    """Links are followed, inside the root. Raises ToolError also when its lines cannot be counted."""
    lines = _count_lines(root, operation.path) if operation.count_lines else None
    with root.locate(operation.path) as place:
        require_existing(place)
        status = place.status
        assert status is not None
        return FileInfo(
            path=place.shown,
            size=status.st_size,
            is_directory=place.is_directory,
            is_file=place.is_file,
            modified=int(status.st_mtime),
            readonly=not status.st_mode & stat.S_IWUSR,
            lines=lines,
        )


def _count_lines(root: WorkspaceRoot, path: str) -> int:
    lines = 0
    deadline = time.monotonic() + COUNTING_SECONDS
    with root.open_file(path) as (descriptor, place):
        while block := os.read(descriptor, CHUNK_BYTES):
            lines += block.count(b"\n")
            if time.monotonic() > deadline:
                raise ToolError(
                    f"{place.shown} is too large to be counted within {COUNTING_SECONDS:g} s "
                    f"({place.status.st_size if place.status else 0} bytes): {lines} lines until then"
                )
    return lines


def make_directory(desk: WorkspaceContext, operation: MakeDirectory) -> OperationDone:
    """Make the directory and its parents; one that is there already is fine."""
    with desk.root.locate(operation.path, write=True, parents="imagine") as place:
        if place.is_directory:
            return OperationDone(place.shown, entries=0)
        if place.status is not None:
            raise ToolError(f"{place.shown} is there already and is not a directory; choose another path")
    with os_errors_explained(f"{place.shown} was not made"):
        notes = desk.history.commit(f"make the directory {place.shown}", [place.parts], (), {})
    return OperationDone(place.shown, notes=notes)


def _read_all(descriptor: int, place: ResolvedPath) -> bytes:
    """The file's bytes. Raises ToolError above ``MAX_TEXT_BYTES``, also when the file is growing."""
    size = os.fstat(descriptor).st_size
    if size <= MAX_TEXT_BYTES:
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_TEXT_BYTES + 1)
        if len(data) <= MAX_TEXT_BYTES:
            return data
    raise ToolError(
        f"{place.shown} has {size} bytes; files above {MAX_TEXT_BYTES >> 20} MiB are not edited or overwritten. "
        "Change it with a command such as sed, or with a script"
    )


def _text_for_diff(data: bytes | None, shown: str) -> str:
    """The old text of a file that is overwritten; what is no text counts as its size alone."""
    if data is None:
        return ""
    try:
        decoded: DecodedText = decode(data, shown)
    except ToolError:
        return f"({len(data)} bytes that are not text)\n"
    return decoded.text
