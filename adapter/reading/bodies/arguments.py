"""Arguments written one by one, as tags have them: the same one may come several times, and in a CDATA section."""

from __future__ import annotations

import re

from adapter.tools.schema import from_text, types_of
from adapter.values.events import Json, JsonObject
from adapter.values.lazy_pattern import lazy_pattern

_CDATA = lazy_pattern(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)


def without_cdata(text: str, fixes: dict[str, None]) -> str:
    """``text``, or what it holds where it is one CDATA section and no XML format asked for that."""
    data = _CDATA.fullmatch(text)
    if data is None:
        return text
    fixes["cdata"] = None
    return data[1]


def add_text(arguments: JsonObject, key: str, text: str, schema: JsonObject | None, fixes: dict[str, None]) -> None:
    """Add the value that is written as ``text``; its type is the one that ``schema`` declares."""
    add_value(arguments, key, from_text(without_cdata(text, fixes), schema), schema, fixes)


def add_value(arguments: JsonObject, key: str, value: Json, schema: JsonObject | None, fixes: dict[str, None]) -> None:
    """Add ``value``; where the argument is there already a list takes all of them, anything else the last."""
    if key in arguments:
        fixes["repeated-argument"] = None
        if schema and "array" in types_of(schema):
            value = [*_items(arguments[key]), *_items(value)]
    arguments[key] = value


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]
