"""ASGI middleware that normalizes a request's path, assigns an id, and calls the observers at the start and end."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapter.server.passthrough_rules import normalize_path
from adapter.server.telemetry.request_info import RequestInfo, RequestObserver, set_current_request

REQUEST_ID = "x-request-id"
"""Request and response header with the id of a request."""
CLIENT_DISCONNECTED = 499
"""Status for a client that disconnected before its response began, as in nginx."""

_ID = re.compile(r"[\w.:/+=@-]{1,128}", re.ASCII)


class TelemetryMiddleware:
    """Assigns request ids, and calls ``observers``. ``routes`` has the path pattern of each endpoint. The id that a
    client sends is used if it is short and has no special characters."""

    def __init__(self, app: ASGIApp, routes: Mapping[Any, str], observers: Sequence[RequestObserver]) -> None:
        self._app, self._routes, self._observers = app, routes, observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": normalize_path(scope["path"])}
        headers = Headers(scope=scope)
        client_id = headers.get(REQUEST_ID, "")
        request = RequestInfo(
            id=client_id if _ID.fullmatch(client_id) else os.urandom(16).hex(),
            method=scope["method"],
            path=scope["path"],
            is_observed=bool(self._observers),
        )
        request.upstream_headers[REQUEST_ID] = request.id
        id_header = (REQUEST_ID.encode("ascii"), request.id.encode("ascii"))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                others = [pair for pair in message.get("headers", ()) if pair[0] != id_header[0]]
                message = {**message, "headers": [*others, id_header]}
            elif not message.get("more_body"):
                request.is_whole = True
            await send(message)

        set_current_request(request)
        for observer in self._observers:
            observer.on_start(request, headers)
        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            request.status = request.status or 500
            raise
        finally:
            request.route = self._routes.get(scope.get("endpoint"), "none")
            request.seconds = time.monotonic() - request.began
            request.status = request.status or CLIENT_DISCONNECTED
            request.error = request.error or request.stats.error
            for observer in self._observers:
                observer.on_end(request)
