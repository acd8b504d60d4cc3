"""Read tool definitions as other APIs, protocols and data sets write them.

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
    if isinstance(found, Mapping) and isinstance(found.get("json"), Mapping):
        found = found["json"]
    if not isinstance(found, Mapping) or (found.get("type") == "object" and not _are_properties(found)):
        return found
    if not _are_properties(found):
        return _with_plain_types(found) if isinstance(found.get("type"), str) else found
    required = [name for name, each in found.items() if isinstance(each, Mapping) and each.get("required") is True]
    properties = {
        name: {key: item for key, item in dict(each).items() if key != "required" or isinstance(item, list)}
        for name, each in found.items()
        if isinstance(each, Mapping)
    }
    schema: JsonObject = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return _with_plain_types(schema)


def _are_properties(schema: Mapping[str, Json]) -> bool:
    """Return whether the members of ``schema`` are properties, each with a type or a description."""
    return _SCHEMA_KEYS.isdisjoint(schema) and all(
        isinstance(each, Mapping) and not {"type", "description"}.isdisjoint(each) for each in schema.values()
    )


def _with_plain_types(value: Json) -> Json:
    """Return a copy of a schema with the types of JSON Schema in place of Python's and Gemini's."""
    if isinstance(value, list):
        return [_with_plain_types(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    copied = {key: _with_plain_types(item) for key, item in value.items()}
    if isinstance(kind := value.get("type"), str):
        word = kind.lower().partition(",")[0].partition("[")[0].strip()  # "List[str], optional"
        copied["type"] = _TYPES.get(word, word)
    return copied
