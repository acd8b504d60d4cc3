"""Keeps web pages away from a server that trusts whoever reaches it.

A page may send requests to 127.0.0.1 (it then says so in ``Origin``), or make its own
name point there (it then stands in ``Host``). Nobody is named in CORS headers, so no page reads an answer.
"""

from __future__ import annotations

import json

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapter.endpoints import Endpoint
from adapter.server.relay import send_json
from adapter.wire.errors import error_object

MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""Of one request: room for the longest context and some images, not for filling the memory."""


class Guard:
    """``is_loopback``: the server listens on this machine alone, so every ``Host`` must be this machine."""

    def __init__(self, app: ASGIApp, is_loopback: bool) -> None:
        self._app = app
        self._is_loopback = is_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif (complaint := self._complaint(Headers(scope=scope))) is not None:
            await send_json(send, 403, error_object(complaint, "forbidden"))
        elif _is_too_large(Headers(scope=scope).get("content-length", "")):
            await send_json(send, 413, _TOO_LARGE)
        else:
            await self._app(scope, _bounded(receive), send)

    def _complaint(self, headers: Headers) -> str | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._is_loopback and not _is_here(f"http://{host}"):
            return f"this server is for this machine alone, not for {host!r}: use 127.0.0.1, or start it with --host"
        if origin is not None and origin.partition("://")[2] != host and not _is_here(origin):
            return f"pages of {origin!r} may not use this server"
        return None


_TOO_LARGE = error_object(f"the request is larger than {MAX_REQUEST_BYTES:,} bytes", "invalid_request_error")


def _is_too_large(stated: str) -> bool:
    return stated.isdecimal() and int(stated[:20]) > MAX_REQUEST_BYTES


def _bounded(receive: Receive) -> Receive:
    """``receive``, for a request that did not say how large it is."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_REQUEST_BYTES:
            raise HTTPException(413, json.dumps(_TOO_LARGE))
        return message

    return counted


def _is_here(url: str) -> bool:
    try:
        return Endpoint(url).is_local
    except ValueError:  # an unclosed bracket
        return False
