"""Plan the undo of a change: find the steps that revert it in the current files."""

from __future__ import annotations

from adapter.core.errors import EditError, ToolError
from adapter.core.text.diffs import describe_changed_lines, render_unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.editing.revert import revert_change
from adapter.workspace.changes.journal import ChangeRecord, ChangeStep, open_subdirectory, read_bytes
from adapter.workspace.changes.staged_files import stage_new_file
from adapter.workspace.changes.text_codec import decode, decode_for_diff, decode_for_editing, encode
from adapter.workspace.changes.transactions import StagedContent
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.resolved_path import ResolvedPath, open_regular
from adapter.workspace.paths.resolver import WorkspaceRoot, check_not_git

MAX_SHOWN_BYTES = 1024 * 1024
"""Maximum size of a file shown in the diff of an undo, in bytes."""


class UndoPlan:
    """Steps that undo the change ``record``, stored as ``name`` in the open store ``store_fd``.

    Planning changes no file. ``stages`` has the content to write, by index in ``steps``. ``removes`` lists directories
    to remove afterwards if they are empty. ``failures`` lists the reasons why the change cannot be undone.
    """

    def __init__(self, root: WorkspaceRoot, store_fd: int, name: str, record: ChangeRecord) -> None:
        self._root, self._store_fd, self._name = root, store_fd, name
        self.steps: list[ChangeStep] = []
        self.stages: dict[int, StagedContent] = {}
        self.removes: list[str] = []
        self.diffs: list[str] = []
        self.notes: list[str] = []
        self.failures: list[str] = []
        for index in reversed(range(len(record.steps))):
            self._invert(index, record.steps[index])

    @property
    def paths(self) -> tuple[str, ...]:
        changed = (path for step in self.steps for path in (step.path, step.destination) if path)
        return tuple(dict.fromkeys((*changed, *self.removes)))

    def _add(self, step: ChangeStep, stage: StagedContent | None = None) -> None:
        if stage is not None:
            self.stages[len(self.steps)] = stage
        self.steps.append(step)

    def _invert(self, index: int, step: ChangeStep) -> None:
        if step.kind == "directory":
            self.removes.append(step.path)
            return
        with self._root.locate(f"./{step.path}", follow=False, parents="assume") as resolved:
            check_not_git(resolved.parts)
            if "/".join(resolved.parts) != step.path:
                self.failures.append(f"a directory on the way to {escape_for_display(step.path)} is now a link")
            elif step.kind == "move":
                self._invert_move(step, resolved)
            elif (step.before or step.kind == "take") and not step.kept:
                self.failures.append(f"the old content of {resolved.display_path} was too large to store")
            elif step.kind == "take":
                self._invert_take(index, step, resolved)
            else:
                self._invert_put(index, step, resolved)

    def _invert_move(self, step: ChangeStep, resolved: ResolvedPath) -> None:
        with self._root.locate(f"./{step.destination}", follow=False, parents="assume") as destination:
            check_not_git(destination.parts)
            if destination.status is None:
                self.failures.append(f"{destination.display_path} no longer exists")
            elif resolved.status is not None:
                self.failures.append(f"there is a new {resolved.display_path}")
            else:
                self._add(ChangeStep(kind="move", path=step.destination, destination=step.path))

    def _invert_take(self, index: int, step: ChangeStep, resolved: ResolvedPath) -> None:
        if resolved.status is not None:
            self.failures.append(f"there is a new {resolved.display_path}; move it away")
            return
        with open_subdirectory(self._store_fd, self._name) as stored_fd:
            after, old = tree_ops.compute_fingerprint(str(index), stored_fd), read_file_bytes(str(index), stored_fd)
        self.diffs.append(_render_diff(resolved, None, old))
        self._add(ChangeStep(kind="put", path=step.path, after=after), self._from_store(index, old))

    def _invert_put(self, index: int, step: ChangeStep, resolved: ResolvedPath) -> None:
        now = tree_ops.compute_fingerprint(resolved.name, resolved.dirfd) if resolved.status is not None else None
        with open_subdirectory(self._store_fd, self._name) as stored_fd:
            old = read_file_bytes(str(index), stored_fd) if step.before else None
            is_intact = step.before is None or tree_ops.compute_fingerprint(str(index), stored_fd) == step.before
            put = read_bytes(stored_fd, f"{index}.after")
        present = read_file_bytes(resolved.name, resolved.dirfd) if resolved.is_file else None
        if not is_intact:
            stored = f"the stored old content of {resolved.display_path}"
            self.failures.append(f"{stored} was modified by a program that had it open")
        elif now == step.after:
            self.diffs.append(_render_diff(resolved, present, old))
            if step.before is None:
                self._add(ChangeStep(kind="take", path=step.path, before=now))
            else:
                restored = ChangeStep(kind="put", path=step.path, before=now, after=step.before)
                self._add(restored, self._from_store(index, old))
        elif now is None and step.before is None:
            self.notes.append(f"{resolved.display_path} was already gone")
        elif now is None:
            self.failures.append(f"{resolved.display_path} was removed since")
        else:
            self._merge(step, resolved, now, old, put, present)

    def _merge(self, step: ChangeStep, resolved: ResolvedPath, now: str, *contents: bytes | None) -> None:
        """Revert the change in a file that was edited since, and keep the later edits. ``contents`` are the contents
        before the change, after it and now; each is None if it is too large or was not stored."""
        old, put, present = contents
        if put is None or present is None or tree_ops.fingerprint_bytes(put) != step.after:
            self.failures.append(f"{resolved.display_path} was changed since")
            return
        try:
            current = decode_for_editing(present, resolved.display_path)
            written = decode(put, resolved.display_path).text
            since = describe_changed_lines(written, current.text)
            if old is None:
                created = f"{resolved.display_path} was created and has been changed since ({since})"
                self.failures.append(f"{created}; delete it")
                return
            merged = revert_change(current.text, written, decode(old, resolved.display_path).text)
            data = encode(merged, current.encoding, resolved.display_path)
        except EditError:
            self.failures.append(f"{resolved.display_path} was changed since in the same lines ({since})")
        except ToolError as error:
            self.failures.append(str(error))
        else:
            self.notes.append(f"{resolved.display_path} was changed since ({since}); those edits were kept")
            self.diffs.append(_render_diff(resolved, present, data))
            after = tree_ops.fingerprint_bytes(data)
            attributes = tree_ops.read_attributes(resolved.name, resolved.dirfd)
            stage = stage_new_file(data, resolved.status, attributes)
            self._add(ChangeStep(kind="put", path=step.path, before=now, after=after), stage)

    def _from_store(self, index: int, text: bytes | None) -> StagedContent:
        def make(dirfd: int, new: str) -> None:
            with open_subdirectory(self._store_fd, self._name) as stored_fd:
                tree_ops.clone(str(index), stored_fd, new, dirfd)

        return StagedContent(make, text)


def read_file_bytes(name: str, dirfd: int) -> bytes | None:
    """Return the content of a regular file, or None if it is missing, not regular, or too large to show or merge."""
    status = tree_ops.find_status(name, dirfd)
    resolved = ResolvedPath(dirfd, name, (name,), status)
    if status is None or not resolved.is_file or status.st_size > MAX_SHOWN_BYTES:
        return None
    with open_regular(resolved) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _render_diff(resolved: ResolvedPath, before: bytes | None, after: bytes | None) -> str:
    old, new = (decode_for_diff(data, resolved.display_path) for data in (before, after))
    return render_unified_diff(old, new, resolved.display_path)
