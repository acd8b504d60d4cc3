"""Errors in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import json

from adapter.errors import UsageError
from adapter.events import Json, JsonObject
from adapter.failures import failure_of


class RequestError(UsageError):
    """A request that is not taken. ``param`` names the field at fault, ``status`` is HTTP's."""

    def __init__(self, message: str, param: str | None = None, *, status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.status = status


def error_object(message: str, kind: str, param: str | None = None, code: str | None = None) -> JsonObject:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refusal(error: RequestError) -> JsonObject:
    """What a client is told whose request is not taken; goes with the error's status."""
    kind = {401: "authentication_error", 403: "permission_error"}.get(error.status, "invalid_request_error")
    return error_object(str(error), kind, error.param)


def is_error(value: Json) -> bool:
    return isinstance(value, dict) and bool(value.get("error"))


def relayed(status: int, body: bytes) -> JsonObject:
    """A model server's error in OpenAI's shape: untouched where it has that shape already.

    Ollama's own interface says ``{"error": "text"}``, proxies answer in HTML or not at all.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        return value
    said = value["error"] if isinstance(value, dict) and isinstance(value.get("error"), str) else text[:500]
    message = f"the model server answered {status}: {said or 'nothing'}. {failure_of(status, said).advice}".strip()
    return error_object(message, "upstream_error" if status >= 500 else "invalid_request_error")
