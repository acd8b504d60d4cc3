"""Find the changes that a run made to a folder.

Changes by file tools are known from their diff. Changes by commands are found by comparing the folder before and after
the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from adapter.core.text.diffs import render_unified_diff
from adapter.prompting.intent.text_values import find_paths

MAX_FILES = 10_000
"""Maximum number of files in a folder that is compared."""

Stamps: TypeAlias = dict[str, tuple[int, int, int]]
"""The mode, the size in bytes and the modification time in nanoseconds of each file, by its path in the folder."""


@dataclass(frozen=True)
class FolderChanges:
    """The changes that a run made to a folder.

    ``diff`` is a unified diff, or None if unknown. ``deleted`` has the paths of files that commands deleted.
    ``is_unchanged`` is True if it is certain that no file was changed. ``kept`` has the paths that existed before and
    after the run.
    """

    diff: str | None = None
    deleted: Sequence[str] = ()
    is_unchanged: bool = False
    kept: Sequence[str] = ()


NO_CHANGES = FolderChanges()


@dataclass(frozen=True)
class FolderState:
    """The state of a folder before a run. ``texts`` has the texts of the files that the task names, by path. ``stamps``
    has the size and times of all files, or is None if the folder has too many files."""

    root: Path
    texts: dict[str, str]
    stamps: Stamps | None

    @classmethod
    def read(cls, root: Path, task: str, read_file: Callable[[str], str]) -> FolderState:
        """Return the present state of ``root``. ``read_file`` returns the text of a file, or ""."""
        return cls(root, {path: read_file(path) for path in find_paths(task)}, _list_stamps(root))

    def compare(self, diff: str | None, read_file: Callable[[str], str]) -> FolderChanges:
        """Return the changes since this state. ``diff`` has the changes by file tools; changes that commands made to
        the files that the task names are added to it."""
        now, known = _list_stamps(self.root), diff or ""
        changed = {path: (text, new) for path, text in self.texts.items() if (new := read_file(path)) != text}
        others = [
            render_unified_diff(old, new, path)
            for path, (old, new) in changed.items()
            if f"--- a/{path}\n" not in known and f"+++ b/{path}\n" not in known
        ]
        combined = known + "".join(others) if others else diff
        if self.stamps is None or now is None:
            return FolderChanges(combined)
        missing = [path for path in self.stamps if path not in now and ".git" not in Path(path).parts]
        deleted = [path for path in missing if f"--- a/{path}\n" not in known]
        # Writing the same text again changes only the time.
        kept = {path for path in self.texts if self.stamps.get(path, ())[:1] == now.get(path, ())[:1]}
        touched = {path for path in {*self.stamps, *now} if self.stamps.get(path) != now.get(path)}
        is_unchanged = not diff and not changed and touched <= kept
        return FolderChanges(combined, deleted, is_unchanged, [path for path in self.stamps if path in now])


def _list_stamps(root: Path) -> Stamps | None:
    """Return the mode, size and time of modification of each file in ``root``, or None if there are too many files.

    The folders in ``.git`` are skipped, because a command that changes git's data also changes a file directly in
    ``.git``, such as the index.
    """
    stamps: Stamps = {}
    for folder, names, files in os.walk(root):
        names[:] = [] if Path(folder).name == ".git" else names
        for name in files:
            path = Path(folder, name)
            with suppress(OSError):  # the file was deleted in the meantime
                status = path.lstat()
                stamps[path.relative_to(root).as_posix()] = status.st_mode, status.st_size, status.st_mtime_ns
        if len(stamps) > MAX_FILES:
            return None
    return stamps


@dataclass(frozen=True, slots=True)
class DiffedFile:
    """The lines that a run removed from a file and added to it. ``blocks`` has the removed and added lines of each
    block of consecutive changes."""

    path: str
    is_new: bool
    removed: tuple[str, ...]
    added: tuple[str, ...]
    blocks: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The old and the new text of each changed line. If a block has more or fewer lines than before, it is one
        pair."""
        for removed, added in self.blocks:
            is_paired = len(removed) == len(added)
            yield from zip(removed, added, strict=True) if is_paired else [("\n".join(removed), "\n".join(added))]


def parse_diff(diff: str) -> list[DiffedFile]:
    """Return the changed files of a unified diff, in its order."""
    changes = []
    # A removed line "-- x" and an added line "++ y" look like a header, but no hunk follows them. Only "\n" ends lines.
    parts = re.split(r"(?m)^--- (?:a/.*|/dev/null)\n\+\+\+ (?=(?:b/.*|/dev/null)\n@@ )", diff)
    for part in parts[1:]:
        path, *lines = (line.removesuffix("\r") for line in part.split("\n"))
        groups = ([*group] for _, group in groupby(lines, lambda line: line.startswith(("-", "+"))))
        blocks = tuple((_select_lines(group, "-"), _select_lines(group, "+")) for group in groups)
        removed, added = _select_lines(lines, "-"), _select_lines(lines, "+")
        is_new = lines[0].startswith("@@ -0,0 ")
        changes.append(DiffedFile(path.removeprefix("b/"), is_new, removed, added, blocks))
    return changes


def _select_lines(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    return tuple(line[1:] for line in lines if line.startswith(sign))
