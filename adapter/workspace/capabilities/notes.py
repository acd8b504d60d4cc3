"""Notes that outlive the session: one folder per project, outside the workspace.

The folder is ``projects/<name>-<hash>/memory`` below the state folder
(`state_folder`), where name and hash are those of the git repository around the
workspace, or of the workspace itself. Its files are reached by a gate
of their own, so no note lies outside it, and written as all files are: whole or not at all.
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
from adapter.tools.operations import Delete, FileWritten, MemoryChanged, MemoryList, MemoryNote, Stat, WriteText
from adapter.workspace.context import WorkspaceContext, open_context
from adapter.workspace.files import edit_files, move_copy_delete
from adapter.workspace.files.read_file import text_of
from adapter.workspace.paths.os_errors import os_errors_explained
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import files_below

MAX_LINES = 200
"""Of one note."""
MAX_BYTES = 50_000
"""Of all notes together. Both limits are Maki's: memory is read into prompts."""
MAX_NOTES = 200
"""In a memory."""
MAX_NAMED = 10
"""Notes that the message names when there is no such note."""


def state_folder(given: str | None) -> Path:
    """Where what outlives a session is kept; see https://specifications.freedesktop.org/basedir-spec/."""
    if given is not None:
        return Path(given)
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "toolcall-adapter"


def project_folder(root: str, state: Path) -> Path:
    """The folder of the project that the workspace ``root`` belongs to."""
    here = Path(root)
    project = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
    return state / "projects" / f"{project.name or 'root'}-{digest}"


class NoteStore:
    """The notes below ``folder``, which is made when the first is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> MemoryList:
        if not self.folder.is_dir():
            return MemoryList(())
        with _reachable(), WorkspaceRoot(self.folder) as root:
            paths = files_below(root, limit=MAX_NOTES)
            return MemoryList(
                tuple((escape_for_display(path), edit_files.get_info(root, Stat(path)).size) for path in paths)
            )

    def view(self, path: str) -> MemoryNote:
        path = self._note(path)
        with self._opened() as desk:
            read = text_of(desk, path)
        return MemoryNote(read.path, read.text)

    def check(self, path: str, content: str) -> None:
        """Raises ToolError when the name is none, or the note would be too long, or too much with the others."""
        path = _checked(path)
        _check_folders(path, [name for name, _ in self.list().entries])
        lines = len(split_lines(content))
        if lines > MAX_LINES:
            raise ToolError(f"a note has at most {MAX_LINES} lines, this one has {lines}; keep what matters")
        others = {name: size for name, size in self.list().entries if name != escape_for_display(path)}
        total = sum(others.values()) + len(content.encode("utf-8", "replace"))
        if total > MAX_BYTES:
            raise ToolError(
                f"memory holds at most {MAX_BYTES} bytes, this would make it {total}; delete or shorten notes"
            )
        if len(others) >= MAX_NOTES:
            raise ToolError(f"memory holds at most {MAX_NOTES} notes; delete some, or write into one that is there")

    def write(self, path: str, content: str) -> MemoryChanged:
        self.check(path, content)
        path = _checked(path)
        with os_errors_explained("the note was not written"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened() as desk:
            written = edit_files.plan_write(desk, WriteText(path, content)).commit(desk)
        assert isinstance(written, FileWritten)
        return MemoryChanged(written.path, written.size)

    def delete(self, path: str) -> MemoryChanged:
        path = self._note(path)
        with self._opened() as desk:
            return MemoryChanged(move_copy_delete.delete(desk, Delete(path)).path, None)

    def _note(self, path: str) -> str:
        """The name of a note that is there. Raises ToolError that says which are."""
        path = _checked(path)
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
    def _opened(self) -> Iterator[WorkspaceContext]:
        if not self.folder.is_dir():
            raise ToolError("memory is empty; write a note first")
        with _reachable(), open_context(self.folder, str(self.folder.parent)) as desk:
            yield desk


def _checked(path: str) -> str:
    """The name of a note, below the memory's folder. Raises ToolError for what leads elsewhere."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "~")) or ".." in parts:
        raise ToolError(
            f"{escape_for_display(path)!r} is no name of a note: notes are in memory alone, named as testing.md is"
        )
    return "/".join(parts)


def _check_folders(path: str, names: list[str]) -> None:
    """Raises ToolError for a note that would stand in another note, or where there is a folder of notes."""
    for above in map(str, PurePosixPath(path).parents):
        if escape_for_display(above) in names:
            raise ToolError(f"{escape_for_display(above)} is a note, not a folder of notes; choose another name")
    if any(name.startswith(f"{escape_for_display(path)}/") for name in names):
        raise ToolError(f"{escape_for_display(path)} is a folder of notes; choose another name")


@contextmanager
def _reachable() -> Iterator[None]:
    """That the folder cannot be opened is nothing that the caller did wrong."""
    try:
        yield
    except UsageError as error:
        raise ToolError(f"the memory cannot be reached ({error}). Go on without it") from None
