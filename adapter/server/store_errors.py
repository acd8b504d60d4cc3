"""Answer requests whose stored response or conversation cannot be read, in the format of the client's API."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.protocols.openai_errors import error_object
from adapter.server.error_formats import error_format_for
from adapter.server.response_store import StoreError
from adapter.server.telemetry.request_info import current_request

RETRY_AFTER_S = 1
"""Seconds after which a client may retry, because another program may have finished its work on the file."""


class StoreErrorResponses:
    """ASGI middleware that turns a StoreError of ``app`` into status 503."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except StoreError as error:
            if current_request().status:  # the response has begun
                raise
            content = error_format_for(scope["path"])(error_object(str(error), "overloaded_error"), 503)
            headers = {"Retry-After": str(RETRY_AFTER_S)}
            await JSONResponse(content, 503, headers)(scope, receive, send)
