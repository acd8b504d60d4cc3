"""Limit the processor time of code in a test, relative to the speed of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

COUNT = 200_000
COUNTED_PER_SECOND = 20_000_000


def slowness() -> float:
    """Return 1 on a machine that counts to 20 million in a second, and 2 on one that is half as fast."""
    start = time.process_time()
    for _ in range(COUNT):
        pass
    return (time.process_time() - start) * COUNTED_PER_SECOND / COUNT


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Fail if the body needs more processor time than ``seconds`` times the `slowness` of the machine."""
    before = slowness()
    start = time.process_time()
    yield
    used = time.process_time() - start
    limit = seconds * max(before, slowness(), 1)
    assert used < limit, f"took {used:.1f} s of processor time, limit {limit:.1f} s"
