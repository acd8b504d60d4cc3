"""Build and read errors in OpenAI's format: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import re

from adapter.core.events import Json, JsonObject
from adapter.protocols.sse import read_json_or_none
from adapter.protocols.upstream_failures import classify_failure, is_context_failure

CONTEXT_CODE = "context_length_exceeded"
_STATUSES = {CONTEXT_CODE: 400, "rate_limit_exceeded": 429}
"""HTTP statuses of the error codes that are words instead of numbers."""
_TAGS = re.compile(r"(?is)<(style|script)\b.*?</\1>|<!--.*?-->|</?[a-z!][^>]*>")


def build_error_object(message: str, kind: str, param: str | None = None, code: str | None = None) -> JsonObject:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


_REASONS = ("message", "error", "detail", "errors", "msg", "error_message")
"""Fields with the reason of an error. FastAPI's servers send ``{"detail": ...}``, gateways ``{"message": ...}``."""


def find_reason(value: Json) -> str:
    """Return the text of an error in any shape, or "" if there is none."""
    match value:
        case str():
            return value
        case list():
            return next(filter(None, map(find_reason, value)), "")
        case dict():
            return next(filter(None, (find_reason(value[key]) for key in _REASONS if value.get(key))), "")
        case _:
            return ""


def is_error(value: Json) -> bool:
    """Return whether an answer or a chunk of a stream reports an error, either as a whole or in its first choice."""
    if not isinstance(value, dict):
        return False
    if value.get("error") or value.get("object") == "error" or _get_choice_error(value):
        return True
    return not value.get("choices") and find_reason(value) != ""


def _get_choice_error(answer: JsonObject) -> Json:
    """Return the error in an answer's first choice, where OpenRouter reports it."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("error") if isinstance(first, dict) else None


def convert_to_error_object(error: JsonObject, status: int | None = None) -> JsonObject:
    """Convert an error, and its HTTP status if known, to OpenAI's format. Ollama sends ``{"error": "text"}``. vLLM
    sends the fields at the top level, with ``"object": "error"``. llama.cpp sends a number as the code, which strict
    clients reject."""
    detail = error.get("error") or _get_choice_error(error) or error
    fields: JsonObject = detail if isinstance(detail, dict) else {}
    kind, code, metadata = fields.get("type"), fields.get("code"), fields.get("metadata")
    reasons = [find_reason(detail) or code, metadata.get("raw") if isinstance(metadata, dict) else None]  # OpenRouter's
    message = ": ".join(each for each in reasons if isinstance(each, str) and each)
    converted = build_error_object(
        message or "the model server reported an error",
        kind if isinstance(kind, str) else "upstream_error",
        fields.get("param"),
        _find_code(code, status, message),
    )
    return {"error": {**fields, **converted["error"]}}


def get_error_text(error: JsonObject) -> str:
    """Return the message in an error object of OpenAI's or Ollama's format."""
    detail = error.get("error")
    return str(detail.get("message") or "" if isinstance(detail, dict) else detail)


def with_status(error: JsonObject, status: int) -> JsonObject:
    """Return the error with a code that implies the HTTP status. A stream needs it, because its own status was sent
    before the error."""
    if find_error_status(error) == status:
        return error
    return {"error": {**error["error"], "code": "rate_limit_exceeded" if status == 429 else str(status)}}


def find_error_status(error: JsonObject) -> int:
    """Return the HTTP status for the code of an error in OpenAI's format, or 502 if the code implies none."""
    detail = error.get("error")
    code = str(detail.get("code")) if isinstance(detail, dict) else ""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else _STATUSES.get(code, 502)


def _find_code(code: Json, status: int | None, message: str) -> str | None:
    """Return the code for an error with the server's ``code``. If the prompt is too long, return OpenAI's code, because
    agents recognize the error by this code."""
    if (code is None or str(code).isdigit()) and is_context_failure(str(status or code), message):
        return CONTEXT_CODE
    return None if code is None else str(code)


def get_error_type(error: Json) -> str:
    """Return the type of an error, or "upstream_error" if the error has no type."""
    detail = error.get("error") if isinstance(error, dict) else None
    return str((detail.get("type") if isinstance(detail, dict) else None) or "upstream_error")


def relay_error(status: int, body: bytes) -> JsonObject:
    """Convert a model server's error to OpenAI's format. The body may be empty or, from a proxy, HTML."""
    text = body.decode("utf-8", "replace").strip()
    value = read_json_or_none(text)
    if isinstance(value, dict) and (isinstance(value.get("error"), dict) or value.get("object") == "error"):
        return convert_to_error_object(value, status)
    message = find_reason(value) or " ".join(_TAGS.sub(" ", text).split())[:500]
    advice = classify_failure(status, message).advice
    kind, code = "upstream_error" if status >= 500 else "invalid_request_error", _find_code(None, status, message)
    message = f"the model server returned {status}: {message or 'no message'}. {advice}".strip()
    return build_error_object(message, kind, code=code)
