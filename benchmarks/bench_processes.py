"""What running programs costs, beside the least it can cost, as ratios within one run.

    python -m benchmarks.bench_processes [GIGABYTES]

CPU time of this process and its children, since other work on the machine does
not change it much. Exits with 1 when a bar is missed. Bars: 1 GB of output to its
head and tail at most 1.3 times draining the pipe, in at most 20 MB more memory;
a command under its supervisor at most 40 ms more than without, 80 ms in a sandbox.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial

from adapter.core.text.truncate import truncate
from adapter.tools.operations import RunCommand, RunProgram
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.sandbox import ActiveSandbox, Level, SandboxSettings, find_unavailable_reason
from adapter.workspace.sandbox.shell import run_command
from adapter.workspace.sandbox.user_tool_runner import prepare, run_program

OUTPUT_BAR = 1.3
MEMORY_BAR_MB = 20.0
START_BAR_MS: dict[Level, float] = {"none": 40.0, "landlock": 40.0, "bwrap": 80.0}
ROUNDS = 3
"""Of which the best counts."""
LINE = "all work and no play makes a dull log file, line after line after line"


def main() -> int:
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    missed = []
    with tempfile.TemporaryDirectory() as folder, WorkspaceRoot(folder) as root:
        command = f"yes '{LINE}' | head -c {int(gigabytes * 1e9)}"
        slow = RunProgram("sh", (("-c",), (command,)), slice_output=True)
        ways: dict[str, Callable[[], object]] = {
            "run_command": lambda: truncate(run_command(root, RunCommand(command, timeout_s=600)).output),
            "sliced": lambda: run_program(root, slow, prepare(root, slow), None),
        }
        print(f"{gigabytes:g} GB of output      x draining   MB more")
        drained = min(timed(lambda: drain(command)) for _ in range(ROUNDS))
        for name, way in ways.items():
            before = peak_mb()
            ratio = min(timed(way) for _ in range(ROUNDS)) / drained
            memory = peak_mb() - before
            print(f"{name:20} {ratio:12.2f} {memory:9.1f}")
            if name == "run_command" and ratio > OUTPUT_BAR:
                missed.append(f"{name}: {ratio:.2f} > {OUTPUT_BAR}")
            if memory > MEMORY_BAR_MB:
                missed.append(f"{name}: {memory:.1f} MB > {MEMORY_BAR_MB}")
        plain = timed(lambda: drain("true"), 30) * 1_000
        print(f"`true`: {plain:.1f} ms without a supervisor")
        for level, bar in START_BAR_MS.items():
            if find_unavailable_reason(level) is not None:
                continue
            confinement = ActiveSandbox(SandboxSettings(level), root.path)
            run_command(root, RunCommand("true"), confinement)
            more = timed(partial(run_command, root, RunCommand("true"), confinement), 30) * 1_000 - plain
            confinement.close()
            print(f"{level:12} {more:6.1f} ms more")
            if more > bar:
                missed.append(f"start, {level}: {more:.1f} ms > {bar}")
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


def drain(command: str) -> None:
    """Read the pipe and keep nothing: what any way of running the command costs at least."""
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), 65_536):
            pass


def timed(run: Callable[[], object], times: int = 1) -> float:
    """Seconds of processor time for one run, here and in children."""
    start = sum(os.times()[:4])
    for _ in range(times):
        run()
    return (sum(os.times()[:4]) - start) / times


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
