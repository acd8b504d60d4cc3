"""Reject cross-site and unauthenticated requests.

A web page can send requests to 127.0.0.1; the browser then adds the header ``Origin`` or ``Sec-Fetch-Site``. A page can
also make its own domain name resolve to 127.0.0.1; the ``Host`` header then contains that name. Only pages that the
user allows may send requests and read answers.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.server.asgi_messages import send_json, send_start, with_headers
from adapter.server.error_responses import find_error_format

ONCE = (
    "host", "origin", "content-length", "content-type", "content-encoding", "transfer-encoding", "authorization",
    "sec-fetch-site",
)  # fmt: skip
"""Headers that a request must not repeat, because parsers disagree about the value that applies."""

_HERE = re.compile(r"(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
"""Values of the ``Host`` header that name this machine. Subdomains of localhost are not included, because some
resolvers look them up on the network."""

_KEYS = ("x-api-key", "api-key", "x-goog-api-key")


class AccessControl:
    """ASGI middleware that checks hosts, origins and API keys.

    If ``is_loopback`` is True, the server listens only on this machine, and every ``Host`` header must name this
    machine or one of ``trusted_hosts``, such as the name of a local proxy. Clients must send ``api_key`` in OpenAI's or
    Anthropic's headers. Paths under ``form`` are an exception, because their page asks for the key. Web pages of the
    origins ``origins`` may send requests.
    """

    def __init__(
        self, app: ASGIApp, is_loopback: bool, api_key: str | None, origins: Collection[str] = (), form: str = "",
        trusted_hosts: Collection[str] = (),
    ) -> None:  # fmt: skip
        self._app, self._form = app, form
        self._is_loopback = is_loopback
        self._api_key = api_key
        self._origins = origins
        self._trusted_hosts = {each.lower() for each in trusted_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin in self._origins:
            send = with_headers(send, (b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin"))
        try:
            self._check_page(headers)
            if origin in self._origins and scope["method"] == "OPTIONS":
                await _answer_preflight(send, headers)
                return
            self._check_key(scope["path"], headers)
        except RequestError as error:
            content = find_error_format(scope["path"])(build_error_body(error), error.status)
            await send_json(send, error.status, content, {"www-authenticate": "Bearer"} if error.status == 401 else {})
            return
        await self._app(scope, receive, send)

    def _check_page(self, headers: Headers) -> None:
        """Raise RequestError if a web page that is not allowed sent the request."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if repeated := [name for name in ONCE if len(headers.getlist(name)) > 1]:
            raise RequestError(f"the header {repeated[0]} is repeated; send it once")
        if self._is_loopback and not self._is_known(host):
            message = (
                f"invalid host {host!r}: this server accepts only requests to this machine. Send them to 127.0.0.1, or "
                "start the server with --host ADDRESS or, behind a proxy, with --trusted-host NAME"
            )
            raise RequestError(message, status=421)
        if origin in self._origins:
            return
        if origin is not None and origin.partition("://")[2] != host:
            message = f"web pages of {origin!r} may not use this server; start it with --allow-origin {origin}"
            raise RequestError(message, status=403)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            message = (
                "web pages of other sites may not use this server; start it with --allow-origin ORIGIN to allow one"
            )
            raise RequestError(message, status=403)

    def _is_known(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        known = {host.lower(), name.lower()} if colon and port.isdigit() else {host.lower()}
        return _HERE.fullmatch(host) is not None or bool(known & self._trusted_hosts)

    def _check_key(self, path: str, headers: Headers) -> None:
        if self._api_key is None or path in ("/health", "/ready"):
            return
        if self._form and (path == self._form or path.startswith(f"{self._form}/")):
            return
        if not hmac.compare_digest(find_key(headers).encode("utf-8"), self._api_key.encode("utf-8")):
            raise RequestError("the API key is wrong or missing: send the key of --api-key", status=401)


def find_key(headers: Headers) -> str:
    """Return the API key in the headers, or "" if they contain none."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return next((headers[name] for name in _KEYS if headers.get(name)), bearer)


async def _answer_preflight(send: Send, headers: Headers) -> None:
    requested = headers.get("access-control-request-headers", "")
    allowed = {"access-control-allow-methods": "GET, POST, DELETE", "access-control-allow-headers": requested}
    await send_start(send, 204, allowed)
    await send({"type": "http.response.body", "body": b""})
