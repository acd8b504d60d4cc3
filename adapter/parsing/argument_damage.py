"""Find arguments that a lost or additional character has changed, so that the model is told instead of a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.decode import decode_values
from adapter.tools.coercion import find_member_schema, list_types
from adapter.tools.schema_refs import expand_schema
from adapter.tools.tool import Tool

_CONTAINERS = frozenset({"array", "object", "null"})
_DAMAGED_NAME = re.compile(r"\W*|\s.*|.*\s|.*[\\\n].*|.*\"\s*:.*", re.DOTALL)
"""Matches a name without letters, and one with a space at an end, a backslash, or the end of another member's name."""


def find_damage(tool: Tool, arguments: JsonObject, fixes: dict[str, None]) -> str:
    """Return the error in the arguments of a call of ``tool``, whose repairs are ``fixes``, or an empty string."""
    if "unescaped-quote" in fixes and (key := _find_swallowed(tool, arguments)):
        error = f"a string of the call of {tool.name!r} contains {key!r}, another argument: a quotation mark is missing"
        return f"{error} or not escaped. Write it again, in valid JSON."
    return _find_damaged_member(arguments, tool.schema)


def _find_damaged_member(value: JsonObject, schema: Mapping[str, Json]) -> str:
    for key, item in value.items():
        inner = expand_schema(find_member_schema(schema, key))
        if not inner and schema.get("properties") and _DAMAGED_NAME.fullmatch(key):
            names = ", ".join(map(repr, schema["properties"]))
            return f"an argument has the damaged name {key!r}. Write the call again; the names here are {names}."
        if isinstance(item, str) and item.lstrip()[:1] in ("{", "[") and (error := _explain_text(item, inner)):
            return f"the argument {key!r} is not valid JSON: {error}. Write the call again, in valid JSON."
        for each in item if isinstance(item, list) else [item]:
            items = (
                expand_schema(inner.get("items")) if isinstance(item, list) and isinstance(inner, Mapping) else inner
            )
            if isinstance(each, dict) and isinstance(items, Mapping) and (error := _find_damaged_member(each, items)):
                return error
    return ""


def _explain_text(text: str, schema: Json) -> str:
    """Return why ``text`` could not be converted to a list or an object. Return an empty string if ``schema`` allows
    something else."""
    types = list_types(schema)
    if not types or not types <= _CONTAINERS:
        return ""
    try:
        values, _ = decode_values(text)
    except FormatError as error:
        return str(error)
    return "more text follows it" if len(values) > 1 else ""


def _find_swallowed(tool: Tool, arguments: JsonObject) -> str:
    """Return a parameter that has no argument because the name is inside another argument's string, or an empty
    string."""
    strings = [value for value in arguments.values() if isinstance(value, str) and '"' in value]
    missing = (key for key in tool.properties if key not in arguments)
    return next((key for key in missing if any(re.search(rf"\b{re.escape(key)}\"", text) for text in strings)), "")
