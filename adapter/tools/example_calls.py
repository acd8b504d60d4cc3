"""A right call of a tool as an example for the model, made from its schema and from what of a wrong call was right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt

from adapter.core.events import Json, JsonObject
from adapter.tools.coercion import has_schema_type, schema_types, select_branch
from adapter.tools.tool import Tool

_BY_TYPE: Mapping[str, Json] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
_BY_FORMAT: Mapping[str, Json] = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00",
    "duration": "PT1H",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
"""Texts that have one form; https://json-schema.org/draft/2020-12/json-schema-validation#section-7.3."""
MAX_DEPTH = 4
"""Of a sample; what lies deeper is left empty."""
MAX_ITEMS = 8
"""Of a list in a sample, however many are required."""
MAX_BOUND = 1e15
"""Of a number in a sample: up to here a float has every integer."""


def example_call(tool: Tool, given: Mapping[str, Json] | None = None) -> JsonObject:
    """Arguments that fit ``tool``: what it requires, and of ``given`` what fits its parameter.

    A text that only the model can know is told by its parameter's name: ``"your path"``.
    """
    kept = {key: value for key, value in (given or {}).items() if key in tool.properties}
    kept = {key: value for key, value in kept.items() if has_schema_type(value, tool.properties[key])}
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
    types = schema_types(schema)
    if "string" in types or not types:
        return _BY_FORMAT.get(str(schema.get("format")), f"your {name}")
    if "object" in types:
        inner = select_branch(schema, "object")
        properties, required = inner.get("properties"), inner.get("required")
        if depth >= MAX_DEPTH or not isinstance(properties, Mapping) or not isinstance(required, list):
            return {}
        return {key: _value(key, properties.get(key, {}), depth + 1) for key in required}
    if "array" in types:
        inner = select_branch(schema, "array")
        items, least = inner.get("items"), inner.get("minItems")
        count = max(1, min(least, MAX_ITEMS)) if isinstance(least, int) else 1
        return [] if items is None or depth >= MAX_DEPTH else [_value(name, items, depth + 1)] * count
    return next((_within(_BY_TYPE[kind], schema) for kind in sorted(types - {"null"}) if kind in _BY_TYPE), None)


def _within(usual: Json, schema: Mapping[str, Json]) -> Json:
    """``usual``, or where that is out of the bounds of ``schema`` a number at them, beside them or between them."""
    bounds: dict[str, float] = {key: schema[key] for key in _BOUNDS if type(schema.get(key)) in (int, float)}
    bounds = {key: bound for key, bound in bounds.items() if abs(bound) <= MAX_BOUND}
    near = [bound + step for step in (0, 1, -1) for bound in bounds.values()]
    between = [sum(bounds.values()) / 2] if isinstance(usual, float) else []
    numbers = [number for number in [usual, *near, *between] if isinstance(usual, float) or number == int(number)]
    return next((number for number in numbers if all(_BOUNDS[key](number, bounds[key]) for key in bounds)), usual)


_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
}
