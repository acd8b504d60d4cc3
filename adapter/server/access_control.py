"""Keeps out whom a server on this machine must not trust: web pages, and those without its key.

A page may send requests to 127.0.0.1 (its browser then says so in ``Origin`` or ``Sec-Fetch-Site``), or make its own
name point there (it then stands in ``Host``). Only pages that the user allows may, and read the answers.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapter.protocols.openai_errors import RequestError, refusal
from adapter.server.error_formats import error_format_for
from adapter.server.streaming_responses import send_json

ONCE = (
    "host", "origin", "content-length", "content-type", "content-encoding", "transfer-encoding", "authorization",
    "sec-fetch-site",
)  # fmt: skip
"""Headers that two readers would take differently when they come twice."""

_HERE = re.compile(r"(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
"""How ``Host`` names this machine. Not by a name below localhost: some resolvers ask the net for those."""

_KEYS = ("x-api-key", "api-key", "x-goog-api-key")


class AccessControl:
    """``is_loopback``: the server listens on this machine alone, so every ``Host`` must be this machine.
    ``api_key``: what clients must show, as OpenAI's or as Anthropic's do. ``origins``: of pages that may ask. ``form``:
    a path below which others ask for a key; empty where there is none."""

    def __init__(
        self, app: ASGIApp, is_loopback: bool, api_key: str | None, origins: Collection[str] = (), form: str = ""
    ) -> None:
        self._app, self._form = app, form
        self._is_loopback = is_loopback
        self._api_key = api_key
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin in self._origins:
            send = _readable(send, origin)
        try:
            self._check_page(headers)
            if origin in self._origins and scope["method"] == "OPTIONS":
                await _allow(send, headers)
                return
            self._check_key(scope["path"], headers)
        except RequestError as error:
            await send_json(send, error.status, error_format_for(scope["path"])(refusal(error), error.status))
            return
        await self._app(scope, receive, send)

    def _check_page(self, headers: Headers) -> None:
        """Raises RequestError for a page that may not ask."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if twice := [name for name in ONCE if len(headers.getlist(name)) > 1]:
            raise RequestError(f"the header {twice[0]} came twice")
        if self._is_loopback and not _HERE.fullmatch(host):
            message = f"this server is for this machine alone, not for {host!r}: use 127.0.0.1, or start it with --host"
            raise RequestError(message, status=421)
        if origin in self._origins:
            return
        if origin is not None and origin.partition("://")[2] != host:
            message = f"pages of {origin!r} may not use this server; --allow-origin {origin} lets them"
            raise RequestError(message, status=403)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            message = "pages of other sites may not use this server; --allow-origin lets those of one"
            raise RequestError(message, status=403)

    def _check_key(self, path: str, headers: Headers) -> None:
        if self._api_key is None or path in ("/health", "/ready"):
            return
        if self._form and (path == self._form or path.startswith(f"{self._form}/")):
            return
        if not hmac.compare_digest(key_of(headers).encode("utf-8"), self._api_key.encode("utf-8")):
            raise RequestError("the key is wrong or missing: send the one that --api-key says", status=401)


def key_of(headers: Headers) -> str:
    """The key that a program shows; empty where it shows none."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return next((headers[name] for name in _KEYS if headers.get(name)), bearer)


def _readable(send: Send, origin: str) -> Send:
    """``send`` with what makes a browser show the answer to a page of ``origin``."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            shown = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
            message = {**message, "headers": [*message["headers"], *shown]}
        await send(message)

    return sending


async def _allow(send: Send, headers: Headers) -> None:
    """The answer to a browser that asks before it sends a page's request."""
    asked = headers.get("access-control-request-headers", "")
    said = {"access-control-allow-methods": "GET, POST, DELETE", "access-control-allow-headers": asked}
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said.items()]
    await send({"type": "http.response.start", "status": 204, "headers": pairs})
    await send({"type": "http.response.body", "body": b""})
