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
from pathlib import Path

from adapter.errors import ToolError, UsageError
from adapter.operations import Delete, MemoryChanged, MemoryList, MemoryNote, Stat, WriteText, Written
from adapter.text.lines import split_lines
from adapter.text.visible import visible
from adapter.workspace import files, moves
from adapter.workspace.desk import Desk, open_desk
from adapter.workspace.faults import explained
from adapter.workspace.gate import Root
from adapter.workspace.reading import text_of
from adapter.workspace.walk import files_below

MAX_LINES = 200
"""Of one note."""
MAX_BYTES = 50_000
"""Of all notes together. Both limits are Maki's: memory is read into prompts."""
MAX_NOTES = 200
"""In a memory."""


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


class Memory:
    """The notes below ``folder``, which is made when the first is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> MemoryList:
        if not self.folder.is_dir():
            return MemoryList(())
        with _reachable(), Root(self.folder) as root:
            paths = files_below(root, limit=MAX_NOTES)
            return MemoryList(tuple((visible(path), files.get_info(root, Stat(path)).size) for path in paths))

    def view(self, path: str) -> MemoryNote:
        with self._opened() as desk:
            read = text_of(desk, path)
        return MemoryNote(read.path, read.text)

    def check(self, path: str, content: str) -> None:
        """Raises ToolError when the note would be too long, or too much with the others."""
        lines = len(split_lines(content))
        if lines > MAX_LINES:
            raise ToolError(f"a note has at most {MAX_LINES} lines, this one has {lines}; keep what matters")
        others = {name: size for name, size in self.list().entries if name != path.removeprefix("./")}
        total = sum(others.values()) + len(content.encode("utf-8", "replace"))
        if total > MAX_BYTES:
            raise ToolError(
                f"memory holds at most {MAX_BYTES} bytes, this would make it {total}; delete or shorten notes"
            )
        if len(others) >= MAX_NOTES:
            raise ToolError(f"memory holds at most {MAX_NOTES} notes; delete some, or write into one that is there")

    def write(self, path: str, content: str) -> MemoryChanged:
        self.check(path, content)
        with explained("the note was not written"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened() as desk:
            written = files.plan_write(desk, WriteText(path, content)).commit(desk)
        assert isinstance(written, Written)
        return MemoryChanged(written.path, written.size)

    def delete(self, path: str) -> MemoryChanged:
        with self._opened() as desk:
            return MemoryChanged(moves.delete(desk, Delete(path)).path, None)

    @contextmanager
    def _opened(self) -> Iterator[Desk]:
        if not self.folder.is_dir():
            raise ToolError("memory is empty; write a note first")
        with _reachable(), open_desk(self.folder, str(self.folder.parent)) as desk:
            yield desk


@contextmanager
def _reachable() -> Iterator[None]:
    """That the folder cannot be opened is nothing that the caller did wrong."""
    try:
        yield
    except UsageError as error:
        raise ToolError(f"the memory cannot be reached ({error}). Go on without it") from None
