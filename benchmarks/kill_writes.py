"""Kill programs in the middle of changes, and check what is left: `python -m benchmarks.kill_writes --kills 2000`.

First, SIGKILL arrives at random moments while one file is written, edited by one large edit, patched in 20 places,
copied or moved. For comparison, the last row writes in place, in a bubblewrap sandbox (without ``--folder``) or not at
all. ``strays`` is the maximum number of temporary files next to a target, and the number left after the next change.

Then SIGKILL arrives before every single system call of every kind of change, and at random moments while five files at
a time are edited and one is moved, with a pause of 2 ms at each rename. After the next start, all files must be of one
version, without any other files.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks import stopping
from benchmarks.naive import confine, is_confined
from tests.workspace.changes.crashing import SCENARIOS, SINGLE, kill_one_file
from tests.workspace.changes.test_crashes import kill_at_random_moments, kill_before_calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2_000, help="of changes of several files")
    parser.add_argument("--single", type=int, default=1_000, help="kills of each change of a single file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to work; an empty directory of its own when left out")
    options = parser.parse_args()
    if options.folder is None:
        confine("benchmarks.kill_writes")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        print("| one file, random kills | kills | changes made | interrupted | torn | strays | stay |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for name in (*SINGLE, *(["naive"] if is_confined() else [])):
            found = kill_one_file(folder / f"one {name}", name, options.single, options.seed)
            numbers = (found.kills, found.changes, found.interrupted, found.torn, found.strays, found.stay)
            print(f"| {name} | {' | '.join(map(str, numbers))} |", flush=True)
        print()
        print("| a kill before each system call | kills | all old | all new | torn or left behind |")
        print("|---|--:|--:|--:|--:|")
        for scenario in SCENARIOS:
            (folder / scenario).mkdir()
            versions = kill_before_calls(folder / scenario, scenario)
            print(f"| {scenario} | {sum(versions.values())} | {versions['old']} | {versions['new']} | 0 |", flush=True)
        results = kill_at_random_moments(folder, options.kills, options.seed)
        print(", ".join(f"{name}: {count}" for name, count in results.items()))


if __name__ == "__main__":
    stopping.run(main)
