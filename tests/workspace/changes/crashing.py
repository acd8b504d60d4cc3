"""Changes of a workspace that are killed, or fail, at a chosen system call.

Each scenario starts from ``lay_out`` and ends in one of two states of the tree, which ``content_of`` distinguishes.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

from adapter.core.errors import ToolError
from adapter.tools.operations import (
    Copy,
    Delete,
    FileEdit,
    MakeDirectory,
    Move,
    Operation,
    Patch,
    PatchFiles,
    PatchText,
    WriteText,
)
from adapter.workspace.operation_planner import plan_operation
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.workspace_context import open_context

CALLS = (
    *("open", "write", "read", "fsync", "rename", "replace", "link", "unlink", "mkdir", "rmdir", "symlink"),
    *("stat", "fstat", "fchmod", "utime", "scandir", "readlink", "makedirs"),
)
"""The functions of `os` that the file tools use; each is one system call or a few."""
ALL_CALLS = (*CALLS, "close", "dup", "pread", "lseek", "fchown", "lstat", "access", "listdir")
"""Including calls whose failure does not affect the disk."""
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE)

SCENARIOS: dict[str, Operation] = {
    "write": WriteText("a.txt", "new\n"),
    "create": WriteText("new/deep/f.txt", "new\n"),
    "patch": PatchText("a.txt", (Patch("a2", "A2"),)),
    "files": PatchFiles(
        (
            FileEdit("a.txt", patches=(Patch("a2", "A2"),)),
            FileEdit("src/b.txt", patches=(Patch("b", "B"),)),
            FileEdit("new/deep/c.txt", "add", content="c\n"),
            FileEdit("src/gone.txt", "delete"),
            FileEdit("src/d.txt", moved_to="moved/d.txt"),
        )
    ),
    "move": Move("src", "lib/src"),
    "move file": Move("a.txt", "lib/a.txt"),
    "copy": Copy("src", "lib/src"),
    "delete": Delete("src", recursive=True),
    "delete file": Delete("a.txt"),
    "directory": MakeDirectory("one/two"),
}


def lay_out(directory: Path) -> None:
    (directory / "src" / "deep").mkdir(parents=True)
    (directory / "a.txt").write_bytes(b"a1\na2\na3\n")
    (directory / "a.txt").chmod(0o640)
    for name in ("b", "gone", "d", "deep/e"):
        (directory / "src" / f"{name}.txt").write_text(f"{name}\n", encoding="utf-8")
    (directory / "src" / "link").symlink_to("b.txt")


def content_of(directory: Path) -> dict[str, str]:
    """Return every entry with its mode and content."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_dir():
            found[name] = "directory"
        else:
            found[name] = f"{path.stat().st_mode:o} {path.read_bytes()!r}"
    return found


@contextmanager
def intercepted(before: Callable[[str], None], calls: Sequence[str] = CALLS) -> Iterator[None]:
    """Call ``before`` ahead of each of ``calls``; its exception is the call's."""
    real = {name: getattr(os, name) for name in calls}

    def replacement(name: str) -> Callable[..., object]:
        def call(*arguments: object, **keywords: object) -> object:
            if name == "close":  # closed it is, whatever the system says
                real[name](*arguments, **keywords)
                before(name)
                return None
            before(name)
            return real[name](*arguments, **keywords)

        return call

    # Python asks by identity whether a function takes descriptors.
    descriptors = {name: real[name] in os.supports_dir_fd for name in calls}
    try:
        for name in calls:
            setattr(os, name, replacement(name))
            if descriptors[name]:
                os.supports_dir_fd.add(getattr(os, name))
        yield
    finally:
        for name in calls:
            os.supports_dir_fd.discard(getattr(os, name)) if getattr(os, name) is not real[name] else None
            setattr(os, name, real[name])


def perform(directory: Path, scenario: str, before: Callable[[str], None]) -> ToolError | None:
    """Return the error that the scenario ended with, if any. ``before`` is called ahead of its system calls."""
    with open_context(directory) as desk:
        with desk.history.store.lock_journal():
            pass  # the place for the records is made: without one, another is taken
        try:
            with intercepted(before), convert_os_errors("it was not done"):
                plan_operation(desk, SCENARIOS[scenario]).commit()
        except ToolError as error:
            return error
    return None


class Failing:
    """Make the calls with the numbers ``which`` fail, of one kind or of all."""

    def __init__(self, which: set[int], code: int, kind: str | None = None) -> None:
        self.which, self.code, self.kind, self.count = which, code, kind, 0

    def __call__(self, name: str) -> None:
        if self.kind in (None, name):
            self.count += 1
            if self.count in self.which:
                raise OSError(self.code, os.strerror(self.code))


class Killing(Failing):
    """Kill the process instead."""

    def __call__(self, name: str) -> None:
        try:
            super().__call__(name)
        except OSError:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(action: Callable[[], object]) -> bool:
    """Return whether ``action`` was killed. It is forked, which takes milliseconds."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def write_forever(directory: Path, pause_s: float) -> None:
    """Change five files to the next version, again and again; each rename is followed by a pause."""

    def before(name: str) -> None:
        if name in ("rename", "replace", "link", "unlink", "mkdir"):
            time.sleep(pause_s)

    with open_context(directory) as desk, intercepted(before):
        version = int((directory / "f0").read_text(encoding="utf-8").split()[0])
        while True:
            version += 1
            patches = (Patch(f"{version - 1} ", f"{version} "),)
            edits = [FileEdit(f"f{index}", patches=patches) for index in range(4)]
            source, target = (f"only/{number % 2}/f4" for number in (version - 1, version))
            plan_operation(desk, PatchFiles((*edits, FileEdit(source, patches=patches, moved_to=target)))).commit()


# ------------------------------------------------------------ one file at a time

LINES, MARKED = 2_000, 20
"""The number of lines of the changed file, and of the lines that show its version."""


def version_text(version: int) -> str:
    """Return about 100 KB of text in which a torn write is visible."""
    lines = [f"line {number:06d} of a file that does not change\n" for number in range(LINES)]
    lines[:: LINES // MARKED] = [f"{version:08d} mark {number}\n" for number in range(MARKED)]
    return "".join(lines)


def next_write(version: int) -> Operation:
    return WriteText("target", version_text(version))


def next_edit(version: int) -> Operation:
    """Return an edit of every mark. The text before all marks is the version."""
    old, new = version_text(version - 1), version_text(version)
    return PatchText("target", (Patch(old, new),))


def next_patch(version: int) -> Operation:
    marks = [(f"{version - 1:08d} mark {number}\n", f"{version:08d} mark {number}\n") for number in range(MARKED)]
    return PatchText("target", tuple(Patch(old, new) for old, new in marks))


def next_copy(version: int) -> Operation:
    return Copy("target", f"copies/{version}")


def next_move(version: int) -> Operation:
    names = ("target", "moved/target")
    return Move(names[(version - 1) % 2], names[version % 2])


SINGLE: dict[str, Callable[[int], Operation]] = {
    "write": next_write,
    "edit": next_edit,
    "patch": next_patch,
    "copy": next_copy,
    "move": next_move,
}
"""The change that brings the file to a version, by name."""


@dataclass(slots=True)
class Kills:
    """The result of kills during single changes. ``strays``: the largest number of temporary files next to a target."""

    kills: int = 0
    changes: int = 0
    torn: int = 0
    interrupted: int = 0
    """The number of kills that left something to repair."""
    strays: int = 0
    stay: int = 0
    """The number of temporary files that remained after the next change."""


def change_forever(directory: Path, next_change: Callable[[int], Operation], version: int, begun: int) -> None:
    with open_context(directory) as desk:
        os.write(begun, b".")
        for number in count(version + 1):
            plan_operation(desk, next_change(number)).commit()
            os.write(begun, b".")


def overwrite_forever(directory: Path, version: int, begun: int) -> None:
    """Write the file in place, again and again, unlike our writes."""
    os.write(begun, b".")
    for number in count(version + 1):
        (directory / "target").write_text(version_text(number), encoding="utf-8")
        os.write(begun, b".")


def kill_one_file(directory: Path, name: str, kills: int, seed: int = 0) -> Kills:
    """Send SIGKILL at random moments while one file is changed again and again; ``naive`` for `overwrite_forever`."""
    choice, results, version = Random(seed), Kills(), 0
    (directory / "copies").mkdir(parents=True)
    (directory / "moved").mkdir()
    (directory / "target").write_text(version_text(0), encoding="utf-8")
    while results.kills < kills:
        waiting, begun = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if name == "naive":
                    overwrite_forever(directory, version, begun)
                change_forever(directory, SINGLE[name], version, begun)
            finally:
                os._exit(1)
        for _ in range(1 + results.kills % 2):  # on a busy machine no change may come in the time below
            os.read(waiting, 1)
        time.sleep(choice.uniform(0.0, 0.06))
        os.close(waiting)
        os.close(begun)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), status
        results.kills += 1
        strays = _strays(directory)
        results.strays = max(results.strays, max((strays.count(each) for each in strays), default=0))
        if any(not _is_whole(path) for path in directory.rglob("*") if path.is_file() and path.name[0] != "."):
            results.torn += 1
            (directory / "target").write_text(version_text(version), encoding="utf-8")
        if name == "naive":
            version = int((directory / "target").read_text(encoding="utf-8")[:8])
            continue
        with open_context(directory) as desk:
            results.interrupted += bool(desk.history.recovered)
            reached = _version(directory, name, version)
            plan_operation(desk, SINGLE[name](reached + 1)).commit()
        results.changes += reached - version
        version = reached + 1
        results.torn += version != _version(directory, name, reached)
        results.stay += len(_strays(directory))
        for copied in (directory / "copies").iterdir():
            copied.unlink()
    return results


def _version(directory: Path, name: str, known: int) -> int:
    """Return the last version that was written, of which ``known`` existed before."""
    if name == "copy":
        return max([known, *(int(path.name) for path in (directory / "copies").iterdir())])
    if name == "move":
        places = [(directory / "target").exists(), (directory / "moved/target").exists()]
        assert sum(places) == 1, places
        return known + (known % 2 != places.index(True))
    return int((directory / "target").read_text(encoding="utf-8")[:8])


def _is_whole(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return text[:8].isdigit() and text == version_text(int(text[:8]))


def _strays(directory: Path) -> list[str]:
    """Return the temporary files of unfinished changes, each by the name of its target."""
    with suppress(FileNotFoundError):
        return [str(path.with_suffix("")) for path in directory.rglob(".adapter-*")]
    return []
