"""Keeps web pages, and bodies without end, away from a server that trusts whoever reaches it.

A page may send requests to 127.0.0.1 (it then says so in ``Origin``), or make its own
name point there (it then stands in ``Host``). Nobody is named in CORS headers, so no page reads an answer.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapter.endpoints import Endpoint
from adapter.server.relay import send_json
from adapter.wire.errors import error_object

MAX_BODY_BYTES = 32 * 1024 * 1024
"""A conversation with some twenty screenshots. It is held several times over while it is translated."""


class Guard:
    """``is_loopback``: the server listens on this machine alone, so every ``Host`` must be this machine."""

    def __init__(self, app: ASGIApp, is_loopback: bool) -> None:
        self._app = app
        self._is_loopback = is_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if (complaint := self._complaint(headers)) is not None:
            await send_json(send, 403, error_object(complaint, "forbidden"))
            return
        try:
            _check_size(int(headers.get("content-length", "0")))
            await self._app(scope, _bounded(receive), send)
        except _TooLarge:  # the application reads the body before it answers
            await send_json(send, 413, error_object(_TOO_LARGE, "invalid_request_error"))

    def _complaint(self, headers: Headers) -> str | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._is_loopback and not _is_here(f"http://{host}"):
            return f"this server is for this machine alone, not for {host!r}: use 127.0.0.1, or start it with --host"
        if origin is not None and origin.partition("://")[2] != host and not _is_here(origin):
            return f"pages of {origin!r} may not use this server"
        return None


class _TooLarge(Exception):
    """A request's body is longer than `MAX_BODY_BYTES`."""


_TOO_LARGE = f"the request's body is larger than {MAX_BODY_BYTES} bytes: shorten the conversation, or send fewer images"


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise _TooLarge


def _bounded(receive: Receive) -> Receive:
    """``receive`` that raises _TooLarge; a body sent in chunks does not say how long it will be."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        _check_size(size)
        return message

    return bounded


def _is_here(url: str) -> bool:
    try:
        return Endpoint(url).is_local
    except ValueError:  # an unclosed bracket
        return False
