"""One HTTP request to a server on this machine, without a proxy, with the path unchanged."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPMessage
from typing import Any
from urllib.parse import urlsplit


def send(
    url: str, path: str, body: Any = None, headers: dict[str, str] | None = None, method: str | None = None
) -> tuple[int, HTTPMessage, str]:
    """Return status, headers and text.

    ``url``: any URL of the server, whose path is ignored. ``body``: bytes are sent unchanged, other values as JSON;
    None sends a GET.
    """
    connection = HTTPConnection(urlsplit(url).netloc, timeout=100)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, content, sent)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()
