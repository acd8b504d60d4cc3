"""Run a test in a small process, where a fork is cheap.

Forking a process that has imported everything for thousands of tests copies its page tables, and then each page that is
written: dozens of milliseconds per fork.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from multiprocessing.pool import Pool
from typing import Any

from tests.command_line import FORKED


def apart(test: Callable[..., None]) -> Callable[..., None]:
    """Run ``test`` in another process, with its fixtures (which must be picklable) and the environment of this process.
    Its exceptions are raised here, with their traceback.
    """

    @wraps(test)
    def run(**given: Any) -> None:
        _small_process().apply(_run, (test.__module__, test.__name__, given, dict(os.environ)))

    return run


@lru_cache
def _small_process() -> Pool:
    """Start the process that all tests of this process share."""
    pool = FORKED.Pool(1)
    atexit.register(pool.terminate)  # or it complains while the interpreter shuts down
    return pool


def _run(module: str, name: str, given: dict[str, Any], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    getattr(import_module(module), name).__wrapped__(**given)
