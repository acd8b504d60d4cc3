"""The openai SDK's errors, sorted: what happened, with which status, in whose words.

The SDK is imported on first use only: it takes most of a second.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache


@cache
def sdk_errors() -> tuple[type[Exception], ...]:
    """What a request through the SDK may raise. Its HTTP library's own errors pass while a stream is read."""
    import openai

    # openai 3 stands on httpx2, openai 2 on httpx; whichever it is has been imported by now.
    http = [sys.modules[name] for name in ("httpx2", "httpx") if name in sys.modules]
    return (openai.OpenAIError, json.JSONDecodeError, *(library.TransportError for library in http))


def is_silent(error: BaseException) -> bool:
    """The connection stands, but nothing came for the time allowed."""
    return "ReadTimeout" in _class_names(error) or "ReadTimeout" in _class_names(error.__cause__)


def is_dropped(error: BaseException) -> bool:
    """There is no connection, or none any more."""
    return bool({"APIConnectionError", "TransportError"} & _class_names(error)) and not is_silent(error)


def is_unreached(error: BaseException) -> bool:
    """Of what `is_dropped`: nobody took the request."""
    causes: list[BaseException | None] = [error, error.__cause__]
    return any({"ConnectError", "ConnectTimeout", "ProxyError"} & _class_names(cause) for cause in causes)


def _class_names(error: BaseException | None) -> set[str]:
    """By name, because the HTTP library below the SDK is one of two."""
    return {kind.__name__ for kind in type(error).__mro__}


def status_of(error: BaseException) -> int | None:
    """The HTTP status, also of an error that was sent as an event of a stream that had begun with 200."""
    status = getattr(error, "status_code", None)
    if status is None and isinstance(body := getattr(error, "body", None), dict):
        status = body.get("code")
        return status if isinstance(status, int) else 500
    return status if isinstance(status, int) else None


def reason_of(error: BaseException) -> str:
    """The server's own words where it has any, else the deepest cause, without a final full stop."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    while error.__cause__ is not None:
        error = error.__cause__
    text = message if isinstance(message, str) else re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
    return text.strip().rstrip(".")[:300]
