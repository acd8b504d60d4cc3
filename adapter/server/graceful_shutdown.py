"""Graceful shutdown: after SIGTERM, open requests may finish, and new requests are rejected with 503.

A second SIGTERM, or Ctrl-C, stops the server at once: running requests are cancelled, and their clients get an error.
Code that sends an endless response must check `GracefulShutdown.has_begun`.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.protocols.openai_errors import build_error_object
from adapter.server.asgi_messages import send_json
from adapter.server.concurrency_limit import RETRY_AFTER_S
from adapter.server.error_responses import find_error_format

DRAIN_S = 25.0
"""Maximum time, in seconds, that open requests may take after SIGTERM. Kubernetes kills processes after 30 seconds."""

OPEN = ("/health", "/ready", "/metrics")
"""Paths that are served even during shutdown."""


class GracefulShutdown:
    """ASGI middleware that calls ``on_begin`` on shutdown, then waits up to ``limit_s`` seconds for open requests."""

    def __init__(self, app: ASGIApp, limit_s: float, on_begin: Callable[[], object] = lambda: None) -> None:
        self._app, self._limit_s, self._on_begin = app, limit_s, on_begin
        self.has_begun = False
        self._running: dict[asyncio.Task[object], str] = {}
        """HTTP method of each running request, by its task."""
        self._is_empty = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    def install(self) -> None:
        """Handle SIGTERM instead of uvicorn, and pass it to uvicorn when the requests are done.

        Does nothing outside of the main thread, which is the only thread that can handle signals.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        previous, loop = signal.getsignal(signal.SIGTERM), asyncio.get_running_loop()
        previous_interrupt = signal.getsignal(signal.SIGINT)

        def stop() -> None:
            self._cancel_requests()
            if callable(previous):
                previous(signal.SIGTERM, None)

        def begin(_signal: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._begin, stop)

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.has_begun = True
            loop.call_soon_threadsafe(self._cancel_requests)
            if callable(previous_interrupt):
                previous_interrupt(number, frame)

        signal.signal(signal.SIGTERM, begin)
        signal.signal(signal.SIGINT, interrupt)

    def _begin(self, stop: Callable[[], None]) -> None:
        if self.has_begun:
            stop()
            return
        self.has_begun = True
        self._on_begin()
        self._stopping = asyncio.create_task(self._wait(stop))

    def _cancel_requests(self) -> None:
        for task, method in self._running.items():
            if method == "POST":
                task.cancel()

    async def _wait(self, stop: Callable[[], None]) -> None:
        if self._running:
            self._is_empty.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_empty.wait(), self._limit_s)
        stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
        elif self.has_begun:
            error = build_error_object("this server is shutting down; please retry", "overloaded_error")
            error = find_error_format(scope["path"])(error, 503)
            await send_json(send, 503, error, {"retry-after": str(RETRY_AFTER_S), "connection": "close"})
        else:
            task = asyncio.current_task()
            assert task is not None
            self._running[task] = scope["method"]
            try:
                await self._app(scope, receive, send)
            finally:
                del self._running[task]
                if not self._running:
                    self._is_empty.set()
