"""Starts everything that tries to stay, and looks what is left: `python -m benchmarks.stray_processes`.

Each way in the shell tool (to its end, and until its time is up), as a background command that is
killed, and as the program of a tool of Promptly's. One table: the processes left, the seconds that
it took beyond the timeout, and for `yes` the memory. Exits with 1 when a process is left, when
something was back later than a second after its timeout (and the moment it is given to end by
itself), or when `yes` cost more than 20 MB.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adapter.core.errors import ToolError
from adapter.tools.operations import KillCommand, RunCommand, RunProgram, StartCommand
from adapter.workspace import Workspace
from adapter.workspace.sandbox.child_process import GRACE_S
from benchmarks import stopping
from tests.workspace.sandbox.running import living
from tests.workspace.sandbox.test_hygiene import WAYS, python

TIMEOUT_S = 2.0
LATE_S = 1.0
MEMORY_BAR_MB = 20.0
BOMB = """
    import os, sys
    for generation in range(11):
        if os.fork() == 0 and generation % 2:
            os.setsid()
    os.execvp("sleep", ["sleep", sys.argv[1]])
"""
MORE = {
    "SIGTERM ignored": "sh -c 'trap \"\" TERM INT HUP; {nap}; {nap}' &",
    "fork bomb": python(BOMB) + " {seconds} &",
    "yes": "yes & {nap} &",
}


@dataclass(frozen=True, slots=True)
class Row:
    left: int
    late: float
    """Seconds beyond the timeout and the grace; negative when it ended before."""
    megabytes: float


def in_shell(workspace: Workspace, command: str) -> None:
    workspace.perform(RunCommand(f"{command}\nexec sleep 60", timeout_s=TIMEOUT_S))


def to_its_end(workspace: Workspace, command: str) -> None:
    workspace.perform(RunCommand(f"{command}\nsleep 0.2", timeout_s=60))


def in_background(workspace: Workspace, command: str) -> None:
    started = workspace.perform(StartCommand(f"{command}\nexec sleep 60"))
    time.sleep(TIMEOUT_S)
    workspace.perform(KillCommand(started.id))  # type: ignore[union-attr]


def as_program(workspace: Workspace, command: str) -> None:
    workspace.perform(RunProgram("sh", (("-c",), (f"{command}\nexec sleep 60",)), timeout_s=TIMEOUT_S))


HOSTS: dict[str, Callable[[Workspace, str], None]] = {
    "shell": in_shell,
    "shell, ended": to_its_end,
    "background": in_background,
    "program": as_program,
}


def measure(folder: Path, way: str, host: str) -> Row:
    """One command with one way of staying; its naps are of a length that nobody else's have."""
    seconds = 2_000_000 + os.getpid() % 100_000 * 10
    nap = f"sleep {seconds}"
    command = (WAYS | MORE)[way].replace("{nap}", nap).replace("{seconds}", str(seconds))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Workspace(folder, approve="yolo", state=folder.parent / "state") as workspace:
        started = time.monotonic()
        try:
            HOSTS[host](workspace, command)
        except ToolError as error:
            print(f"{way} in {host}: {error}", file=sys.stderr)
        late = time.monotonic() - started - (60 if host == "shell, ended" else TIMEOUT_S + GRACE_S)
        left = len(living(nap))
    return Row(left, late, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="ways, or their beginnings")
    options = parser.parse_args()
    missed = []
    print("| way to stay | " + " | ".join(f"{host}: left, s late" for host in HOSTS) + " | MB |")
    print("|---|" + "---|" * len(HOSTS) + "--:|")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ws").mkdir()
        measure(Path(folder) / "ws", "background", "shell")  # what any first command costs
        for way in WAYS | MORE:
            if options.only and not any(way.startswith(start) for start in options.only):
                continue
            rows = {host: measure(Path(folder) / "ws", way, host) for host in HOSTS}
            most = max(row.megabytes for row in rows.values())
            shown = " | ".join(f"{row.left}, {max(row.late, 0):.1f}" for row in rows.values())
            print(f"| {way} | {shown} | {most:.0f} |", flush=True)
            missed += [
                f"{way} in {host}: {row}"
                for host, row in rows.items()
                if row.left or row.late > LATE_S or row.megabytes > MEMORY_BAR_MB
            ]
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


if __name__ == "__main__":
    stopping.run(main)
