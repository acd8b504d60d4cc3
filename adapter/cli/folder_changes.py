"""Find the changes that a run made to a folder: by commands, by comparing it before and after the run, and as the lines
in a diff."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from adapter.core.text.diffs import render_unified_diff
from adapter.prompting.intent.text_values import find_paths

MAX_FILES = 10_000
"""Maximum number of files in a folder that is compared."""

Stamps: TypeAlias = dict[str, tuple[int, int, int]]
"""The mode, size and time of the last change of each file, in bytes and nanoseconds, by its path in the folder."""


@dataclass(frozen=True)
class FolderChanges:
    """``diff`` is the unified diff of the changes, or None if unknown; ``gone`` are the files that commands deleted.
    ``is_unchanged`` is True if nothing was changed, and False if that is unknown."""

    diff: str | None = None
    gone: Sequence[str] = ()
    is_unchanged: bool = False


NO_CHANGES = FolderChanges()


@dataclass(frozen=True)
class FolderState:
    """The state of a folder before a run. ``texts`` are the files that the task names, ``stamps`` is None if the folder
    has too many files."""

    root: Path
    texts: dict[str, str]
    stamps: Stamps | None

    @classmethod
    def read(cls, root: Path, task: str, read_file: Callable[[str], str]) -> FolderState:
        return cls(root, {path: read_file(path) for path in find_paths(task)}, _list_stamps(root))

    def compare(self, diff: str | None, read_file: Callable[[str], str]) -> FolderChanges:
        """Return the changes since then. ``diff`` has those of the file tools, and is completed with the others."""
        now, known = _list_stamps(self.root), diff or ""
        changed = {path: (text, new) for path, text in self.texts.items() if (new := read_file(path)) != text}
        others = [
            render_unified_diff(old, new, path)
            for path, (old, new) in changed.items()
            if f"--- a/{path}\n" not in known and f"+++ b/{path}\n" not in known
        ]
        if self.stamps is None or now is None:
            return FolderChanges(known + "".join(others) if others else diff)
        missing = [path for path in self.stamps if path not in now and ".git" not in Path(path).parts]
        gone = [path for path in missing if f"--- a/{path}\n" not in known]
        # A file that was written again with the same text has another time.
        kept = {path for path in self.texts if self.stamps.get(path, ())[:1] == now.get(path, ())[:1]}
        touched = {path for path in {*self.stamps, *now} if self.stamps.get(path) != now.get(path)}
        is_unchanged = not diff and not changed and touched <= kept
        return FolderChanges(known + "".join(others) if others else diff, gone, is_unchanged)


def _list_stamps(root: Path) -> Stamps | None:
    """Return the stamps of the files in ``root``, or None if there are too many. Of git's own data, only those at its
    top count, such as the index, which each command that changes the data also changes."""
    stamps: Stamps = {}
    for folder, names, files in os.walk(root):
        names[:] = [] if Path(folder).name == ".git" else names
        for name in files:
            try:
                status = Path(folder, name).lstat()
            except OSError:
                continue  # it was deleted in the meantime
            stamps[Path(folder, name).relative_to(root).as_posix()] = (
                status.st_mode,
                status.st_size,
                status.st_mtime_ns,
            )
        if len(stamps) > MAX_FILES:
            return None
    return stamps


@dataclass(frozen=True, slots=True)
class DiffedFile:
    """The lines that a run removed from a file and added to it: in total, and for each place."""

    path: str
    is_new: bool
    removed: tuple[str, ...]
    added: tuple[str, ...]
    places: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The old and the new text of each changed line, or of each place whose number of lines changed."""
        for removed, added in self.places:
            is_paired = len(removed) == len(added)
            yield from zip(removed, added, strict=True) if is_paired else [("\n".join(removed), "\n".join(added))]


def parse_diff(diff: str) -> list[DiffedFile]:
    """Return the changes in a unified diff, in its order."""
    changes = []
    # A removed line "-- x" and an added line "++ y" look like a header, but no hunk follows them. Only "\n" ends lines.
    parts = re.split(r"(?m)^--- (?:a/.*|/dev/null)\n\+\+\+ (?=(?:b/.*|/dev/null)\n@@ )", diff)
    for part in parts[1:]:
        path, *lines = (line.removesuffix("\r") for line in part.split("\n"))
        groups = ([*group] for _, group in groupby(lines, lambda line: line.startswith(("-", "+"))))
        places = tuple((_select_lines(group, "-"), _select_lines(group, "+")) for group in groups)
        removed, added = _select_lines(lines, "-"), _select_lines(lines, "+")
        is_new = lines[0].startswith("@@ -0,0 ")
        changes.append(DiffedFile(path.removeprefix("b/"), is_new, removed, added, places))
    return changes


def _select_lines(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    return tuple(line[1:] for line in lines if line.startswith(sign))
