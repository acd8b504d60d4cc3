"""JSON Schema as small models and constrained decoders take it.

llama.cpp's and Ollama's grammars know no ``$ref``, no ``type`` lists and little
of ``anyOf`` (ollama: "cannot unmarshal array into ... type string"). So
references are put inline, titles are dropped, and a value that may be null is
just a value that need not be given. Of a model that holds itself the inner one is
described by its type alone.
"""

from __future__ import annotations

from pydantic import BaseModel

from adapter.core.events import Json, JsonObject

REQUIRED_KEY = "x-required"
"""``Field(json_schema_extra={REQUIRED_KEY: True})``: documented as required, tolerated when missing."""

_DROPPED = {"title", REQUIRED_KEY, "$defs"}


def simplify_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of ``model`` as type object: inline, without titles, Optional collapsed."""
    full = model.model_json_schema()
    schema: JsonObject = _simplified(full, full.get("$defs", {}))
    schema.pop("description", None)  # the tool's own, it stands beside the parameters
    return {"type": "object", "properties": {}} | schema


def _simplified(schema: Json, definitions: JsonObject) -> Json:
    if isinstance(schema, list):
        return [_simplified(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        # A model's docstring is for us; what the property is for is said at the property.
        name = schema["$ref"].rpartition("/")[2]
        target = definitions[name] | {"description": None}
        within = definitions | {name: {key: target[key] for key in ("type",) if key in target}}
        return _simplified(target | {key: value for key, value in schema.items() if key != "$ref"}, within)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _simplified(choices[0] | rest, definitions)
    simplified = {
        key: _properties(value, definitions) if key == "properties" else _simplified(value, definitions)
        for key, value in schema.items()
        if key not in _DROPPED and not (value is None or (key == "default" and schema.get(REQUIRED_KEY)))
    }
    if isinstance(properties := schema.get("properties"), dict):
        required = [name for name in properties if _is_required(name, schema)]
        return simplified | ({"required": required} if required else {})
    return simplified


def _is_required(name: str, schema: JsonObject) -> bool:
    return name in schema.get("required", ()) or bool(schema["properties"][name].get(REQUIRED_KEY))


def _properties(properties: JsonObject, definitions: JsonObject) -> JsonObject:
    """Names of properties are no keywords: one may be called ``title``."""
    return {
        name: {key: value for key, value in _simplified(schema, definitions).items() if key != "additionalProperties"}
        for name, schema in properties.items()
    }
