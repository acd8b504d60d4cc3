"""What a client posts as JSON, within bounds: what could not be taken apart in good time is refused."""

from __future__ import annotations

import json

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import RequestError

MAX_DEPTH = 100
"""Of lists and objects in a request: a definition of a tool takes ten."""

MAX_VALUES = 1_000_000
"""In one body. Empty lists and the like take thirty times the memory that they take as text; a text with as many
commas and brackets fits no model."""

MAX_TEXT = 4_000_000
"""Characters in what a request says, images left out: a million tokens, more than models of today read."""


def read_body(content: bytes) -> JsonObject:
    """The JSON object that a client sent. Raises RequestError for anything else."""
    if sum(map(content.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise RequestError(f"the request's body has more than {MAX_VALUES} values: shorten the conversation")
    try:
        body = json.loads(content)
    except RecursionError:
        body = None
    except ValueError as error:
        raise RequestError(f"the request's body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise RequestError(f"the request's body must be a JSON object, at most {MAX_DEPTH} levels deep")
    level: list[Json] = [body]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise RequestError(f"the request's body is nested more than {MAX_DEPTH} levels deep")
    return body


def check_size(body: JsonObject) -> None:
    """Raises RequestError for a request with more text than any model reads."""
    if (size := _characters(body)) > MAX_TEXT:
        message = f"the request has {size:,} characters of text; at most {MAX_TEXT:,} are taken"
        raise RequestError(f"{message}: shorten its messages and tools", "messages")


def _characters(value: Json) -> int:
    """In all texts of ``value``; those of data URLs are images."""
    size, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                size += 0 if text.startswith("data:") else len(text)
            case list() as items:
                waiting += items
            case dict() as fields:
                waiting += fields.keys()
                waiting += fields.values()
    return size
