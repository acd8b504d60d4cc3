"""Write and patch files, get file information, and create directories.

A change is planned first and committed after approval. The plan contains the diff, and the commit makes exactly that
change or none. While a file is replaced, programs see either the old file or the new one.

If a file changed since the model read it, an edit is still applied if its old text matches exactly. If the old text
matches the version that the model read, the edit is made there and merged with the other changes. Overwriting the file
is refused, with a description of the change. A file that the model never read may be overwritten, as every tool
description promises. The result then has a note, and the change can be undone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.core.errors import EditError, ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.editing import PatchResult
from adapter.editing.file_content import prepare_file_content
from adapter.tools import operations as ops
from adapter.workspace.changes.journal import ChangeStep
from adapter.workspace.changes.staged_files import check_replaceable, stage_new_file
from adapter.workspace.changes.text_codec import MAX_TEXT_BYTES, decode_for_diff, encode, encode_like
from adapter.workspace.files.file_patching import (
    apply_edit_mode,
    creates_file,
    describe_choice,
    iter_changed_lines,
    patch_bytes,
    patch_earlier_version,
)
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.resolved_path import ResolvedPath, describe_missing, open_regular, require_existing
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.tree_ops import fingerprint_bytes
from adapter.workspace.workspace_context import WorkspaceContext

MAX_FILES = 200
"""Maximum number of files in one change. Each file may need a lock."""
_NOTHING_TO_DO = frozenset({"already applied", "no change"})


@dataclass(frozen=True, slots=True)
class FileState:
    """A file before a change. ``data`` is None if the file does not exist."""

    parts: tuple[str, ...]
    display_path: str
    data: bytes | None
    status: os.stat_result | None
    attributes: Mapping[str, bytes] = field(default_factory=dict)
    """Extended attributes by name."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A planned change to files. ``files``: each file with its new content, or None to delete it."""

    summary: str
    files: tuple[tuple[FileState, bytes | None], ...]
    diff: str
    outcome: ops.FileWritten | ops.FilePatched | ops.FilesPatched
    attribute_sources: Mapping[tuple[str, ...], FileState]
    """Maps each new file's path components to an old file. The new file inherits the mode, owner and attributes of the
    old one."""
    diffs: tuple[str, ...] = ()
    """One diff per edit if there are several files."""

    def commit(self, context: WorkspaceContext) -> ops.Outcome:
        """Write all files or none. Raises ToolError if a file changed since the plan was made."""
        steps, stages = [], {}
        for file, after in self.files:
            path, before = "/".join(file.parts), None if file.data is None else fingerprint_bytes(file.data)
            if after is None:
                steps.append(ChangeStep(kind="take", path=path, before=before))
                continue
            source = file if file.status else self.attribute_sources.get(file.parts, file)
            stages[len(steps)] = stage_new_file(after, source.status, source.attributes)
            steps.append(ChangeStep(kind="put", path=path, before=before, after=fingerprint_bytes(after)))
        parents = [file.parts[:-1] for file, after in self.files if after is not None]
        with convert_os_errors(_describe_unchanged([file for file, _ in self.files])):
            notes = context.history.commit(self.summary, parents, steps, stages) if steps else ()
        for file, after in self.files:
            if after is None:
                context.read_tracker.forget(file.parts)
            else:
                is_patched = not isinstance(self.outcome, ops.FileWritten)
                context.read_tracker.note(file.parts, after, is_patched=is_patched)
        return replace(self.outcome, notes=(*self.outcome.notes, *notes))


def _describe_unchanged(files: Sequence[FileState]) -> str:
    if len(files) == 1:
        return f"{files[0].display_path} was not changed"
    return f"none of the {len(files)} files was changed ({', '.join(file.display_path for file in files)})"


def plan_write(context: WorkspaceContext, operation: ops.WriteText) -> FileChange:
    """Plan to create or overwrite a file. Raises ToolError if the file cannot be written."""
    file = find_file(context.root, operation.path)
    if operation.path.endswith("/"):
        raise ToolError(f"{file.display_path}/ ends with '/', which names a directory; add a file name")
    if file.data is not None and (changed := context.read_tracker.describe_change(file.parts, file.data)):
        raise ToolError(
            f"{file.display_path} has changed since you read it ({changed}) and was not overwritten; "
            "read it again, then write it with that change, or edit only the lines to change"
        )
    before = decode_for_diff(file.data, file.display_path)
    content, notes = prepare_file_content(operation.content, file.display_path, before)
    after, note = encode_like(file.data or b"", content, file.display_path, context.encoding)
    notes = (*notes, note) if note else notes
    diff = render_unified_diff(before, decode_for_diff(after, file.display_path), file.display_path)
    if file.data and not context.read_tracker.knows(file.parts):
        notes = (*notes, f"{file.display_path} was overwritten without having been read first")
    verb = "create" if file.data is None else "overwrite"
    outcome = ops.FileWritten(file.display_path, len(after), file.data is None, diff, notes=notes)
    return FileChange(f"{verb} {file.display_path}", ((file, after),), diff, outcome, {})


def plan_patch(context: WorkspaceContext, operation: ops.PatchText) -> FileChange:
    """Plan an edit of one file. Raises EditError if a patch does not match, ToolError if the file cannot be edited."""
    creates = creates_file(operation.patches) or (
        operation.empty_old_text == "create" and not any(patch.old_text for patch in operation.patches)
    )
    file = find_file(context.root, operation.path, must_exist=not creates)
    result, after = _apply_patches(context, file, file.data or b"", operation)
    notes = _list_notes(context, operation.patches, result)
    places = tuple(iter_changed_lines(result))
    outcome = ops.FilePatched(file.display_path, len(result.matches), result.diff, places, notes=notes)
    verb = "create" if file.data is None else "edit"
    return FileChange(f"{verb} {file.display_path}", ((file, after),), result.diff, outcome, {})


def _apply_patches(
    context: WorkspaceContext, file: FileState, data: bytes, operation: ops.PatchText
) -> tuple[PatchResult, bytes]:
    """Return the patched text and its bytes.

    If patches do not match exactly, or the file has changed since the model read it, they are applied to the version
    that the model read, and the changes are merged. Otherwise, patches of a changed file must match exactly.
    """
    display_path, tracker = file.display_path, context.read_tracker
    operation = replace(operation, patches=apply_edit_mode(operation.patches, context.edits))
    changed = tracker.describe_change(file.parts, data) if data == file.data else ""
    since = f" {display_path} has changed since you read it ({changed}); read it again." * bool(changed)
    failure: EditError | None = None
    try:
        result, after = patch_bytes(data, operation, display_path, context.encoding)
        is_exact = all(match.strictness == "exact" and not match.notes for match in result.matches)
    except EditError as error:
        failure, is_exact = error, False
    if data == file.data and (changed or not (is_exact or (failure and _NOTHING_TO_DO.intersection(failure.kinds)))):
        for version in tracker.list_earlier_versions(file.parts, data):
            merged = patch_earlier_version(version, data, operation, display_path, context.encoding, is_exact=is_exact)
            if merged:
                return merged
    if failure:
        raise EditError(f"{display_path}: {failure}{since}", failure.failures, failure.kinds) from None
    if since and not is_exact:
        raise EditError(f"{display_path}: the patches match only approximately and were not applied.{since}")
    return result, after


def _list_notes(context: WorkspaceContext, requested: Sequence[ops.Patch], result: PatchResult) -> tuple[str, ...]:
    """Return a note for each tolerated difference, and another if only the user's edit mode allowed it."""
    notes = tuple(note for match in result.matches for note in match.notes)
    return (*notes, *result.notes, *describe_choice(requested, result.matches, context.edits))


def plan_files(context: WorkspaceContext, operation: ops.PatchFiles) -> FileChange:
    """Plan the edits to several files as one change. Raises EditError, which lists all failed edits, if at least one
    fails."""
    if not operation.files:
        raise EditError("no edits were given; name at least one file")
    draft = _MultiFileEdit(context, operation)
    failures: list[str] = []
    for edit in operation.files:
        try:
            draft.add(edit)
        except ToolError as error:
            failures.append(str(error))
    if failures:
        raise EditError("\n".join([*failures, "No file was changed: send all edits again."]), failures)
    if len(draft.changed) > MAX_FILES:
        raise ToolError(f"the change has {len(draft.changed)} files; the maximum is {MAX_FILES}. Split it")
    outcome = ops.FilesPatched(tuple(draft.done), draft.diff, notes=tuple(draft.notes))
    summary = ", ".join(draft.done)
    return FileChange(summary, draft.changed, draft.diff, outcome, draft.attribute_sources, tuple(draft.diffs))


class _MultiFileEdit:
    """Applies edits to several files in memory, each to the result of the previous ones."""

    def __init__(self, context: WorkspaceContext, operation: ops.PatchFiles) -> None:
        self._context = context
        self._operation = operation
        self._originals: dict[tuple[str, ...], FileState] = {}
        self._contents: dict[tuple[str, ...], bytes | None] = {}
        self._sources: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.attribute_sources: dict[tuple[str, ...], FileState] = {}
        self.done: list[str] = []
        self.diffs: list[str] = []
        self.notes: list[str] = []

    def add(self, edit: ops.FileEdit) -> None:
        file = self._get_file(edit.path)
        now = self._contents[file.parts]
        self._apply_edit(edit, file, now)
        target = file if edit.moved_to is None else self._get_file(edit.moved_to)
        after = self._contents[target.parts]
        texts = decode_for_diff(now, file.display_path), decode_for_diff(after, target.display_path)
        self.diffs.append(render_unified_diff(*texts, target.display_path))

    def _apply_edit(self, edit: ops.FileEdit, file: FileState, now: bytes | None) -> None:
        if edit.action == "add":
            if now is not None:
                raise EditError(f"{file.display_path} already exists and was not added; update it, or delete it first")
            content, notes = prepare_file_content(edit.content, file.display_path)
            self.notes += [f"{file.display_path}: {note}" for note in notes]
            self._contents[file.parts] = encode(content, "utf-8", file.display_path)
            self.done.append(f"added {file.display_path}")
            return
        is_new = creates_file(edit.patches, self._operation.empty_old_text)
        if now is None and edit.action == "update" and is_new:
            now = b""
        if now is None:
            with self._context.root.locate(edit.path, parents="assume") as resolved:
                raise EditError(describe_missing(resolved, is_edited=True))
        if edit.action == "delete":
            self._contents[file.parts] = None
            self.done.append(f"deleted {file.display_path}")
            return
        after = self._update(file, now, edit)
        if edit.moved_to is None:
            self._contents[file.parts] = after
            self.done.append(f"{'added' if file.data is None else 'updated'} {file.display_path}")
        else:
            self._move(file, edit.moved_to, after)

    def _update(self, file: FileState, now: bytes, edit: ops.FileEdit) -> bytes:
        if not edit.patches and edit.moved_to:
            return now
        operation = self._operation
        patch = ops.PatchText(edit.path, edit.patches, operation.basis, operation.empty_old_text, operation.names)
        result, after = _apply_patches(self._context, file, now, patch)
        self.notes += [f"{file.display_path}: {note}" for note in _list_notes(self._context, edit.patches, result)]
        return after

    def _move(self, file: FileState, moved_to: str, after: bytes) -> None:
        target = self._get_file(moved_to)
        if self._contents[target.parts] is not None:
            raise EditError(f"{target.display_path} already exists and was not overwritten; delete it first")
        self._contents[file.parts], self._contents[target.parts] = None, after
        self.attribute_sources[target.parts] = file if file.status else self.attribute_sources.get(file.parts, file)
        self._sources[target.parts] = self._sources.pop(file.parts, file.parts)
        self.done.append(f"moved {file.display_path} to {target.display_path}")

    def _get_file(self, path: str) -> FileState:
        file = find_file(self._context.root, path)
        if file.parts not in self._originals:
            self._originals[file.parts] = file
            self._contents[file.parts] = file.data
        return self._originals[file.parts]

    @property
    def changed(self) -> tuple[tuple[FileState, bytes | None], ...]:
        return tuple(
            (file, self._contents[parts])
            for parts, file in self._originals.items()
            if self._contents[parts] != file.data
        )

    @property
    def diff(self) -> str:
        moved = {source for target, source in self._sources.items() if self._contents[target] is not None}
        return "".join(
            self._render_diff(file, after)
            for file, after in self.changed
            if after is not None or file.parts not in moved
        )

    def _render_diff(self, file: FileState, after: bytes | None) -> str:
        source = self._originals.get(self._sources.get(file.parts, ()), file)
        before = decode_for_diff(source.data, source.display_path)
        diff = render_unified_diff(before, decode_for_diff(after, file.display_path), file.display_path)
        return (
            f"rename from {source.display_path}\nrename to {file.display_path}\n{diff}" if source is not file else diff
        )


def find_file(root: WorkspaceRoot, path: str, must_exist: bool = False) -> FileState:
    """Return the state of the file at ``path`` before a change. Raises ToolError if the file cannot be changed."""
    with root.locate(path, write=True, parents="exist" if must_exist else "assume") as resolved:
        if must_exist:
            require_existing(resolved)
        check_replaceable(resolved)
        if resolved.status is None:
            return FileState(resolved.parts, resolved.display_path, None, None)
        with open_regular(resolved) as descriptor:
            data, attributes = _read_all(descriptor, resolved), tree_ops.read_open_attributes(descriptor)
        return FileState(resolved.parts, resolved.display_path, data, resolved.status, attributes)


def make_directory(context: WorkspaceContext, operation: ops.MakeDirectory) -> ops.OperationDone:
    """Create the directory and its parents, unless they exist."""
    with context.root.locate(operation.path, write=True, parents="assume") as resolved:
        if resolved.is_directory:
            return ops.OperationDone(resolved.display_path, entries=0)
        if resolved.status is not None:
            raise ToolError(f"{resolved.display_path} already exists and is not a directory; choose another path")
    with convert_os_errors(f"{resolved.display_path} was not created"):
        notes = context.history.commit(f"make the directory {resolved.display_path}", [resolved.parts], (), {})
    return ops.OperationDone(resolved.display_path, notes=notes)


def _read_all(descriptor: int, resolved: ResolvedPath) -> bytes:
    """Read the whole file. Raises ToolError if it exceeds ``MAX_TEXT_BYTES``, even if it grows while it is read."""
    size = os.fstat(descriptor).st_size
    if size <= MAX_TEXT_BYTES:
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_TEXT_BYTES + 1)
        if len(data) <= MAX_TEXT_BYTES:
            return data
    raise ToolError(
        f"{resolved.display_path} has {size} bytes; files above {MAX_TEXT_BYTES >> 20} MiB cannot be edited or "
        "overwritten. Change it with a command such as sed, or with a script"
    )
