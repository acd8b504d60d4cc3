"""Race every operation against a second process that swaps the folders and files on its path.

    python -m benchmarks.swap_race --seconds 60
    python -m benchmarks.swap_race --seconds 60 --only read write

The other process exchanges (`renameat2`, RENAME_EXCHANGE, so that there is always one of them) a directory for a link
to an outside directory, and a file for a link to an outside file, as often as possible: in the workspace, in the skills
folder and in the memory folder. Outside are canaries: a text, a name and a size that no result, message, diff or copy
may show, and that must stay unchanged, including directory times. For comparison, the last rows race `naive`, which
checks with realpath and then opens by name, and fails.

Everything runs in a bubblewrap sandbox in which only a new folder is writable, or not at all, because the loser of a
race does harm. Exits with 1 if anything came in from outside, or was written there.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from adapter.core.errors import ToolError
from adapter.dialects import list_dialect_names
from adapter.tools.operations import (
    Copy,
    Delete,
    DeleteMemory,
    FileEdit,
    FindByName,
    FindSymbols,
    Glob,
    GoToLine,
    Grep,
    InsertAtCursor,
    LoadSkill,
    MakeDirectory,
    Move,
    OpenInEditor,
    Operation,
    Outline,
    Patch,
    PatchFiles,
    PatchText,
    ReadCommandOutput,
    ReadText,
    RunCommand,
    SearchWeb,
    StartCommand,
    Stat,
    Tree,
    ViewMemory,
    WriteMemory,
    WriteText,
)
from adapter.tools.operations.permissions import ApprovalRequest
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.capabilities.memory_notes import find_project_directory
from benchmarks import stopping
from benchmarks.naive import check_confined, confine
from benchmarks.random_calls import World, random_call

CANARY = "CANARY-7f3c"
CANARY_NAME = "outside_canary.py"
CANARY_SIZE = 7_919
CANARIES = (CANARY, CANARY_NAME, "outside_canary", str(CANARY_SIZE))
RENAME_EXCHANGE = 2
LIBC = ctypes.CDLL(None, use_errno=True)
CAN_EXCHANGE = hasattr(LIBC, "renameat2")
"""True on Linux with glibc 2.28 or later."""

IN_MEMORY = Path("/dev/shm")
"""A folder in memory, which allows the most attempts per second."""

SKILLS = ".claude/skills"
FOLDERS = ("arena", SKILLS)
"""Workspace directories with a directory ``d``, a file ``f``, and the links with which these are swapped."""

Run = Callable[[Workspace, int], object]
"""Runs attempt ``number``. Its result or error is searched for canaries."""


@dataclass(slots=True)
class Row:
    """The results of one operation. ``changed``: changes found outside."""

    name: str
    calls: int = 0
    done: int = 0
    leaks: int = 0
    changed: int = 0
    first: str = ""

    @property
    def escaped(self) -> bool:
        return bool(self.leaks or self.changed)


# ------------------------------------------------------------------- operations


def one(*operations: Operation) -> Run:
    """Return a run of ``operations``. The last outcome counts, and all outcomes are searched."""

    def run(workspace: Workspace, _: int) -> object:
        outcomes: list[object] = []
        for operation in operations:
            try:
                outcomes.append(workspace.perform(operation))
            except ToolError as error:
                if operation is operations[-1]:
                    raise ToolError(f"{outcomes} {error}") from error
                outcomes.append(error)
        return outcomes

    return run


def undo(workspace: Workspace, number: int) -> object:
    """Make a change and undo it, during the race.

    No attempt number or time may look like the size of a canary.
    """
    for path in ("arena/d/key", f"arena/d/new{number % 5}"):
        with suppress(ToolError):
            workspace.perform(WriteText(path, f"{number % 1000}\n"))
    undone = workspace.undo()
    return undone.change.summary, undone.diff, undone.notes


def background(workspace: Workspace, _: int) -> object:
    started: Any = workspace.perform(StartCommand("cat key; ls", "arena/d"))
    output, deadline = "", time.monotonic() + 10
    while time.monotonic() < deadline:
        read: Any = workspace.perform(ReadCommandOutput(started.id))
        output += repr(read)
        if read.status != "running":
            break
        time.sleep(0.01)
    return output


def any_tool(workspace: Workspace, number: int) -> object:
    """Call a random tool with random arguments and paths that are in the race."""
    name, arguments = random_call(Random(number), workspace.tools, WORLD)
    result = workspace.run(name, arguments)
    if not result.ok:
        raise ToolError(result.content)
    return result


WORLD = World(
    ("arena/d/key", "arena/d", "arena/f", "arena", ".", "arena/d/new", "arena/moved", "arena/d/sub/deep", "nothing"),
    without=frozenset({"execute"}),  # the sandbox restricts the files that a program opens
)

READS: dict[str, Run] = {
    "read": one(ReadText("arena/d/key")),
    "read a file": one(ReadText("arena/f")),
    "read a range": one(ReadText("arena/d/key", start_line=1, end_line=1, context_lines=3)),
    "read or list": one(ReadText("arena/d", or_list=True)),
    "read what is not there": one(ReadText("arena/d/outside_kanary.py")),
    "info": one(Stat("arena/d/key")),
    "info of a file": one(Stat("arena/f")),
    "list": one(Tree("arena/d")),
    "tree": one(Tree(".", depth=5, gitignore=True)),
    "find": one(FindByName("canary")),
    "find in a directory": one(FindByName("canary", "arena/d")),
    "glob": one(Glob("**/*canary*")),
    "glob, newest": one(Glob("arena/**/*", order="newest")),
    "grep": one(Grep("CANARY|def", context_lines=2)),
    "grep a directory": one(Grep("CANARY", "arena/d")),
    "grep a file": one(Grep("CANARY", "arena/f")),
    "outline": one(Outline("arena/d/mod.py")),
    "symbols": one(FindSymbols("canary")),
    "symbols of a file": one(FindSymbols("canary", scope="file", path="arena/d/mod.py")),
    "search": one(SearchWeb("canary")),
    "skill": one(LoadSkill("inner")),
    "skill from outside": one(LoadSkill("outer")),
    "memory, list": one(ViewMemory()),
    "memory, view": one(ViewMemory("d/key")),
    "memory, view a file": one(ViewMemory("f")),
    "shell": one(RunCommand("cat key; ls; pwd -P", "arena/d")),
    "background shell": background,
}
CHANGES: dict[str, Run] = {
    "write": one(ReadText("arena/d/key"), WriteText("arena/d/key", "written\n")),
    "write a file": one(ReadText("arena/f"), WriteText("arena/f", "written\n")),
    "write a new file": one(WriteText("arena/d/sub/deep/new.txt", "written\n"), Delete("arena/d/sub", recursive=True)),
    "edit": one(PatchText("arena/d/key", (Patch("inside", "INSIDE"),))),
    "edit, no match": one(PatchText("arena/d/key", (Patch("def canary_text(", "x"),))),
    "edit several": one(
        PatchFiles(
            (
                FileEdit("arena/d/key", patches=(Patch("inside", "in side"),)),
                FileEdit("arena/f", patches=(Patch("inside", "in side"),)),
                FileEdit("arena/d/added", "add", content="added\n"),
                FileEdit("arena/d/note", "delete"),
            )
        )
    ),
    "delete": one(Delete("arena/d/key")),
    "delete a file": one(Delete("arena/f")),
    "delete a directory": one(Delete("arena/d", recursive=True)),
    "delete all": one(Delete("arena", recursive=True)),
    "move out of": one(Move("arena/d/key", "arena/moved")),
    "move into": one(Move("arena/other", "arena/d/moved")),
    "move the directory": one(Move("arena/d", "arena/moved")),
    "copy out of": one(Copy("arena/d/key", "arena/copied")),
    "copy into": one(Copy("arena/other", "arena/d/copied")),
    "copy the directory": one(Copy("arena/d", "arena/copied")),
    "copy all": one(Copy("arena", "copied")),
    "mkdir": one(MakeDirectory("arena/d/sub/deep")),
    "undo": undo,
    "editor": one(OpenInEditor("arena/d/key"), GoToLine(1), InsertAtCursor("x")),
    "memory, write": one(WriteMemory("d/key", "written\n")),
    "memory, delete": one(DeleteMemory("d/key")),
    **{f"tools of {name}": any_tool for name in list_dialect_names()},
}


# ------------------------------------------------------------------------ naive


def naive(root: str, operation: Operation) -> object:
    """Perform an operation as usual: resolve the path, check that it is below the root, then open it by name."""
    check_confined()

    def checked(path: str) -> str:
        real = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - as it is usually written
        if os.path.commonpath([root, real]) != root:
            raise ToolError(f"{path} is outside the workspace")
        return real

    match operation:
        case ReadText(path=path):
            return Path(checked(path)).read_text(encoding="utf-8")
        case Tree(path=path):
            return os.listdir(checked(path))  # noqa: PTH208
        case WriteText(path=path, content=content):
            return Path(checked(path)).write_text(content, encoding="utf-8")
        case Copy(source=source, destination=destination):
            return shutil.copyfile(checked(source), checked(destination))
        case Delete(path=path):
            Path(checked(path)).unlink()
            return None
        case _:
            raise AssertionError(operation)


def naively(operation: Operation) -> Run:
    return lambda workspace, _: naive(workspace.root, operation)


NAIVE_READS: dict[str, Run] = {
    "naive read": naively(ReadText("arena/d/key")),
    "naive list": naively(Tree("arena/d")),
}
NAIVE_CHANGES: dict[str, Run] = {
    "naive write": naively(WriteText("arena/d/key", "written\n")),
    "naive copy": naively(Copy("arena/d/key", "arena/copied")),
    "naive delete": naively(Delete("arena/d/key")),
}


# ---------------------------------------------------------------------- files


class Ground:
    """A workspace with the entries to swap, the outside folder, and the workspace's memory folder."""

    def __init__(self, folder: Path) -> None:
        self.outside = folder / "outside"
        self.directory = folder / "ws"
        self.state = folder / "state"
        self.memory = find_project_directory(os.path.realpath(self.directory), self.state) / "memory"
        self.folders = [*(self.directory / name for name in FOLDERS), self.memory]
        self.outside.mkdir(parents=True)
        text = f"{CANARY}\ndef canary_text(): ...\n"
        (self.outside / "key").write_text(text.ljust(CANARY_SIZE), encoding="utf-8")
        for name in (CANARY_NAME, "mod.py", "README.md", "note"):
            (self.outside / name).write_text(f"# {CANARY}\ndef outside_canary(): ...\n", encoding="utf-8")
        skill = f"---\nname: outer\ntitle: {CANARY}\n---\n{CANARY}\n"
        (self.outside / "SKILL.md").write_text(skill, encoding="utf-8")
        self.restore()
        self.before = snapshot(self.outside)

    def restore(self) -> None:
        for place in self.folders:
            place.mkdir(parents=True, exist_ok=True)
            self._complete(place, "d", self.outside)
            self._complete(place, "f", self.outside / "key")
            self._fill(place)
        (self.directory / "arena" / "other").write_text("inside\n", encoding="utf-8")

    def _complete(self, place: Path, own: str, target: Path) -> None:
        free = [name for name in (own, f"{own}l") if not os.path.lexists(place / name)]
        if not free:
            return
        if len(free) == 2 or not any((place / name).is_symlink() for name in (own, f"{own}l")):
            (place / free.pop()).symlink_to(target)
        for name in free:
            if own == "d":
                (place / name).mkdir()
            else:
                (place / name).touch()

    def _fill(self, place: Path) -> None:
        """Write the files of the real directory, and the real file, under their current names."""
        for name in ("f", "fl"):
            with suppress(OSError):
                _put(name, b"inside\n", os.open(place, os.O_RDONLY | os.O_DIRECTORY))
        for name in ("d", "dl"):
            try:
                descriptor = os.open(place / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError:
                continue
            for extra in ("moved", "copied", "added"):
                with suppress(OSError):
                    os.unlink(extra, dir_fd=descriptor)
            for file, text in INSIDE.items():
                _put(file, text, os.dup(descriptor))
            os.close(descriptor)

    def find_canary(self) -> str:
        """Return the first canary found in a file of the workspace or the memory. The search does not use our code."""
        for top in (self.directory, self.memory):
            for folder, _, names, dirfd in os.fwalk(top):  # by descriptors, because the other process keeps swapping
                for name in names:
                    if name == CANARY_NAME:
                        return f"{folder}/{name}"
                    with suppress(OSError):
                        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=dirfd)
                        with os.fdopen(descriptor, "rb") as file:
                            if CANARY.encode() in file.read():
                                return f"{folder}/{name}"
        return ""

    def clear(self) -> None:
        """Remove copies and moved entries."""
        for path in (*(self.directory / "arena" / name for name in ("moved", "copied")), self.directory / "copied"):
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)


def _put(name: str, text: bytes, dirfd: int) -> None:
    """Write ``name`` unless it is a link, and close ``dirfd``."""
    try:
        with os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644, dir_fd=dirfd), "r+b") as file:
            if file.read() != text:
                file.seek(0)
                file.truncate()
                file.write(text)
    finally:
        os.close(dirfd)


INSIDE = {
    "key": b"inside\n",
    "mod.py": b"def inside(): ...\n",
    "note": b"inside\n",
    "SKILL.md": b"---\nname: inner\ntitle: Inner\n---\ninside\n",
}


def snapshot(folder: Path) -> list[tuple[object, ...]]:
    """Return the state of the outside folder: names, kinds, sizes, modification times, contents."""
    found: list[tuple[object, ...]] = []
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        times = (status.st_mtime_ns, status.st_ctime_ns)
        found.append((str(path), status.st_mode, status.st_ino, status.st_size, times, content))
    return found


SWAPPER = """
import ctypes, os, random, select, sys
libc = ctypes.CDLL(None)
pairs = [(os.fsencode(f"{place}/{own}"), os.fsencode(f"{place}/{own}l")) for place in sys.argv[1:] for own in "df"]
print("swapping", flush=True)
count, chance = 0, random.Random(1)
parent = os.getppid()
try:
    while os.getppid() == parent:
        longest = chance.choice((1, 100, 1_000, 20_000))
        for _ in range(20):
            for one, other in pairs:
                count += libc.renameat2(-100, one, -100, other, 2) == 0
                for _ in range(chance.randrange(longest)):
                    pass
        if select.select([0], [], [], 0)[0]:
            break
finally:
    print(count, flush=True)
"""


@contextmanager
def swapping(places: Sequence[Path]) -> Iterator[list[int]]:
    """Swap entries during the ``with`` body. The yielded list then contains the number of swaps."""
    words = [sys.executable, "-I", "-S", "-c", SWAPPER, *map(str, places)]
    count: list[int] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        try:
            yield count
        finally:
            process.stdin.write("end\n")
            process.stdin.flush()
            count.append(int(process.stdout.readline() or 0))


# -------------------------------------------------------------------------- races


def race(ground: Ground, name: str, run: Run, seconds: float) -> Row:
    row, shown = Row(name), list[str]()

    def approve(approval: ApprovalRequest) -> bool:
        shown.append(f"{approval.summary} {approval.diff} {approval.paths}")
        return True

    dialect = name.removeprefix("tools of ") if name.startswith("tools of ") else "blade"
    host = Host(state=str(ground.state), web=None, search="embedded")
    ground.restore()
    with Workspace(ground.directory, dialect, approve, state=ground.state, host=host) as workspace:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            shown.clear()
            try:
                said = repr(run(workspace, row.calls))
                row.done += 1
            except (ToolError, OSError) as error:
                said = str(error)
            row.calls += 1
            _look_through(" ".join((said, *shown)), row)
            if row.calls % 50 == 0:
                _look_around(ground, row)
            if name not in CHANGES and name not in NAIVE_CHANGES:
                continue
            ground.restore()
            if any((ground.directory / path).exists() for path in ("arena/moved", "arena/copied", "copied")):
                _look_around(ground, row)
                ground.clear()
    _look_around(ground, row)
    return row


def _look_through(text: str, row: Row) -> None:
    found = next((canary for canary in CANARIES if canary in text), None)
    if found is not None:
        row.leaks += 1
        at = text.index(found)
        row.first = row.first or text[max(at - 200, 0) : at + 100]


def _look_around(ground: Ground, row: Row) -> None:
    came = ground.find_canary()
    if came:
        row.leaks += 1
        row.first = row.first or f"{came} holds a canary"
        ground.clear()
    if (now := snapshot(ground.outside)) != ground.before:
        row.changed += 1
        row.first = row.first or f"outside: {[entry[:3] for entry in now if entry not in ground.before][:2]}"
        shutil.rmtree(ground.outside)
        for path, mode, _, _, _, content in ground.before:
            assert isinstance(content, bytes)
            assert isinstance(mode, int)
            Path(str(path)).mkdir() if stat.S_ISDIR(mode) else Path(str(path)).write_bytes(content)
        ground.before = snapshot(ground.outside)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each operation")
    parser.add_argument("--only", nargs="*", help="names of rows, or their beginnings")
    options = parser.parse_args()
    confine("benchmarks.swap_race")
    if not CAN_EXCHANGE:
        print("this system has no renameat2", file=sys.stderr)
        return 2
    chosen = {
        name: run
        for name, run in {**READS, **CHANGES, **NAIVE_READS, **NAIVE_CHANGES}.items()
        if not options.only or any(name.startswith(start) for start in options.only)
    }
    print("| operation | attempts | of them done | swaps | came in | changed outside |")
    print("|---|--:|--:|--:|--:|--:|")
    escaped = []
    for name, run in chosen.items():
        with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
            ground = Ground(Path(folder))
            with swapping(ground.folders) as swaps:
                row = race(ground, name, run, options.seconds)
        numbers = " | ".join(f"{number:,}" for number in (row.calls, row.done, swaps[0], row.leaks, row.changed))
        print(f"| {name} | {numbers} |", flush=True)
        if row.escaped and not name.startswith("naive"):
            escaped.append(f"{name}: {row.first}")
    for line in escaped:
        print("ESCAPED", line)
    return 1 if escaped else 0


if __name__ == "__main__":
    stopping.run(main)
