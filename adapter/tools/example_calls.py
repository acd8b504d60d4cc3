"""Build example calls only from values in an invalid call, the conversation or the tool's schema."""

from __future__ import annotations

from collections.abc import Mapping

from adapter.core.events import Json, JsonObject
from adapter.tools.coercion import has_schema_type
from adapter.tools.tool import Tool


def build_example_call(tool: Tool, given: Mapping[str, Json] | None = None) -> JsonObject | None:
    """Return valid arguments for ``tool``: the required ones, and the valid ones in ``given``. Return None if a
    required argument's value is unknown, because a model would copy an invented value."""
    given = given or {}
    valid = {key: given[key] for key in given if has_schema_type(given[key], tool.properties.get(key, False))}
    known = {key: value for key in tool.required for value in _list_proposed(tool.properties.get(key))} | valid
    return {key: known[key] for key in tool.properties if key in known} if known.keys() >= {*tool.required} else None


def _list_proposed(schema: Json) -> list[Json]:
    """Return a schema's constant, default or only choice as a list with one value, or an empty list."""
    if not isinstance(schema, Mapping):
        return []
    choices = schema.get("enum")
    only = choices if isinstance(choices, list) and len(choices) == 1 else []
    return [*(schema[key] for key in ("const", "default") if key in schema), *only][:1]
