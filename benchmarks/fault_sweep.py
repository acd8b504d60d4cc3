"""Let every system call of every file tool fail once: `python -m benchmarks.fault_sweep`.

For each operation and each function of `os`, the n-th call fails with ENOSPC, EIO, EACCES and EMFILE, for n = 1 until
no call is left. A change must leave the old or the new tree, with an error if it is the old one. A read must return its
usual result, report the missing part, or fail. No descriptor may stay open, and no temporary file may be left once the
workspace is opened again. Then the same operations run on a full and on a read-only file system, and under a file size
limit (like a quota), if this user may mount one. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from adapter.core.errors import ToolError
from adapter.tools.operations import (
    DeleteMemory,
    FindByName,
    FindSymbols,
    Glob,
    Grep,
    InsertAtCursor,
    LoadSkill,
    OpenInEditor,
    Operation,
    Outline,
    ReadText,
    SearchWeb,
    Stat,
    Tree,
    ViewMemory,
    WriteMemory,
    WriteText,
)
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from benchmarks import stopping
from tests.workspace.changes.crashing import ALL_CALLS, ERRORS, SCENARIOS, Failing, content_of, intercepted, lay_out

IN_MEMORY = Path("/dev/shm")
Run = Callable[[Workspace], object]


@dataclass(frozen=True, slots=True)
class Case:
    """An operation, the operations ``before`` it, which do not fail, and whether the tree has a ``large`` file,
    which is read by ranges."""

    run: Run
    before: tuple[Operation, ...] = ()
    large: bool = False


def one(operation: Operation, *before: Operation) -> Case:
    return Case(lambda workspace: workspace.perform(operation), before)


READS: dict[str, Case] = {
    "read": one(ReadText("a.txt")),
    "read a range of a large file": Case(
        lambda workspace: workspace.perform(ReadText("large", start_line=3_000, end_line=3_001)), large=True
    ),
    "read or list": one(ReadText("src", or_list=True)),
    "info": one(Stat("src/b.txt")),
    "list": one(Tree("src")),
    "tree": one(Tree(".", depth=5, gitignore=True)),
    "find": one(FindByName("d")),
    "glob": one(Glob("**/*.txt")),
    "glob, newest": one(Glob("**/*.txt", gitignore=True, order="newest")),
    "grep": one(Grep("a|b|e", context_lines=1)),
    "grep a file": one(Grep("a2", "a.txt")),
    "outline": one(Outline("src/mod.py")),
    "symbols": one(FindSymbols("f")),
    "search": one(SearchWeb("words")),
    "skill": one(LoadSkill("one")),
    "open in the editor": one(OpenInEditor("a.txt")),
    "memory, list": one(ViewMemory(), WriteMemory("n.md", "note\n")),
    "memory, view": one(ViewMemory("n.md"), WriteMemory("n.md", "note\n")),
}
CHANGES: dict[str, Case] = {
    **{name: one(operation) for name, operation in SCENARIOS.items()},
    "overwrite": one(WriteText("a.txt", "new\n"), ReadText("a.txt")),
    "insert in the editor": one(InsertAtCursor("x\n"), OpenInEditor("a.txt")),
    "memory, write": one(WriteMemory("n.md", "other\n"), WriteMemory("n.md", "note\n")),
    "memory, delete": one(DeleteMemory("n.md"), WriteMemory("n.md", "note\n")),
    "undo": Case(lambda workspace: workspace.undo(), (WriteText("a.txt", "new\n"),)),
}


@dataclass(slots=True)
class Row:
    """The results of a sweep over one operation. ``partial``: reads that returned less, with a note."""

    faults: int = 0
    refused: int = 0
    unhurt: int = 0
    partial: int = 0
    bad: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt, and the tree right after it and after the workspace was opened again."""

    outcome: object
    error: Exception | None
    leaked: int
    tree: dict[str, str]
    reopened: dict[str, str]


def lay_out_more(directory: Path) -> None:
    lay_out(directory)
    (directory / "src/mod.py").write_text("def f(x):\n    return x\n", encoding="utf-8")
    (directory / "README.md").write_text("# Words\n\nMore words.\n", encoding="utf-8")
    (directory / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (directory / ".claude/skills/one").mkdir(parents=True)
    skill = "---\nname: one\n---\nDo one thing.\n"
    (directory / ".claude/skills/one/SKILL.md").write_text(skill, encoding="utf-8")


def content(directory: Path) -> dict[str, str]:
    """Return the files of the tree and the memory notes."""
    found = content_of(directory)
    memory = directory.parent / "state" / "projects"
    notes = content_of(memory) if memory.is_dir() else {}
    return found | {f"memory {name}": text for name, text in notes.items() if "/memory/" in name}


def opened(directory: Path) -> Workspace:
    state = str(directory.parent / "state")
    return Workspace(directory, "blade", "yolo", state=state, host=Host(state=state, web=None, search="embedded"))


def attempt(folder: Path, case: Case, before: Callable[[str], None]) -> Attempt:
    """Run the case on a new tree. ``before`` is called before each system call."""
    shutil.rmtree(folder, ignore_errors=True)
    directory = folder / "ws"
    directory.mkdir(parents=True)
    lay_out_more(directory)
    if case.large:
        with (directory / "large").open("wb") as file:
            file.write(b"line\n" * 4_000)
            file.truncate(17 * 1024 * 1024)
    outcome: object = None
    failed: Exception | None = None
    with opened(directory) as workspace:
        for operation in (WriteText("first", ""), *case.before):
            workspace.perform(operation)
        held = _descriptors()
        try:
            with intercepted(before, ALL_CALLS):
                outcome = case.run(workspace)
        except Exception as error:  # noqa: BLE001 - that only ToolError comes is what is looked at
            failed = error.with_traceback(None)
        leaked = _descriptors() - held
        (directory / "large").unlink(missing_ok=True)
        tree = content(directory)
    with opened(directory) as workspace, suppress(ToolError):  # there may be no such note
        workspace.perform(ViewMemory("n.md"))
    return Attempt(outcome, failed, leaked, tree, content(directory))


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def sweep(name: str, folder: Path, codes: Sequence[int] = ERRORS, calls: Sequence[str] = ALL_CALLS) -> Row:
    """Let every system call of the operation fail once with each of ``codes``."""
    case, row = (READS | CHANGES)[name], Row()
    clean = attempt(folder, case, lambda _: None)
    assert clean.error is None, clean.error
    start = attempt(folder, Case(lambda _: None, case.before), lambda _: None).tree
    for call in calls:
        for code in codes:
            number = 0
            while True:
                number += 1
                failing = Failing({number}, code, call)
                found = attempt(folder, case, failing)
                if failing.count < number:
                    break
                row.faults += 1
                fault = f"{call} {number} {errno.errorcode[code]}"
                row.bad += [f"{fault}: {what}" for what in _wrong(name, clean, start, found, row, call)]
    return row


def _wrong(name: str, clean: Attempt, start: dict[str, str], found: Attempt, row: Row, call: str) -> Iterator[str]:
    if found.error is not None and not isinstance(found.error, ToolError):
        yield f"raised {found.error!r}"
    if found.leaked > 0:
        yield f"{found.leaked} descriptors stay open"
    if found.error is not None:
        row.refused += 1
    elif name in CHANGES or _timeless(found.outcome) == _timeless(clean.outcome):
        row.unhurt += 1
    elif getattr(found.outcome, "notes", ()) != getattr(clean.outcome, "notes", ()):
        row.partial += 1
    else:
        yield f"less than always, and nothing said: {found.outcome!r:.300}"
    wanted = clean.reopened if found.error is None else start
    if found.reopened != wanted and not (call == "close" and found.reopened in (start, clean.reopened)):
        yield f"neither the old nor the new: {_difference(found.reopened, wanted)} ({found.error})"
    if strays := [entry for entry in found.reopened if ".adapter-" in entry]:
        yield f"left behind: {strays}"


def _timeless(outcome: object) -> str:
    return re.sub(r"modified=\d+", "", repr(outcome))


def _difference(one: dict[str, str], other: dict[str, str]) -> str:
    return str([(name, one.get(name), other.get(name)) for name in one | other if one.get(name) != other.get(name)])[
        :300
    ]


# ----------------------------------------------------------------------- conditions

CONDITIONS = {
    "full": "mount -t tmpfs -o size=20m none {folder}",
    "read-only": "mount -t tmpfs none {folder}",
    "quota": "true",
}


def under(condition: str, folder: Path) -> Iterator[str]:
    """Try every change where no data can be written, and yield table lines. Run this in a new mount namespace."""
    directory = folder / "ws"
    directory.mkdir()
    lay_out_more(directory)
    with opened(directory) as workspace:
        workspace.perform(WriteText("first", ""))
    with _hardship(condition, folder):
        for name, case in CHANGES.items():
            before, held, outcome = content(directory), _descriptors(), "done"
            try:
                with opened(directory) as workspace:
                    for operation in case.before:
                        workspace.perform(operation)
                    before = content(directory)
                    case.run(workspace)
            except ToolError as error:
                outcome = str(error)
            left = content(directory)
            strays = [entry for entry in left if ".adapter-" in entry]
            is_bad = strays or (outcome != "done" and left != before) or _descriptors() != held
            yield f"| {condition}: {name} | {'BAD' if is_bad else 'ok'} | {outcome[:100]} |"
            if outcome == "done" and condition == "full":
                _fill(folder)


@contextmanager
def _hardship(condition: str, folder: Path) -> Iterator[None]:
    match condition:
        case "full":
            _fill(folder)
            yield
        case "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            yield
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        case _:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2, limits[1]))
            yield
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def _fill(folder: Path) -> None:
    with (folder / "filler").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4_096))
        except OSError:
            return


def conditions() -> Iterator[str]:
    """Yield the lines of the tables for all conditions that this machine can create."""
    for condition, mount in CONDITIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            script = (
                f'{mount.format(folder=folder)} && exec "$0" -m benchmarks.fault_sweep --under {condition} {folder}'
            )
            words = ["unshare", "-rm", "sh", "-c", script, sys.executable]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            yield from done.stdout.splitlines() or [f"| {condition} | not tried | {done.stderr.strip()[-200:]} |"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="names of operations, or their beginnings")
    parser.add_argument("--errors", type=int, default=len(ERRORS), help="how many of the errors; one is a quarter")
    parser.add_argument("--under", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.under:
        for line in under(options.under[0], Path(options.under[1])):
            print(line)
        return 0
    bad = []
    print("| operation | faults | refused | unhurt | partial, said | bad |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        for name in READS | CHANGES:
            if options.only and not any(name.startswith(start) for start in options.only):
                continue
            row = sweep(name, Path(folder) / "sweep", ERRORS[: options.errors])
            numbers = (row.faults, row.refused, row.unhurt, row.partial, len(row.bad))
            print(f"| {name} | {' | '.join(map(str, numbers))} |", flush=True)
            bad += [f"{name}: {what}" for what in row.bad]
    if not options.only:
        print("\n| condition | | what was said |\n|---|---|---|")
        for line in conditions():
            print(line, flush=True)
            bad += [line] if "| BAD |" in line else []
    for line in bad[:60]:
        print("BAD", line)
    return 1 if bad else 0


if __name__ == "__main__":
    stopping.run(main)
