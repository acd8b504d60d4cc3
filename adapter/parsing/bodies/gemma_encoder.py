"""Encode calls in Gemma's notation, for `gemma_call`."""

from __future__ import annotations

import json
import re

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json


def encode_call(name: str, arguments: JsonObject, quote: str) -> str:
    return f"call:{name}{_encode(arguments, quote)}"


def _encode(value: Json, quote: str) -> str:
    match value:
        case str():
            if quote.lower() not in value.lower():
                return f"{quote}{value}{quote}"
            # Escaped, because the parser finds tokens in any string that is not between QUOTEs.
            return dump_json(value).replace("<", "\\u003c")
        case dict():
            return (
                "{" + ",".join(f"{_encode_key(key, quote)}:{_encode(item, quote)}" for key, item in value.items()) + "}"
            )
        case list():
            return "[" + ",".join(_encode(item, quote) for item in value) + "]"
        case _:
            return json.dumps(value)


def _encode_key(key: str, quote: str) -> str:
    return key if re.fullmatch(r"\w+(?:[ .-]\w+)*", key) else _encode(key, quote)
