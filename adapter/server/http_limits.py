"""Limit slow and oversized requests in uvicorn's HTTP/1.1 protocol, so that they cannot occupy connections.

The underlying parser, llhttp, rejects ambiguous requests: a Content-Length header on a chunked body, bare line feeds,
or whitespace before a colon.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_S = 8.0
"""Seconds within which the request line and headers must arrive, after the connection or a request's first byte."""

MAX_HEAD_BYTES = 32_000
"""Maximum size of the request line and headers together, in bytes."""
LINGER_S = 2.0
"""Maximum time, in seconds, to read and discard the rest of a request body before the connection is closed. If it were
closed earlier, the client could lose the response."""
STALL_S = 60.0
"""Maximum time, in seconds, that a client may read nothing of its response. After that, it is disconnected."""
UNREAD_BYTES = 65_536
"""Size of the kernel's send buffer for each client, in bytes (Linux doubles it). The default is several megabytes. A
buffer accepts new data only when a third of it is free, so with a large buffer a slow client would seem to read
nothing."""


class BoundedConfig(Config):
    def __init__(self, app: Any, stall_s: float = STALL_S, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self.stall_s = stall_s


class BoundedProtocol(HttpToolsProtocol):
    config: BoundedConfig
    _timers: dict[str, asyncio.TimerHandle]
    _unsent = 0
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timers = {}
        transport.set_write_buffer_limits(0)  # the kernel's buffer is enough
        if (connection := transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop_timer(name)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer("stall")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if "head" in self._timers:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if "head" not in self._timers:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._stop_timer("head")
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            raise ValueError(f"the request head has {size} bytes; the maximum is {MAX_HEAD_BYTES}")
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            self.cycle.chunked_encoding = False
            self.cycle.send = partial(_send_until_close, self.cycle.send, self.cycle)  # type: ignore[method-assign]

    def on_message_complete(self) -> None:
        self._stop_timer("linger")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body and "linger" not in self._timers and not self.transport.is_closing():
            self._start_timer("linger", LINGER_S, self.transport.close)

    def _start_timer(self, name: str, seconds: float, callback: Callable[..., object], *arguments: object) -> None:
        self._timers[name] = self.loop.call_later(seconds, callback, *arguments)

    def _stop_timer(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def _await_progress(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._start_timer("stall", self.config.stall_s, self._check_progress)

    def _check_progress(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._await_progress()
        else:
            self.logger.warning("A client read nothing for %g s; closing its connection.", self.config.stall_s)
            self.transport.abort()  # writers see a disconnected client

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._start_timer("head", HEAD_S, self._refuse, HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, status: HTTPStatus) -> None:
        self._stop_timer("head")
        if not self.transport.is_closing():
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head.encode("ascii"))
            self.transport.close()


async def _send_until_close(send: Callable[[Any], Awaitable[None]], cycle: RequestResponseCycle, message: Any) -> None:
    """Send a response to an HTTP/1.0 client, which does not know chunks: closing the connection ends the body."""
    cycle.expected_content_length = len(message.get("body", b""))
    await send(message)
