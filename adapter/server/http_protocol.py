"""uvicorn's HTTP, for clients that send too much or take their time: neither may hold a connection.

llhttp, below it, refuses what two servers could read in two ways: a length beside
chunks, bare line feeds, white space before a colon.
"""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 8.0
"""How long the head of a request may take, from the connection or its first byte on."""

MAX_HEAD_BYTES = 32_000
"""Of a request: its first line and its headers."""


LINGER_S = 2.0
"""How long the rest of a body is read that is not wanted any more, so that the answer is not lost with it."""


STALL_S = 60.0
"""How long a client may take nothing of what waits for it."""


UNREAD_BYTES = 65_536
"""Sent and not read that the kernel holds for a client (twice as much on Linux). By itself it holds megabytes, and asks
for more only once a third of that is read: then a slow client could not be told from one that reads nothing."""


class BoundedConfig(Config):
    """``stall_s``: how long a client may take nothing."""

    def __init__(self, app: Any, stall_s: float = STALL_S, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self.stall_s = stall_s


class BoundedProtocol(HttpToolsProtocol):
    config: BoundedConfig
    _stalled: asyncio.TimerHandle | None = None
    _unsent = 0
    _timer: asyncio.TimerHandle | None = None
    _lingering: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # what the kernel holds is enough
        if (connection := transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_stall()
        self._end_lingering()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEAD_BYTES:
            raise ValueError(f"a head of {size} bytes")  # which the parser makes a 400 of
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end_lingering()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body and self._lingering is None and not self.transport.is_closing():
            self._lingering = self.loop.call_later(LINGER_S, self.transport.close)

    def _end_lingering(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None

    def _await_progress(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(self.config.stall_s, self._check_progress)

    def _check_progress(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._await_progress()
        else:
            self.logger.warning("A client took nothing for %g s: its connection is closed.", self.config.stall_s)
            self.transport.abort()  # whoever writes to it learns that the client has gone

    def _end_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._timer = self.loop.call_later(HEAD_S, self._refuse, HTTPStatus.REQUEST_TIMEOUT)

    def _end_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: HTTPStatus) -> None:
        self._end_head()
        if not self.transport.is_closing():
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head.encode("ascii"))
            self.transport.close()
