"""SIGTERM lets answers end: who asks meanwhile is sent elsewhere, and the server stops when the last has gone.

A second SIGTERM, or Ctrl-C, stops it at once: what a model works on is cancelled, and its client is told. What would
go on as long as the server does looks at `GracefulShutdown.has_begun`.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.protocols.openai_errors import error_object
from adapter.server.concurrency_limit import RETRY_AFTER_S
from adapter.server.error_formats import error_format_for
from adapter.server.streaming_responses import send_json

DRAIN_S = 25.0
"""How long answers may go on after SIGTERM: less than the 30 seconds that Kubernetes waits before it kills."""

OPEN = ("/health", "/ready", "/metrics")
"""Paths that are answered to the end."""


class GracefulShutdown:
    """``limit_s``: how long it may take. ``told`` when it begins."""

    def __init__(self, app: ASGIApp, limit_s: float, told: Callable[[], object] = lambda: None) -> None:
        self._app, self._limit_s, self._told = app, limit_s, told
        self.has_begun = False
        self._at_work: dict[asyncio.Task[object], str] = {}
        """By task, the method of its request."""
        self._is_empty = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Take SIGTERM from whoever has it, uvicorn that is, and hand it on at the end. Only in a main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        before, loop = signal.getsignal(signal.SIGTERM), asyncio.get_running_loop()
        interrupted = signal.getsignal(signal.SIGINT)

        def stop() -> None:
            self._break_off()
            if callable(before):
                before(signal.SIGTERM, None)

        def begin(_signal: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._asked_to, stop)

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.has_begun = True
            loop.call_soon_threadsafe(self._break_off)
            if callable(interrupted):
                interrupted(number, frame)

        signal.signal(signal.SIGTERM, begin)
        signal.signal(signal.SIGINT, interrupt)

    def _asked_to(self, stop: Callable[[], None]) -> None:
        if self.has_begun:
            stop()
            return
        self.has_begun = True
        self._told()
        self._stopping = asyncio.create_task(self._wait(stop))

    def _break_off(self) -> None:
        for task, method in self._at_work.items():
            if method == "POST":
                task.cancel()

    async def _wait(self, stop: Callable[[], None]) -> None:
        if self._at_work:
            self._is_empty.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_empty.wait(), self._limit_s)
        stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
        elif self.has_begun:
            error = error_object("this server stops: ask again, another one may be there", "overloaded_error")
            error = error_format_for(scope["path"])(error, 503)
            await send_json(send, 503, error, {"retry-after": str(RETRY_AFTER_S), "connection": "close"})
        else:
            task = asyncio.current_task()
            assert task is not None
            self._at_work[task] = scope["method"]
            try:
                await self._app(scope, receive, send)
            finally:
                del self._at_work[task]
                if not self._at_work:
                    self._is_empty.set()
