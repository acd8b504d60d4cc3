"""Keeps out whom a server on this machine must not trust: web pages, and those without its key.

A page may send requests to 127.0.0.1 (it then says so in ``Origin``), or make its own
name point there (it then stands in ``Host``). Nobody is named in CORS headers, so no page reads an answer.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.server.relay import send_json
from adapter.upstream.endpoints import Endpoint
from adapter.wire.errors import RequestError, refusal

ONCE = ("host", "origin", "content-length", "content-type", "content-encoding", "transfer-encoding", "authorization")
"""Headers that two readers would take differently when they come twice."""


class Guard:
    """``is_loopback``: the server listens on this machine alone, so every ``Host`` must be this machine.
    ``api_key``: what clients must show, as OpenAI's or as Anthropic's do."""

    def __init__(self, app: ASGIApp, is_loopback: bool, api_key: str | None) -> None:
        self._app = app
        self._is_loopback = is_loopback
        self._api_key = api_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope["path"], Headers(scope=scope))
            except RequestError as error:
                await send_json(send, error.status, refusal(error))
                return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        """Raises RequestError."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if twice := [name for name in ONCE if len(headers.getlist(name)) > 1]:
            raise RequestError(f"the header {twice[0]} came twice")
        if self._is_loopback and not _is_here(f"http://{host}"):
            message = f"this server is for this machine alone, not for {host!r}: use 127.0.0.1, or start it with --host"
            raise RequestError(message, status=421)
        if origin is not None and origin.partition("://")[2] != host and not _is_here(origin):
            raise RequestError(f"pages of {origin!r} may not use this server", status=403)
        if self._api_key is not None and path != "/health":
            shown = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(shown.encode("utf-8"), self._api_key.encode("utf-8")):
                raise RequestError("the key is wrong or missing: send the one that --api-key says", status=401)


def _is_here(url: str) -> bool:
    try:
        return Endpoint(url).is_local
    except ValueError:  # an unclosed bracket
        return False
