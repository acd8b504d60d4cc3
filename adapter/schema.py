"""What a JSON Schema says about one value: its types, and conversions that lose nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from adapter.errors import FormatError
from adapter.events import Json, JsonObject
from adapter.repair import decode_json

_TYPE_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_INTEGER = re.compile(r"[+-]?\d{1,400}(?:\.0+)?")
_BOOLEANS = {"true": True, "false": False}


def types_of(schema: Mapping[str, Json]) -> frozenset[str]:
    """The JSON types that ``schema`` admits; empty when it does not say."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(name for name in declared if isinstance(name, str))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        found = [types_of(branch) for branch in branches if isinstance(branch, Mapping)]
        return frozenset().union(*found) if all(found) else frozenset()
    if "enum" in schema:
        return frozenset(filter(None, (type_name(value) for value in schema["enum"])))
    if "const" in schema:
        return frozenset({type_name(schema["const"])})
    if "properties" in schema:
        return frozenset({"object"})
    if "items" in schema:
        return frozenset({"array"})
    return frozenset()


def type_name(value: Json) -> str:
    """The JSON type of a value: ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``, ``null``."""
    return _TYPE_NAMES.get(type(value), "string")


def is_of(value: Json, types: frozenset[str]) -> bool:
    """Whether ``value`` is of one of the types as JSON Schema counts them (an integer is a number too)."""
    name = type_name(value)
    return name in types or (name == "integer" and "number" in types)


def from_text(text: str, schema: Mapping[str, Json] | None) -> Json:
    """The value of a parameter that was written as bare text, as XML formats do.

    A parameter that may be a string stays the text as it is, except for ``null``
    where that is allowed, and for a value of an enum that is no string. Text that does not read as a declared
    type stays text.
    """
    types = types_of(schema) if schema else frozenset()
    bare = text.strip()
    listed = schema.get("enum") if schema else None
    if isinstance(listed, list) and bare not in listed:
        for value in listed:
            if not isinstance(value, str) and json.dumps(value) == bare:
                return value
    if "null" in types and bare in ("null", "None"):
        return None
    if not types or "string" in types:
        return text
    value, _ = convert(bare, types)
    return value if is_of(value, types) else text


def convert(value: Json, types: frozenset[str]) -> tuple[Json, str | None]:
    """``value`` as one of ``types``, and the name of the fix; unchanged when nothing fits without loss."""
    if not types or is_of(value, types):
        return value, None
    if isinstance(value, str):
        return _convert_text(value, types)
    if isinstance(value, float) and "integer" in types and value.is_integer():
        return int(value), "coerced-type"
    if isinstance(value, dict) and _is_echo(value, types):
        return value["value"], "echoed-schema"
    if "array" in types and not isinstance(value, list | dict) and value is not None:
        return [value], "coerced-type"
    if types == {"string"} and isinstance(value, int | float):
        return json.dumps(value), "coerced-type"
    return value, None


def _is_echo(value: JsonObject, types: frozenset[str]) -> bool:
    """Small models copy the schema and add the value: ``{"type": "string", "value": "Paris"}``."""
    return "value" in value and isinstance(value.get("type"), str) and is_of(value["value"], types)


def _convert_text(text: str, types: frozenset[str]) -> tuple[Json, str | None]:
    bare = text.strip()
    if "boolean" in types and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()], "coerced-type"
    if types & {"integer", "number"} and _INTEGER.fullmatch(bare):
        return int(bare.split(".")[0]), "coerced-type"
    if "number" in types:
        try:
            number = float(bare)
        except ValueError:
            number = float("nan")
        if number - number == 0:  # neither infinite nor not-a-number
            return number, "coerced-type"
    if bare[:1] in ("{", "[") and types & {"object", "array"}:
        try:
            value = decode_json(bare, closed=False)
        except FormatError:
            return text, None
        if not bare[value.end :].strip() and is_of(value.value, types):
            return value.value, "json-in-string"
    if "array" in types and bare:
        return [text], "coerced-type"
    return text, None


def resolve_references(schema: JsonObject) -> JsonObject:
    """``schema`` with every local ``$ref`` replaced by what it names; recursion ends as "anything"."""
    definitions = {
        f"#/{key}/{name}": body for key in ("$defs", "definitions") for name, body in schema.get(key, {}).items()
    }

    def inline(node: Json, seen: tuple[str, ...]) -> Json:
        if isinstance(node, list):
            return [inline(item, seen) for item in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str):
            if reference in seen or reference not in definitions:
                return {}
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return {**inline(definitions[reference], (*seen, reference)), **inline(rest, seen)}
        return {key: inline(value, seen) for key, value in node.items() if key not in ("$defs", "definitions")}

    resolved: JsonObject = inline(schema, ())
    return resolved
