"""Describe a tool's parameters on one line, for prompts and error messages, without values that a model could copy."""

from __future__ import annotations

import json
from collections.abc import Mapping

from adapter.core.events import Json
from adapter.tools.coercion import get_type_name, list_required, list_types, select_branch
from adapter.tools.tool import Tool


def format_parameters(tool: Tool) -> str:
    """Return the parameters of ``tool``: ``path, start_line = 1, end_line?: integer``. A question mark means optional,
    and a parameter without a type is a string."""
    return ", ".join(_format_parameter(name, tool.properties, tool.required) for name in tool.properties)


def _format_parameter(name: str, properties: Mapping[str, Json], required: tuple[str, ...]) -> str:
    schema = properties[name]
    default = schema.get("default")
    optional = name not in required and default is None
    kind = describe_type(schema)
    # Strings have no type here, because small models would copy `"path": "string"`. A default implies its type.
    is_plain = kind == "string" or (default is not None and kind == get_type_name(default))
    text = name + ("?" if optional else "") + ("" if is_plain else f": {kind}")
    return text if default is None else f"{text} = {json.dumps(default, ensure_ascii=False)}"


def describe_type(schema: Json) -> str:
    """Return a parameter's type, or its choices."""
    if isinstance(schema, Mapping) and "enum" in schema:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    names = sorted(list_types(schema) - {"null"}) or ["any"]
    if names == ["array"]:
        return f"[{describe_type(select_branch(schema, 'array').get('items'))}]"
    if names == ["object"] and (members := select_branch(schema, "object").get("properties")):
        required = tuple(list_required(select_branch(schema, "object")))
        return "{" + ", ".join(_format_parameter(name, members, required) for name in members) + "}"
    return "|".join(names)
