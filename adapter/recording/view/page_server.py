"""Serves one page to a browser on this machine.

Other programs here may ask, too, and a page from elsewhere may have its name lead here: so the address holds a word
that nobody guesses, and nothing else is answered.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast


class PageServer(ThreadingHTTPServer):
    """``text``: the page. It listens on 127.0.0.1, on a port that is free. ``address``: where the page is."""

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
        with suppress(ConnectionError):  # the browser went on
            self.end_headers()
            self.wfile.write(server.page)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal is for the address."""
