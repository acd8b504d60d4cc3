"""Edits one file from everywhere at once: `python -m benchmarks.concurrent_edits --patches 100`.

Eight threads of one session and four processes of their own each replace their own lines, one patch at
a time; a patch that is refused because the file changed in between is sent again, as a model would.
Afterwards every line must be the new one: an update that was said to be made and is not there is lost.
Exits with 1 then.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from adapter.workspace import Workspace
from benchmarks import stopping

THREADS, PROCESSES = 8, 4


def work(workspace: Workspace, worker: int, patches: int) -> int:
    """Replace the lines of one worker; gives how often a patch was sent again."""
    again = 0
    for number in range(patches):
        call = {"path": "f", "old_text": f"{worker}/{number} old", "new_text": f"{worker}/{number} new"}
        while not (result := workspace.run("apply_edit", call)).ok:
            if "old_text was not found" in result.content:
                raise RuntimeError(result.content)
            again += 1
            time.sleep(0.002)
    return again


def run(folder: Path, patches: int, threads: int = THREADS, processes: int = PROCESSES) -> tuple[int, int]:
    """The lines that are not the new ones, and how many there are."""
    directory, total = folder / "ws", threads + processes
    directory.mkdir()
    lines = [f"{worker}/{number} old\n" for number in range(patches) for worker in range(total)]
    (directory / "f").write_text("".join(lines), encoding="utf-8")
    words = [sys.executable, "-m", "benchmarks.concurrent_edits", "--folder", str(folder), "--patches", str(patches)]
    others = [subprocess.Popen([*words, "--worker", str(threads + number)]) for number in range(processes)]
    with Workspace(directory, approve="yolo", state=folder / "state") as workspace:
        own = [threading.Thread(target=work, args=(workspace, worker, patches)) for worker in range(threads)]
        for thread in own:
            thread.start()
        for thread in own:
            thread.join()
    failed = [other.wait() for other in others]
    assert not any(failed), failed
    after = (directory / "f").read_text(encoding="utf-8").splitlines(keepends=True)
    expected = [line.replace("old", "new") for line in lines]
    return sum(one != other for one, other in zip(after, expected, strict=True)), len(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--patches", type=int, default=100, help="of each thread and process")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        with Workspace(options.folder / "ws", approve="yolo", state=options.folder / "state") as workspace:
            work(workspace, options.worker, options.patches)
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        lost, updates = run(Path(folder), options.patches)
    print("| threads | processes | updates | lost | s |\n|--:|--:|--:|--:|--:|")
    print(f"| {THREADS} | {PROCESSES} | {updates} | {lost} | {time.monotonic() - started:.0f} |")
    return 1 if lost else 0


if __name__ == "__main__":
    stopping.run(main)
