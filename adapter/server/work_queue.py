"""Run slow translations in threads, so that a large request delays only other large ones.

One thread handles requests of usual size, another large ones. The total size of large bodies in memory is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

Result = TypeVar("Result")

QUICK_BYTES = 8_192
"""Size up to which a request is translated in the event loop, in bytes: a few milliseconds at most."""

USUAL_BYTES = 1024 * 1024
"""Size up to which a request does not wait for larger ones, in bytes: an agent's conversation with all its tools."""

ROOM_BYTES = 32 * 1024 * 1024
"""Total size of the larger bodies that are in memory at a time, in bytes. Translation takes several copies of each."""

SWITCH_S = 0.001
"""Thread switch interval, in seconds. Python's default of 5 ms adds up over the chunks of a stream."""

COLLECTED = (20_000, 50, 100)
"""Garbage collection thresholds. Each large request allocates some hundred thousand objects that die with it; fruitless
collections over them stop all threads for a tenth of a second."""


class WorkQueue:
    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._usual, self._large = (ThreadPoolExecutor(1, f"translate-{size}") for size in ("usual", "large"))
        self._free_bytes = room_bytes
        self._order, self._freed = asyncio.Lock(), asyncio.Event()

    async def run(self, size: int, work: Callable[[], Result]) -> Result:
        """Return the result of ``work`` for a request of ``size`` bytes, in a thread unless it is quick."""
        if size <= QUICK_BYTES:
            return work()
        lane = self._usual if size <= USUAL_BYTES else self._large
        return await asyncio.get_running_loop().run_in_executor(lane, work)

    @asynccontextmanager
    async def reserve(self, size: int) -> AsyncIterator[None]:
        """Reserve memory for the body of a request during the block, first come, first served."""
        if size <= USUAL_BYTES:
            yield
            return
        async with self._order:
            while self._free_bytes < size:
                self._freed.clear()
                await self._freed.wait()
            self._free_bytes -= size
        try:
            yield
        finally:
            self._free_bytes += size
            self._freed.set()

    def close(self) -> None:
        for lane in (self._usual, self._large):
            lane.shutdown(wait=False, cancel_futures=True)
