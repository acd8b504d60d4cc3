"""Errors in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.protocols.upstream_failures import classify_failure


class RequestError(UsageError):
    """A request that is not taken. ``param`` names the field at fault, ``status`` is HTTP's, ``code`` what the
    interface calls this error."""

    def __init__(self, message: str, param: str | None = None, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


_Kind = TypeVar("_Kind", str, dict[str, Json], list[Json])
_WORDS: Mapping[type, str] = {str: "text", dict: "an object", list: "a list"}


def require_type(kind: type[_Kind], value: Json, param: str) -> _Kind:
    """``value``, which must be of this kind; empty where it is missing or null. Raises RequestError."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        shown = json.dumps(value, ensure_ascii=False, default=str)
        raise RequestError(f"{param!r} must be {_WORDS[kind]}, got {shown[:80]}", param)
    return value


def objects_in(value: Json, param: str) -> list[JsonObject]:
    """A list that must hold objects only."""
    listed = require_type(list, value, param)
    return [require_type(dict, each, f"{param}[{index}]") for index, each in enumerate(listed)]


def error_object(message: str, kind: str, param: str | None = None, code: str | None = None) -> JsonObject:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refusal(error: RequestError) -> JsonObject:
    """What a client is told whose request is not taken; goes with the error's status."""
    kind = {401: "authentication_error", 403: "permission_error"}.get(error.status, "invalid_request_error")
    return error_object(str(error), kind, error.param, error.code)


def is_error(value: Json) -> bool:
    return isinstance(value, dict) and bool(value.get("error"))


def error_text(error: JsonObject) -> str:
    """What an error says."""
    told = error.get("error")
    return str(told.get("message") if isinstance(told, dict) else told)


def relay_error(status: int, body: bytes) -> JsonObject:
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
    message = (
        f"the model server answered {status}: {said or 'nothing'}. {classify_failure(status, said).advice}".strip()
    )
    return error_object(message, "upstream_error" if status >= 500 else "invalid_request_error")
