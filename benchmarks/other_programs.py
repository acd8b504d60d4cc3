"""Run programs of other projects for comparison, each in its own environment and confined."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from adapter.workspace.sandbox import landlock
from adapter.workspace.sandbox.supervisor import _apply_landlock

NEWEST = ("python3.14", "python3.13", "python3.12")


def make_environment(folder: Path, requirement: str, base: str | None = None) -> Path:
    """Return the Python of the environment in ``folder``, which is created with ``base`` if missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        found = base or next(filter(None, map(shutil.which, NEWEST)), None)
        if found is None:
            raise SystemExit(f"{requirement} needs one of {', '.join(NEWEST)}, and none was found; see --python")
        subprocess.run([found, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", requirement], check=True)
    name = re.split(r"[=<>]", requirement)[0]
    version = [str(python), "-c", f"from importlib.metadata import version; print(version('{name}'))"]
    print(f"{name} {subprocess.run(version, check=True, capture_output=True, text=True).stdout.strip()}")
    return python


def download_source(python: Path, requirement: str, folder: Path) -> Path:
    """Return the folder with the source of a release."""
    if not folder.exists():
        download = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", requirement, "-d", str(folder)]
        subprocess.run([str(python), "-m", *download], check=True)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
    (source,) = (each for each in folder.iterdir() if each.is_dir())
    return source


@contextmanager
def started(command: Sequence[str], pattern: str) -> Iterator[str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        yield _told(process.stdout, pattern)
    finally:
        process.terminate()
        process.wait()


def _told(output: IO[str], pattern: str) -> str:
    said = ""
    for line in output:
        said += line
        if found := re.search(pattern, line):
            threading.Thread(target=output.read, daemon=True).start()  # a full pipe would stop the server
            return found[1]
    raise SystemExit(f"a server did not start:\n{said}")


SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ssl", "/etc/ld.so.cache", "/proc")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


@contextmanager
def confined(command: Sequence[str], folder: Path, readable: Sequence[Path]) -> Iterator[subprocess.Popen[str]]:
    if not landlock.get_abi():
        raise SystemExit("this kernel has no Landlock, which is required to run model output")
    read = [*SYSTEM, *map(str, readable)]
    rules = landlock.build_ruleset(read, [str(folder)], DEVICES, network=False)
    environment = {"PATH": os.defpath, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment,
        preexec_fn=lambda: _apply_landlock(**rules),  # type: ignore[arg-type]
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
