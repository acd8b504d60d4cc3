"""Build valid example calls to a tool, from its schema and the valid arguments of an invalid call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt

from adapter.core.events import Json, JsonObject
from adapter.tools.coercion import has_schema_type, list_types, select_branch
from adapter.tools.tool import Tool

_BY_TYPE: Mapping[str, Json] = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
_BY_FORMAT: Mapping[str, Json] = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00",
    "duration": "PT1H",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
"""Example strings by the schema's ``format``; see
https://json-schema.org/draft/2020-12/json-schema-validation#section-7.3."""
MAX_DEPTH = 4
"""Maximum nesting depth of an example. Deeper objects and lists are empty."""
MAX_ITEMS = 8
"""Maximum number of items in a list of an example, even if the schema requires more."""
MAX_BOUND = 1e15
"""Maximum absolute value of a number in an example. Up to this value, floats represent every integer."""


def build_example_call(tool: Tool, given: Mapping[str, Json] | None = None) -> JsonObject:
    """Return valid arguments for ``tool``: the required arguments, and those in ``given`` that are valid.

    A string that only the model can know becomes a placeholder with the parameter's name: ``"your path"``.
    """
    valid = {key: value for key, value in (given or {}).items() if key in tool.properties}
    valid = {key: value for key, value in valid.items() if has_schema_type(value, tool.properties[key])}
    example = tool.example if tool.example is not None and not valid else {}
    required_values = {key: _build_value(key, tool.properties.get(key, {}), 0) for key in tool.required}
    return {**required_values, **example, **valid}


def _build_value(name: str, schema: Json, depth: int) -> Json:
    if not isinstance(schema, Mapping):
        return f"your {name}"
    for known in ("const", "default"):
        if known in schema:
            return schema[known]
    for several in ("enum", "examples"):
        if isinstance(values := schema.get(several), list) and values:
            return values[0]
    types = list_types(schema)
    if "string" in types or not types:
        return _BY_FORMAT.get(str(schema.get("format")), f"your {name}")
    if "object" in types:
        inner = select_branch(schema, "object")
        properties, required = inner.get("properties"), inner.get("required")
        if depth >= MAX_DEPTH or not isinstance(properties, Mapping) or not isinstance(required, list):
            return {}
        return {key: _build_value(key, properties.get(key, {}), depth + 1) for key in required}
    if "array" in types:
        inner = select_branch(schema, "array")
        items, least = inner.get("items"), inner.get("minItems")
        count = max(1, min(least, MAX_ITEMS)) if isinstance(least, int) else 1
        return [] if items is None or depth >= MAX_DEPTH else [_build_value(name, items, depth + 1)] * count
    return next(
        (_clamp_to_bounds(_BY_TYPE[kind], schema) for kind in sorted(types - {"null"}) if kind in _BY_TYPE), None
    )


def _clamp_to_bounds(default: Json, schema: Mapping[str, Json]) -> Json:
    """Return ``default`` if it is within the bounds of ``schema``. Otherwise return a number at, next to or between the
    bounds."""
    bounds: dict[str, float] = {key: schema[key] for key in _BOUNDS if type(schema.get(key)) in (int, float)}
    bounds = {key: bound for key, bound in bounds.items() if abs(bound) <= MAX_BOUND}
    near = [bound + step for step in (0, 1, -1) for bound in bounds.values()]
    between = [sum(bounds.values()) / 2] if isinstance(default, float) else []
    numbers = [number for number in [default, *near, *between] if isinstance(default, float) or number == int(number)]
    return next((number for number in numbers if all(_BOUNDS[key](number, bounds[key]) for key in bounds)), default)


_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
}
