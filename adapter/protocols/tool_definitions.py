"""Tool definitions as clients send them, checked as far as everything after relies on it.

Not by the metaschema: clients send ``"type": "any"`` and ``"required": true``, which
model servers let pass, and which do no harm.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import RequestError, objects_in, require_type
from adapter.tools.coercion import schema_types
from adapter.tools.schema_refs import SCHEMA, SCHEMAS, SCHEMAS_BY_NAME, dereference
from adapter.tools.tool import Tool, ToolSet

MAX_TOOLS = 4_096
"""In one request: their definitions alone are more than any model of today reads."""

CACHE_SIZE = 32
"""Sets of tools whose checked definitions and prompts are cached: they come with every request of a conversation."""
MAX_CACHED_CHARACTERS = 250_000
"""Of definitions; longer ones are checked again in each request, so that the cache stays within 8 MB."""


def parse_tool_set(definitions: Json) -> ToolSet:
    """The tools of a request. Raises RequestError for what describes none, with the place at fault."""
    listed = objects_in(definitions, "tools")
    if len(listed) > MAX_TOOLS:
        raise RequestError(f"'tools' has {len(listed):,} tools; at most {MAX_TOOLS:,} are taken: send fewer", "tools")
    text = json.dumps(listed, ensure_ascii=False)
    check = _check_tools if len(text) <= MAX_CACHED_CHARACTERS else _check_tools.__wrapped__
    return check(text)


@lru_cache(CACHE_SIZE)
def _check_tools(definitions: str) -> ToolSet:
    return ToolSet(_tool(each, f"tools[{index}]") for index, each in enumerate(json.loads(definitions)))


def _tool(definition: JsonObject, place: str) -> Tool:
    inner = definition.get("function", definition)
    if isinstance(inner, dict):
        for key in ("parameters", "input_schema", "inputSchema"):
            if inner.get(key) is not None:
                inner[key] = with_types(
                    checked_schema(require_type(dict, inner[key], f"{place}.{key}"), f"{place}.{key}")
                )
        require_type(str, inner.get("description"), f"{place}.description")
    require_type(dict, definition.get("annotations"), f"{place}.annotations")
    try:
        return Tool.from_definition(definition)
    except UsageError as error:
        raise RequestError(f"{place}: {error}", "tools") from error


def with_types(schema: JsonObject) -> JsonObject:
    """``schema`` with the types of its parameters beside the references that hide them: chat templates show them."""
    named = {key: schema[key] for key in ("$defs", "definitions") if isinstance(schema.get(key), dict)}
    properties = dereference(schema).get("properties") or {} if named else {}
    for name, found in properties.items():
        each, types = schema["properties"][name], sorted(schema_types(found))
        if "type" not in each and types:
            each["type"] = types if len(types) > 1 else types[0]
    return schema


def checked_schema(schema: JsonObject, place: str) -> JsonObject:
    """``schema`` with schemas where schemas belong, those that say nothing being ``{}``. Raises RequestError."""
    made = {key: value for key, value in schema.items() if value is not None or key == "const"}
    for key in SCHEMAS_BY_NAME:
        if key in made:
            named = require_type(dict, made[key], f"{place}.{key}")
            made[key] = {name: _schema(each, f"{place}.{key}.{name}") for name, each in named.items()}
    for key in SCHEMAS:
        if key in made:
            made[key] = [_schema(each, f"{place}.{key}") for each in require_type(list, made[key], f"{place}.{key}")]
    for key in SCHEMA:
        if key in made and not isinstance(made[key], bool):
            value: Any = made[key]
            if isinstance(value, list):  # how tuples were written before prefixItems
                made[key] = [_schema(each, f"{place}.{key}") for each in value]
            else:
                made[key] = checked_schema(require_type(dict, value, f"{place}.{key}"), f"{place}.{key}")
    if isinstance(made.get("required"), bool):  # how a property said it of itself before 2013
        del made["required"]
    for key in ("required", "type"):
        if key in made and not isinstance(made[key], str if key == "type" else list):
            require_type(list, made[key], f"{place}.{key}")
        if isinstance(made.get(key), list):
            made[key] = [require_type(str, each, f"{place}.{key}") for each in made[key]]
    require_type(list, made.get("enum"), f"{place}.enum")
    for key in ("description", "title", "pattern", "format", "$ref"):
        require_type(str, made.get(key), f"{place}.{key}")
    return made


def _schema(value: Json, place: str) -> JsonObject:
    """``true`` allows everything; ``false``, which allows nothing, is not worth a special case."""
    return {} if isinstance(value, bool) else checked_schema(require_type(dict, value, place), place)
