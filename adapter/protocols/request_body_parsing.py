"""Parse JSON request bodies within limits, so that parsing time is bounded."""

from __future__ import annotations

import marshal

from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import RequestError
from adapter.protocols.request_list_cache import load_request

MAX_VALUES = 1_000_000
"""Maximum number of values in one body. In memory, an empty list takes thirty times its length. Text with so many
commas and brackets does not fit into any model's context."""

MAX_TEXT = 4_000_000
"""Maximum length of a request's text without images, in characters: about a million tokens, more than models accept."""


def read_body(content: bytes) -> JsonObject:
    """Parse a request body. Raises RequestError if it is not a JSON object."""
    if len(content) > MAX_VALUES and sum(map(content.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise RequestError(f"the request body has more than {MAX_VALUES:,} values; shorten the conversation")
    try:
        body = load_request(content)
    except ValueError as error:
        raise RequestError(f"the request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise RequestError(f"the request body must be a JSON object, got {str(body)[:80]!r}")
    return body


def check_size(body: JsonObject) -> None:
    """Raise RequestError if a request contains more text than any model accepts."""
    # The encoding is never shorter than the text. Measuring it is ten times faster than counting characters.
    if len(marshal.dumps(body, 2)) > MAX_TEXT and (size := _count_characters(body)) > MAX_TEXT:
        message = f"the request has {size:,} characters of text, and the maximum is {MAX_TEXT:,}"
        raise RequestError(f"{message}; shorten its messages or tools", "messages")


def _count_characters(value: Json) -> int:
    """Return the total length of the strings in ``value``, not counting data URLs."""
    size, pending = 0, [value]
    while pending:
        match pending.pop():
            case str() as text:
                size += 0 if text.startswith("data:") else len(text)
            case list() as items:
                pending += items
            case dict() as fields:
                pending += fields.keys()
                pending += fields.values()
    return size
