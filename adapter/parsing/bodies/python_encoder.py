"""Writes calls as Python, for `python_calls` to read: JSON's strings and numbers are Python's too."""

from __future__ import annotations

import json
import re

from adapter.core.events import Json, JsonObject

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def encode_call(name: str, arguments: JsonObject) -> str:
    if all(_IDENTIFIER.fullmatch(key) for key in arguments):
        written = ", ".join(f"{key}={encode_value(value)}" for key, value in arguments.items())
    else:
        written = f"**{encode_value(arguments)}"
    return f"{name}({written})"


def encode_value(value: Json) -> str:
    """``value`` as a Python literal."""
    match value:
        case None | True | False:
            return str(value)
        case dict():
            return "{" + ", ".join(f"{encode_value(key)}: {encode_value(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(encode_value, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
