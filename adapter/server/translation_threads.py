"""Run slow translations in threads, so that a large request delays only other large requests.

One thread handles requests of usual size, and another handles large requests. The total size of large bodies in memory
is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")
Reserve: TypeAlias = Callable[[int], Awaitable[None]]

QUICK_BYTES = 65_536
"""Maximum size, in bytes, of a request that is translated in the event loop. Translation usually takes half a
millisecond; new tools can raise this to eight milliseconds, in the worst case forty. A thread would add a third of a
millisecond."""

USUAL_BYTES = 1024 * 1024
"""Maximum size, in bytes, of a request that the thread for usual requests translates. It is enough for an agent's
conversation with all its tools. Larger requests use another thread, so that they do not delay the usual ones."""

ROOM_BYTES = 32 * 1024 * 1024
"""Maximum total size, in bytes, of the large bodies in memory. Translation makes several copies of each."""

SWITCH_S = 0.001
"""Thread switch interval, in seconds. Python's default of 5 ms would delay each chunk of a stream too long."""

COLLECTED = (20_000, 50, 100)
"""Garbage collection thresholds, for `gc.set_threshold`.

A large request allocates about a hundred thousand objects, which are freed with it. Garbage collections before that
free nothing and stop all threads for a tenth of a second.
"""


class TranslationThreads:
    """Runs translations in the event loop or, if the request is large, in one of two threads.

    ``room_bytes`` is the maximum total size of the large request bodies in memory.
    """

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._usual, self._large = (ThreadPoolExecutor(1, f"translate-{size}") for size in ("usual", "large"))
        self._free_bytes = room_bytes
        self._order, self._freed = asyncio.Lock(), asyncio.Event()

    async def run(self, size: int, work: Callable[[], Result]) -> Result:
        """Run ``work`` for a request of ``size`` bytes, and return its result. Small requests run without a thread."""
        if size <= QUICK_BYTES:
            return work()
        lane = self._usual if size <= USUAL_BYTES else self._large
        return await asyncio.get_running_loop().run_in_executor(lane, work)

    @asynccontextmanager
    async def reserve_room(self) -> AsyncIterator[Reserve]:
        """Yield a function that reserves memory for a request body until the end of the ``with`` block. The function
        waits until enough memory is free. Requests get memory in the order of their calls."""
        reserved = 0

        async def reserve(size: int) -> None:
            nonlocal reserved
            async with self._order:
                while self._free_bytes < size:
                    self._freed.clear()
                    await self._freed.wait()
                self._free_bytes -= size
            reserved = size

        try:
            yield reserve
        finally:
            self._free_bytes += reserved
            self._freed.set()

    def close(self) -> None:
        for lane in (self._usual, self._large):
            lane.shutdown(wait=False, cancel_futures=True)
