"""Answer requests that fail before the response begins, in the format of OpenAI's, Anthropic's or Ollama's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.core.events import JsonObject
from adapter.protocols import anthropic_response, ollama
from adapter.protocols.openai_errors import build_error_object
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.server.concurrency_limit import RETRY_AFTER_S, QueueFullError
from adapter.server.response_store import StoreError
from adapter.server.telemetry.request_info import get_current_request
from adapter.server.upstream_connection import UpstreamError

_Failure: TypeAlias = RequestError | UpstreamError | QueueFullError | StoreError


class ErrorResponses:
    """ASGI middleware that turns errors that ``app`` raises into error responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except (RequestError, UpstreamError, QueueFullError, StoreError) as error:
            if get_current_request().status:  # the response has begun
                raise
            content = find_error_format(scope["path"])(build_failure_object(error), error.status)
            headers = {"Retry-After": str(RETRY_AFTER_S)} if error.status == 503 else {}
            if isinstance(error, RequestError) and error.allowed:
                headers["Allow"] = ", ".join(error.allowed)
            await JSONResponse(content, error.status, headers)(scope, receive, send)


def build_failure_object(error: _Failure) -> JsonObject:
    """Return an error in OpenAI's format."""
    if isinstance(error, RequestError):
        return build_error_body(error)
    return build_error_object(str(error), "overloaded_error" if error.status == 503 else "upstream_error")


AsError: TypeAlias = Callable[[JsonObject, int], JsonObject]
"""Converts an OpenAI error and its HTTP status to the format of the client's API."""


def find_error_format(path: str) -> AsError:
    """Return the function that converts errors to the format of the API at ``path``."""
    if path.startswith("/api/") and not path.startswith(("/api/v0/", "/api/v1/")):  # those are LM Studio's
        return ollama.to_error
    return anthropic_response.to_error if path.startswith("/v1/messages") else lambda error, _: error
