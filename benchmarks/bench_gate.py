"""What it costs to open a file through the path gate, beside opening it by name, at depth 6.

    python -m benchmarks.bench_gate [--times 3000]

Processor time, the best of several rounds, as multiples of ``with open(path, "rb")``.
Exits with 1 when the gate takes more than 3 times that with openat2, or 15 times without.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from adapter.workspace.paths.open_flags import OPEN_FILE
from adapter.workspace.paths.openat2 import is_available, open_beneath
from adapter.workspace.paths.resolver import WorkspaceRoot

FAST_BAR, WALK_BAR = 3.0, 15.0
ROUNDS = 9
NAME = "a/b/c/d/e/file"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3_000)
    times = parser.parse_args().times
    missed = []
    with tempfile.TemporaryDirectory() as folder, WorkspaceRoot(folder) as root:
        path = Path(folder, NAME)
        path.parent.mkdir(parents=True)
        path.write_text("x")

        def plain() -> None:
            with open(path, "rb"):  # noqa: PTH123 - the plainest way
                pass

        def bare() -> None:
            os.close(os.open(path, OPEN_FILE))

        def one_call() -> None:
            os.close(open_beneath(root.descriptor, NAME, OPEN_FILE) or 0)

        def gated() -> None:
            with root.open_file(NAME):
                pass

        unit = microseconds(plain, times)
        print(f"with open(path):          1.0  ({unit:.1f} us)")
        print(f"os.open, os.close:        {microseconds(bare, times) / unit:.1f}")
        if is_available():
            print(f"openat2 alone, os.close:  {microseconds(one_call, times) / unit:.1f}")
            ratio = microseconds(gated, times) / unit
            print(f"the gate with openat2:    {ratio:.1f}")
            if ratio > FAST_BAR:
                missed.append(f"with openat2 {ratio:.1f} > {FAST_BAR}")
        with patch("adapter.workspace.paths.resolver.open_beneath", lambda *_: None):
            ratio = microseconds(gated, times) / unit
        print(f"the gate by walking:      {ratio:.1f}")
        if ratio > WALK_BAR:
            missed.append(f"by walking {ratio:.1f} > {WALK_BAR}")
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


def microseconds(run: Callable[[], None], times: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(times):
            run()
        best = min(best, time.process_time() - start)
    return best / times * 1e6


if __name__ == "__main__":
    sys.exit(main())
