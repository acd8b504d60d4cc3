"""Limit the number of concurrent requests to the model server, and queue further requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from adapter.core.errors import TransportError

MAX_STREAMS = 256
"""Maximum number of concurrent requests to the model server. It is the default of vLLM."""

MAX_WAITING = 1_024
"""Maximum number of queued requests. Further requests are rejected."""

RETRY_AFTER_S = 5
"""Value of the ``Retry-After`` header for rejected requests, in seconds."""


class QueueFullError(TransportError):
    """The queue of a `ConcurrencyLimit` is full."""

    status = 503


class ConcurrencyLimit:
    """Runs at most ``streams`` requests at a time, and queues at most ``waiting`` further requests in order of arrival.

    ``on_change`` is called with the number of running requests and the number of queued requests.
    """

    def __init__(
        self,
        streams: int = MAX_STREAMS,
        waiting: int = MAX_WAITING,
        on_change: Callable[[int, int], object] = lambda _running, _waiting: None,
    ) -> None:
        self._on_change, self._running = on_change, 0
        self._streams, self._max_waiting = streams, waiting
        self._free = asyncio.Semaphore(streams)
        self._waiting = 0

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Hold a slot during the ``with`` block, after waiting for a free one. Raises QueueFullError."""
        if self._free.locked() and self._waiting >= self._max_waiting:
            raise QueueFullError(
                f"the model server is busy ({self._streams} requests running, {self._waiting} queued). Try again "
                "later; --max-streams and --max-waiting set the limits."
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

    def _count(self, running: int, waiting: int) -> None:
        self._running += running
        self._waiting += waiting
        self._on_change(self._running, self._waiting)
