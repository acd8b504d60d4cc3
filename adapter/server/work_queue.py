"""Room and time for requests, so that a large one keeps nobody waiting but others like it.

What takes long is done in threads beside the event loop, which goes on answering: one for requests of usual size, one
for large ones. Of those only so many bytes are read before some are translated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

Result = TypeVar("Result")

QUICK_BYTES = 8_192
"""Of a request that takes less time to translate than to hand over: a few milliseconds at worst."""

USUAL_BYTES = 1024 * 1024
"""Of a request that does not wait for larger ones: an agent's conversation with all its tools."""

ROOM_BYTES = 32 * 1024 * 1024
"""Of the larger requests that are read and translated at a time. Each is held several times over meanwhile."""

SWITCH_S = 0.001
"""After which a thread at work lets the event loop go on. Python's own 5 ms add up at every step of an answer."""

COLLECTED = (20_000, 50, 100)
"""Python's garbage collection for a server with large requests: each is some hundred thousand objects that go with it,
and a collection that looks at them in vain stops all threads for a tenth of a second."""


class WorkQueue:
    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._usual, self._large = (ThreadPoolExecutor(1, f"translate-{size}") for size in ("usual", "large"))
        self._free_bytes = room_bytes
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    async def run(self, size: int, work: Callable[[], Result]) -> Result:
        """What ``work`` gives or raises, for a request of ``size`` bytes."""
        if size <= QUICK_BYTES:
            return work()
        lane = self._usual if size <= USUAL_BYTES else self._large
        return await asyncio.get_running_loop().run_in_executor(lane, work)

    @asynccontextmanager
    async def reserve(self, size: int) -> AsyncIterator[None]:
        """Room for the body of a request, as long as the block lasts: first come, first served. None is too large for
        it that fits by itself."""
        if size <= USUAL_BYTES:
            yield
            return
        async with self._turn:
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
