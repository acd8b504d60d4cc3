"""Serve one page to a browser on this machine.

Other local programs could also request the page, and so could web pages whose host name resolves to this machine.
Therefore, the page's address contains an unguessable path, and all other paths return 404.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast


class PageServer(ThreadingHTTPServer):
    """Serves the page ``text`` on 127.0.0.1 and a free port. ``address``: the URL of the page."""

    daemon_threads = True

    def __init__(self, text: str) -> None:
        super().__init__(("127.0.0.1", 0), _PageHandler)
        self.page = text.encode()
        self.path = f"/{secrets.token_urlsafe(16)}/"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.path}"


class _PageHandler(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        server = cast("PageServer", self.server)
        if not secrets.compare_digest(self.path.encode(), server.path.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(server.page)))
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        with suppress(ConnectionError):  # the browser disconnected
            self.end_headers()
            self.wfile.write(server.page)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the terminal shows the page's address."""
