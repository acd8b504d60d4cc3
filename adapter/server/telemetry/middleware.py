"""Gives each request an id, which its answer and the model server are told, and shows it to those who observe."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapter.server.telemetry.request_info import RequestInfo, RequestObserver, set_current_request

REQUEST_ID = "x-request-id"
CLIENT_LEFT = 499
"""The status of an answer that never began, for its client had gone: nginx's."""

_ID = re.compile(r"[\w.:/+=@-]{1,128}", re.ASCII)


class TelemetryMiddleware:
    """``routes``: the pattern of each endpoint. A client's own ``X-Request-Id`` is taken where it is a plain word."""

    def __init__(self, app: ASGIApp, routes: Mapping[Any, str], observers: Sequence[RequestObserver]) -> None:
        self._app, self._routes, self._observers = app, routes, observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        seen = RequestInfo(
            id=given if _ID.fullmatch(given) else os.urandom(16).hex(),
            method=scope["method"],
            path=scope["path"],
            is_observed=bool(self._observers),
        )
        seen.handed_on[REQUEST_ID] = seen.id
        told = (REQUEST_ID.encode("ascii"), seen.id.encode("ascii"))

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                others = [pair for pair in message.get("headers", ()) if pair[0] != told[0]]
                message = {**message, "headers": [*others, told]}
            elif not message.get("more_body"):
                seen.is_whole = True
            await send(message)

        set_current_request(seen)
        for observer in self._observers:
            observer.begun(seen, headers)
        try:
            await self._app(scope, receive, sending)
        except Exception:
            seen.status = seen.status or 500
            raise
        finally:
            seen.route = self._routes.get(scope.get("endpoint"), "none")
            seen.seconds = time.monotonic() - seen.began
            seen.status = seen.status or CLIENT_LEFT
            seen.error = seen.error or seen.account.error
            for observer in self._observers:
                observer.ended(seen)
