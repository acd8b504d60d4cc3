"""How many requests the model server is given at a time; the others wait in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from adapter.core.errors import TransportError

MAX_STREAMS = 256
"""Requests that the model server answers at a time: as many as vLLM does by itself."""

MAX_WAITING = 1_024
"""Requests that wait for their turn; one more is refused."""

RETRY_AFTER_S = 5
"""When who was refused should try again."""


class QueueFullError(TransportError):
    """As many requests wait as may."""


class ConcurrencyLimit:
    """``streams`` places, and ``waiting`` requests at most that wait for one: first come, first served. ``told`` of how
    many are taken and waited for."""

    def __init__(
        self,
        streams: int = MAX_STREAMS,
        waiting: int = MAX_WAITING,
        told: Callable[[int, int], object] = lambda _taken, _waiting: None,
    ) -> None:
        self._told, self._taken = told, 0
        self._streams, self._max_waiting = streams, waiting
        self._free = asyncio.Semaphore(streams)
        self._waiting = 0

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """A place as long as the block lasts. Raises Busy; whoever is cancelled leaves the queue."""
        if self._free.locked() and self._waiting >= self._max_waiting:
            raise QueueFullError(
                f"the model server is busy (requests at work: {self._streams}, waiting: {self._waiting}). Try again "
                "later; --max-streams and --max-waiting say how many there may be."
            )
        self._count(0, 1)
        try:
            await self._free.acquire()
        finally:
            self._count(0, -1)
        self._count(1, 0)
        try:
            yield
        finally:
            self._free.release()
            self._count(-1, 0)

    def _count(self, taken: int, waiting: int) -> None:
        self._taken += taken
        self._waiting += waiting
        self._told(self._taken, self._waiting)
