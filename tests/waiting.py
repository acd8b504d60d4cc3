"""Wait for a state that another process or thread reaches, on a machine that may be busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(holds: Callable[[], object], seconds: float = 60) -> None:
    """Return as soon as ``holds`` returns a true value. Fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def retry_longer(run: Callable[[float], T], began: Callable[[T], object], seconds: float) -> T:
    """Return the result of ``run`` with this time limit, or with longer ones if its work had not begun."""
    for limit in (seconds, 10 * seconds):
        if began(result := run(limit)):
            return result
    return run(40.0)
