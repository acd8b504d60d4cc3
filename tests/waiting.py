"""Wait for a state that another process or thread reaches."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 60) -> None:
    """Return as soon as ``holds`` returns a true value. Fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
