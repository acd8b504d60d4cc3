"""Encode calls as Python, for `python_parser`. JSON strings and numbers are also valid Python."""

from __future__ import annotations

import re
from collections.abc import Callable

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def encode_value(value: Json) -> str:
    """Return ``value`` as a Python literal."""
    match value:
        case None | True | False:
            return str(value)
        case dict():
            return "{" + ", ".join(f"{encode_value(key)}: {encode_value(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(encode_value, value)) + "]"
        case _:
            return dump_json(value)


def encode_call(name: str, arguments: JsonObject, encode_value: Callable[[Json], str] = encode_value) -> str:
    if all(_IDENTIFIER.fullmatch(key) for key in arguments):
        encoded_arguments = ", ".join(f"{key}={encode_value(value)}" for key, value in arguments.items())
    else:
        encoded_arguments = f"**{encode_value(arguments)}"
    return f"{name}({encoded_arguments})"
