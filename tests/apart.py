"""Runs a test in a small process, where a fork costs little.

Forking a process that has imported what thousands of tests need copies the tables of all its memory, and then each
page that is touched: dozens of milliseconds, for a test that forks hundreds of times.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from multiprocessing.pool import Pool
from typing import Any

from tests.command_line import FORKED


def apart(test: Callable[..., None]) -> Callable[..., None]:
    """``test``, run in another process with the fixtures that it is given, which can be pickled, and the environment
    of this one. What it raises is raised here, with the traceback of there."""

    @wraps(test)
    def run(**given: Any) -> None:
        _small_process().apply(_run, (test.__module__, test.__name__, given, dict(os.environ)))

    return run


@lru_cache
def _small_process() -> Pool:
    """One for all tests of this process, with which it ends."""
    return FORKED.Pool(1)


def _run(module: str, name: str, given: dict[str, Any], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    getattr(import_module(module), name).__wrapped__(**given)
