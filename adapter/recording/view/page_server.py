"""Serve one page to a browser on this machine.

Other local programs could also request the page, and so could web pages whose host name resolves to this machine. To
exclude these, the page's address contains an unguessable path, and all other paths return 404.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from adapter.core.events import JsonObject

MAX_REQUEST = 8_000_000
"""Maximum size of a request from the page, in bytes."""


class PageServer(ThreadingHTTPServer):
    """Serves the page ``text`` on 127.0.0.1. The attribute ``address`` is its URL.

    ``read`` returns the answer to a request from the page, given its body; without it, requests get a 404. If ``port``
    is 0, a free port is used.
    """

    daemon_threads = True

    def __init__(self, text: str, read: Callable[[bytes], JsonObject] | None = None, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _PageHandler)
        self.page, self.read = text.encode(), read
        self.path = f"/{secrets.token_urlsafe(16)}/"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.path}"


class _PageHandler(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        server = cast("PageServer", self.server)
        if self._is_at(server.path):
            self._send(server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Answer a request from the page. Other pages cannot send one, because they do not know the path."""
        server = cast("PageServer", self.server)
        if not self._is_at(f"{server.path}read" if server.read else ""):
            return
        assert server.read is not None
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_REQUEST:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        answer = server.read(self.rfile.read(int(length)))
        self._send(json.dumps(answer).encode(), "application/json")

    def _is_at(self, path: str) -> bool:
        """Return whether ``path`` was requested. If not, answer 404."""
        is_here = secrets.compare_digest(self.path.encode(), path.encode())
        if not is_here:
            self.send_error(HTTPStatus.NOT_FOUND)
        return is_here

    def _send(self, body: bytes, content_type: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        with suppress(ConnectionError):  # the browser disconnected
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the terminal shows the page's address."""
