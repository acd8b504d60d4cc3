"""Classify errors of the openai SDK, and extract their status and reason.

The SDK is imported on first use, because the import takes most of a second.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache


@cache
def list_sdk_errors() -> tuple[type[Exception], ...]:
    """Return the types of exceptions that a request through the SDK can raise. They include exceptions of the SDK's
    HTTP library, which can occur during streaming."""
    import openai

    # openai 3 uses httpx2, openai 2 uses httpx. Importing the SDK has imported one of them.
    http = [sys.modules[name] for name in ("httpx2", "httpx") if name in sys.modules]
    return (openai.OpenAIError, json.JSONDecodeError, *(library.TransportError for library in http))


def is_timeout(error: BaseException) -> bool:
    """Return whether the server kept the connection open but sent nothing within the timeout."""
    return "ReadTimeout" in _list_class_names(error) or "ReadTimeout" in _list_class_names(error.__cause__)


def is_connection_error(error: BaseException) -> bool:
    """Return whether the connection failed or was lost."""
    return bool({"APIConnectionError", "TransportError"} & _list_class_names(error)) and not is_timeout(error)


def is_connect_error(error: BaseException) -> bool:
    """Return whether a connection error occurred before the request was sent."""
    causes: list[BaseException | None] = [error, error.__cause__]
    return any({"ConnectError", "ConnectTimeout", "ProxyError"} & _list_class_names(cause) for cause in causes)


def _list_class_names(error: BaseException | None) -> set[str]:
    """Return the names of the error's classes. They cannot be imported: the SDK uses one of two HTTP libraries."""
    return {kind.__name__ for kind in type(error).__mro__}


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status of an error, or None if it has none. For an error within a stream, whose HTTP status was
    200, return the code in the error, or 500."""
    status = getattr(error, "status_code", None)
    if status is None and isinstance(body := getattr(error, "body", None), dict | str):
        status = body.get("code") if isinstance(body, dict) else None
        return status if isinstance(status, int) else 500
    return status if isinstance(status, int) else None


def find_reason(error: BaseException) -> str:
    """Return the server's message, or else the message of the root cause, without a final period."""
    body = getattr(error, "body", None)
    is_text = isinstance(body, str) and not hasattr(error, "status_code")  # the error event was only a message
    message = body.get("message") if isinstance(body, dict) else body if is_text else None
    while error.__cause__ is not None:
        error = error.__cause__
    written = error.doc if isinstance(error, json.JSONDecodeError) else ""  # an event's data that is only a message
    text = written or re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
    text = message if isinstance(message, str) else text
    return text.strip().rstrip(".")[:300]
