"""Store notes that outlive the session, in one directory per project outside the workspace.

The directory is ``projects/<name>-<hash>/memory`` below the state directory of the `Host`. The name and the hash
identify the git repository that contains the workspace, or the workspace itself if there is no repository. Paths of
notes are confined to this directory. Notes are written atomically, like all files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from rapidfuzz import fuzz, process

from adapter.core.errors import ToolError, UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import split_lines
from adapter.tools import operations as ops
from adapter.workspace.files import file_changes, file_info, move_copy_delete
from adapter.workspace.files.read_file import read_text_file
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import list_files_below
from adapter.workspace.workspace_context import WorkspaceContext, open_context

MAX_LINES = 200
"""Maximum number of lines of a note."""
MAX_BYTES = 50_000
"""Maximum total size of the notes, in bytes. Notes become part of prompts, so this limit and `MAX_LINES` are as low as
in Maki."""
MAX_NOTES = 200
"""Maximum number of notes."""
MAX_NAMED = 10
"""Maximum number of notes listed in an error message."""


def find_project_directory(root: str, state: Path) -> Path:
    """Return the directory, below ``state``, for data about the project that the workspace ``root`` belongs to."""
    here = Path(root)
    project = next((directory for directory in (here, *here.parents) if (directory / ".git").exists()), here)
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
    return state / "projects" / f"{project.name or 'root'}-{digest}"


class NoteStore:
    """The notes below ``directory``, which is created with the first note."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def list(self) -> ops.MemoryList:
        if not self.directory.is_dir():
            return ops.MemoryList(())
        with _convert_memory_errors(), WorkspaceRoot(self.directory) as root:
            sizes = [
                (path, file_info.get_info(root, ops.Stat(path)).size)
                for path in list_files_below(root, limit=MAX_NOTES)
            ]
        return ops.MemoryList(tuple((escape_for_display(path), size) for path, size in sizes))

    def view(self, path: str) -> ops.MemoryNote:
        path = self._require_note(path)
        with self._open() as context:
            read = read_text_file(context, path)
        return ops.MemoryNote(read.path, read.text)

    def check(self, path: str, content: str) -> None:
        """Raise ToolError if the name is invalid, or the new note would exceed a limit on length, number or size."""
        path, entries = _normalize_path(path), self.list().entries
        _check_directories(path, [name for name, _ in entries])
        lines = len(split_lines(content))
        if lines > MAX_LINES:
            raise ToolError(f"the note has {lines} lines; the maximum is {MAX_LINES}. Keep the essentials")
        others = {name: size for name, size in entries if name != escape_for_display(path)}
        total = sum(others.values()) + len(content.encode("utf-8", "replace"))
        if total > MAX_BYTES:
            raise ToolError(f"memory would have {total} bytes; the maximum is {MAX_BYTES}. Delete or shorten notes")
        if len(others) >= MAX_NOTES:
            raise ToolError(f"memory holds at most {MAX_NOTES} notes; delete some, or add to an existing one")

    def write(self, path: str, content: str) -> ops.MemoryChanged:
        self.check(path, content)
        path = _normalize_path(path)
        with convert_os_errors("the note was not written"):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._open() as context:
            written = file_changes.plan_write(context, ops.WriteText(path, content)).commit(context)
        assert isinstance(written, ops.FileWritten)
        return ops.MemoryChanged(written.path, written.size)

    def delete(self, path: str) -> ops.MemoryChanged:
        path = self._require_note(path)
        with self._open() as context:
            deleted = move_copy_delete.plan_delete(context, ops.Delete(path)).commit()
        assert isinstance(deleted, ops.OperationDone)
        return ops.MemoryChanged(deleted.path, None)

    def _require_note(self, path: str) -> str:
        """Return the normalized path of a note. If it does not exist, raise ToolError, which lists the notes."""
        path = _normalize_path(path)
        names = [name for name, _ in self.list().entries]
        if escape_for_display(path) in names:
            return path
        if not names:
            raise ToolError("memory is empty; write a note first")
        near = process.extractOne(path, names, scorer=fuzz.WRatio, score_cutoff=60)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        raise ToolError(
            f"memory has no note {escape_for_display(path)!r}; it has: {', '.join(names[:MAX_NAMED])}{more}{hint}"
        )

    @contextmanager
    def _open(self) -> Iterator[WorkspaceContext]:
        with _convert_memory_errors(), open_context(self.directory, str(self.directory.parent)) as context:
            yield context


def _normalize_path(path: str) -> str:
    """Return the normalized path of a note. Raises ToolError if it is outside the memory directory."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "~")) or ".." in parts:
        raise ToolError(
            f"invalid note name {escape_for_display(path)!r}: "
            "expected a path relative to the memory directory, such as testing.md"
        )
    return "/".join(parts)


def _check_directories(path: str, names: list[str]) -> None:
    """Raise ToolError if a parent of ``path`` is a note, or if ``path`` is a directory that contains notes."""
    for parent in map(str, PurePosixPath(path).parents):
        if escape_for_display(parent) in names:
            raise ToolError(f"{escape_for_display(parent)} is a note, not a directory of notes; choose another name")
    if any(name.startswith(f"{escape_for_display(path)}/") for name in names):
        raise ToolError(f"{escape_for_display(path)} is a directory of notes; choose another name")


@contextmanager
def _convert_memory_errors() -> Iterator[None]:
    """Convert the UsageError for an inaccessible directory to a ToolError that asks the model to continue."""
    try:
        yield
    except UsageError as error:
        raise ToolError(f"the memory is not accessible ({error}). Continue without it") from None
