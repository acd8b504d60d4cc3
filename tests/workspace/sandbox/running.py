"""Processes in /proc, found by unique command lines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def living(words: str) -> list[int]:
    """Return the processes with this command line, without zombies."""
    return _with("cmdline", words.replace(" ", "\0"))


def bearing(variable: str) -> list[int]:
    """Return the processes that were started with this in their environment."""
    return _with("environ", variable)


def _with(file: str, wanted: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted.encode() in (folder / file).read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def wait_for(claim: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Return whether ``claim`` became true in time."""
    deadline = time.monotonic() + seconds
    while not claim() and time.monotonic() < deadline:
        time.sleep(0.02)
    return claim()
