"""Read tool definitions in the shapes of other APIs, protocols and data sets.

::

    {"type": "function", "function": {"name": N, "parameters": SCHEMA}}     OpenAI; also without "function"
    {"name": N, "input_schema": SCHEMA}                                     Anthropic; "inputSchema" in MCP
    {"toolSpec": {"name": N, "inputSchema": {"json": SCHEMA}}}              Bedrock
    {"functionDeclarations": [...]}                                         Gemini, with types in capital letters
    {"tools": [...]}, {"functions": [...]}, {"result": {"tools": [...]}}    lists, and MCP's response
    {"name": N, "parameters": {"KEY": {"type": "str", ...}, ...}}           xLAM: properties without a schema;
                                                                            "parameter_definitions" of Cohere,
                                                                            "inputs" of smolagents
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from adapter.core.events import Json, JsonObject

T = TypeVar("T")

_LISTS = ("tools", "functions", "functionDeclarations", "function_declarations")
_SCHEMAS = (
    "parameters", "input_schema", "inputSchema", "args_schema", "schema", "parameter_definitions", "inputs", "args",
)  # fmt: skip
_SCHEMA_KEYS = frozenset({"properties", "$ref", "$defs", "allOf", "anyOf", "oneOf", "additionalProperties", "required"})
_TYPES = {
    "str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "map": "object",
}  # fmt: skip
_TYPES |= {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}
_VALUES = frozenset({"const", "default", "enum", "example", "examples"})
"""Schema keys whose value is not a schema."""
_MAX_DEPTH = 100
"""Maximum nesting depth of types in a schema that are converted."""


def iter_definitions(value: Iterable[T] | Mapping[str, Json]) -> Iterator[T | Mapping[str, Json]]:
    """Yield the definitions in ``value``: a list, one definition, a mapping by name, or an object with a list."""
    if not isinstance(value, Mapping):
        for item in value:
            listed = isinstance(item, Mapping) and any(isinstance(item.get(key), list) for key in _LISTS)
            yield from iter_definitions(item) if listed and isinstance(item, Mapping) else (item,)
        return
    inner = value.get("result", value)
    lists = [inner[key] for key in _LISTS if isinstance(inner.get(key), list)] if isinstance(inner, Mapping) else []
    if lists:
        yield from iter_definitions(lists[0])
    elif "name" in value or "function" in value or not all(isinstance(each, Mapping) for each in value.values()):
        yield value
    else:
        yield from ({"name": name, **dict(each)} for name, each in value.items() if isinstance(each, Mapping))


def find_schema(definition: Mapping[str, Json]) -> Json:
    """Return the schema of the parameters, or any other value under its key, or None."""
    found = next((definition[key] for key in _SCHEMAS if definition.get(key)), None)
    if isinstance(found, Mapping) and found.keys() == {"json"}:
        found = found["json"]
    if isinstance(found, Mapping) and found and _are_properties(found):
        found = _build_schema(found)
    return _with_plain_types(found, 0)


def _build_schema(members: Mapping[str, Json]) -> JsonObject:
    """Return the schema of an object with the properties ``members``. Each property may have a flag ``required``."""
    required: list[Json] = []
    properties: JsonObject = {}
    for name, each in members.items():
        property = dict(each) if isinstance(each, Mapping) else {}
        if isinstance(property.get("required"), bool) and property.pop("required"):
            required.append(name)
        properties[name] = property
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _are_properties(schema: Mapping[str, Json]) -> bool:
    """Return whether ``schema`` maps names to properties, each with a type or description."""
    return _SCHEMA_KEYS.isdisjoint(schema) and all(
        isinstance(each, Mapping) and not {"type", "description"}.isdisjoint(each) for each in schema.values()
    )


def _with_plain_types(value: Json, depth: int) -> Json:
    """Return a copy of a schema. Types named as in Python or Gemini are replaced with JSON Schema's types."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_with_plain_types(item, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    copied = {key: item if key in _VALUES else _with_plain_types(item, depth + 1) for key, item in value.items()}
    if isinstance(kind := value.get("type"), str):
        word = kind.lower().partition(",")[0].partition("[")[0].strip()  # "List[str], optional"
        copied["type"] = _TYPES.get(word, kind)
    return copied
