"""A right call of a tool as an example for the model, made from its schema and from what of a wrong call was right."""

from __future__ import annotations

from collections.abc import Mapping

from adapter.tools.definition import Tool
from adapter.tools.schema import branch_of, fits, types_of
from adapter.values.events import Json, JsonObject

_BY_TYPE: Mapping[str, Json] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
MAX_DEPTH = 4
"""Of a sample; what lies deeper is left empty."""


def sample_of(tool: Tool, given: Mapping[str, Json] | None = None) -> JsonObject:
    """Arguments that fit ``tool``: what it requires, and of ``given`` what fits its parameter.

    A text that only the model can know is told by its parameter's name: ``"your path"``.
    """
    kept = {key: value for key, value in (given or {}).items() if key in tool.properties}
    kept = {key: value for key, value in kept.items() if fits(value, tool.properties[key])}
    shown = tool.example if tool.example is not None and not kept else {}
    needed = {key: _value(key, tool.properties.get(key, {}), 0) for key in tool.required}
    return {**needed, **shown, **kept}


def _value(name: str, schema: Json, depth: int) -> Json:
    if not isinstance(schema, Mapping):
        return f"your {name}"
    for known in ("const", "default"):
        if known in schema:
            return schema[known]
    for several in ("enum", "examples"):
        if isinstance(listed := schema.get(several), list) and listed:
            return listed[0]
    types = types_of(schema)
    if "string" in types or not types:
        return f"your {name}"
    if "object" in types:
        inner = branch_of(schema, "object")
        properties, required = inner.get("properties"), inner.get("required")
        if depth >= MAX_DEPTH or not isinstance(properties, Mapping) or not isinstance(required, list):
            return {}
        return {key: _value(key, properties.get(key, {}), depth + 1) for key in required}
    if "array" in types:
        items = branch_of(schema, "array").get("items")
        return [] if items is None or depth >= MAX_DEPTH else [_value(name, items, depth + 1)]
    return next((_BY_TYPE[kind] for kind in sorted(types - {"null"}) if kind in _BY_TYPE), None)
