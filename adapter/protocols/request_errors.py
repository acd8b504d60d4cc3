"""Define the error for invalid requests, and check the types of request fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import build_error_object


class RequestError(UsageError):
    """An invalid request.

    ``param`` is the path of the invalid field, ``status`` the HTTP status, ``code`` OpenAI's error code, and
    ``allowed`` has the methods that the path accepts, for status 405.
    """

    def __init__(
        self, message: str, param: str | None = None, *, status: int = 400, code: str | None = None,
        allowed: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.param, self.status, self.code, self.allowed = param, status, code, allowed


_Kind = TypeVar("_Kind", str, bool, dict[str, Json], list[Json])


_TYPE_NAMES: Mapping[type, str] = {str: "text", dict: "an object", list: "a list", bool: "true or false"}


def require_type(kind: type[_Kind], value: Json, param: str) -> _Kind:
    """Return ``value``, or an empty value of the type ``kind`` if it is None. Raises RequestError, which names the
    field ``param``, if it has another type."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        excerpt = json.dumps(value, ensure_ascii=False, default=str)
        raise RequestError(f"{param!r} must be {_TYPE_NAMES[kind]}, got {excerpt[:80]}", param)
    return value


def require_objects(value: Json, param: str) -> list[JsonObject]:
    """Return ``value`` if it is a list of objects. Raises RequestError, which names the field ``param``, if not."""
    items = require_type(list, value, param)
    return [
        each if isinstance(each, dict) else require_type(dict, each, f"{param}[{index}]")
        for index, each in enumerate(items)
    ]


def build_error_body(error: RequestError) -> JsonObject:
    """Return the response body for an invalid request."""
    kind = {401: "authentication_error", 403: "permission_error"}.get(error.status, "invalid_request_error")
    return build_error_object(str(error), kind, error.param, error.code)
