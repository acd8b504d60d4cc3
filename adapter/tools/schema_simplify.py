"""Simplify JSON Schemas for small models and constrained decoders.

The grammars of llama.cpp and Ollama support neither ``$ref`` nor ``type`` lists, and little of ``anyOf`` (Ollama:
"cannot unmarshal array into ... type string"). Therefore, references are inlined, titles are dropped, and a nullable
value becomes an optional one. Where a pydantic model contains itself, the inner occurrence has only a type.
"""

from __future__ import annotations

import math

from pydantic import BaseModel

from adapter.core.events import Json, JsonObject
from adapter.tools.coercion import list_required

REQUIRED_KEY = "x-required"
"""Key for a parameter that the schema marks as required, although calls may omit it:
``Field(json_schema_extra={REQUIRED_KEY: True})``."""

_DROPPED = {"title", REQUIRED_KEY, "$defs"}


def simplify_schema(model: type[BaseModel]) -> JsonObject:
    """Return the schema of ``model``, with references inlined, titles dropped and ``Optional[T]`` replaced by ``T``."""
    full = model.model_json_schema()
    schema: JsonObject = _simplify(full, full.get("$defs", {}))
    schema.pop("description", None)  # the tool has its own description
    return {"type": "object", "properties": {}} | schema


def _simplify(schema: Json, definitions: JsonObject) -> Json:
    if isinstance(schema, list):
        return [_simplify(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        # A model's docstring is for developers. The property has its own description.
        name = schema["$ref"].rpartition("/")[2]
        target = definitions[name] | {"description": None}
        within = definitions | {name: {key: target[key] for key in ("type",) if key in target}}
        return _simplify(target | {key: value for key, value in schema.items() if key != "$ref"}, within)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _simplify(choices[0] | rest, definitions)
    simplified = {
        key: _simplify_properties(value, definitions) if key == "properties" else _simplify(value, definitions)
        for key, value in schema.items()
        if key not in _DROPPED
        and not (value is None or (key == "default" and schema.get(REQUIRED_KEY)))
        and not (isinstance(value, float) and not math.isfinite(value))  # JSON has no such numbers
    }
    if isinstance(properties := schema.get("properties"), dict):
        required = [name for name in properties if _is_required(name, schema)]
        return simplified | ({"required": required} if required else {})
    return simplified


def _is_required(name: str, schema: JsonObject) -> bool:
    return name in list_required(schema) or bool(schema["properties"][name].get(REQUIRED_KEY))


def _simplify_properties(properties: JsonObject, definitions: JsonObject) -> JsonObject:
    """Simplify properties by name, because a property may be called like a dropped keyword, such as ``title``.

    Of the schema of a mapping's values, only a single type is kept.
    """
    simplified = {name: _simplify(schema, definitions) for name, schema in properties.items()}
    for schema in simplified.values():
        values = schema.pop("additionalProperties", None)
        if isinstance(values, dict) and "type" in values:
            schema["additionalProperties"] = values
    return simplified
