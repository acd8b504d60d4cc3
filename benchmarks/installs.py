"""Measure an installation with each extra alone, in a new environment with an empty cache and the newest packages.

    python -m benchmarks.installs

Prints seconds and MB on disk. Exits with 1 if an installation fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEVER_ALONE = {"dev", "clients", "browser", "release", "bench"}
"""Packages that only the development of this project needs."""


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sorted(project["optional-dependencies"].keys() - NEVER_ALONE)
    print("| installed | seconds | MB |\n|---|--:|--:|", flush=True)
    worked = [measure(what) for what in (".", *(f".[{extra}]" for extra in extras))]
    return 0 if all(worked) else 1


def measure(what: str) -> bool:
    """Install ``what`` and print its row. Return False if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        empty = size_mb(Path(folder))
        started = time.perf_counter()
        pip = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--no-cache-dir"]
        done = subprocess.run([*pip, what], cwd=ROOT, check=False)
        seconds = time.perf_counter() - started
        if done.returncode == 0:
            # The first command of a new user must run.
            done = subprocess.run([f"{folder}/bin/adapter", "--version"], stdout=subprocess.DEVNULL, check=False)
        print(f"| `{what}` | {seconds:.0f} | {size_mb(Path(folder)) - empty:.0f} |", flush=True)
        return done.returncode == 0


def size_mb(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
