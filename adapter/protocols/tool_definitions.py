"""Parse the tool definitions sent by clients, and validate everything that later code relies on.

Schemas are not checked against the JSON Schema metaschema, because some clients send ``"type": "any"`` or ``"required":
true``. These are harmless, and model servers accept them.
"""

from __future__ import annotations

import json
import marshal
from functools import lru_cache, partial
from typing import Any

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import RequestError, require_objects, require_type
from adapter.protocols.request_list_cache import build_once
from adapter.tools.coercion import list_types
from adapter.tools.schema_refs import SCHEMA, SCHEMAS, SCHEMAS_BY_NAME, dereference, follow_ref, merge_all_of
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

MAX_TOOLS = 4_096
"""Maximum number of tools in a request. The definitions of more tools would exceed every model's context."""

CACHE_SIZE = 32
"""Number of tool sets whose validated definitions and prompts are cached, because clients repeat them in each
request."""
MAX_CACHED_CHARACTERS = 250_000
"""Maximum length of definitions that are cached, in characters. It limits the cache to 8 MB."""
NO_REFERENCES = 2
"""Version of marshal that encodes equal values as equal bytes."""


def parse_tool_set(definitions: Json) -> ToolSet:
    """Return the tools of a request. Raises RequestError, which names the path of the invalid definition."""
    return build_once(definitions, "tools", partial(_parse_tool_set, definitions))


def _parse_tool_set(definitions: Json) -> ToolSet:
    tools = require_objects(definitions, "tools")
    if len(tools) > MAX_TOOLS:
        raise RequestError(f"'tools' has {len(tools):,} tools, and the maximum is {MAX_TOOLS:,}; send fewer", "tools")
    encoded = marshal.dumps(tools, NO_REFERENCES)  # a quarter of the time of JSON
    check = _check_tools if len(encoded) <= MAX_CACHED_CHARACTERS else _check_tools.__wrapped__
    return check(encoded)


@lru_cache(CACHE_SIZE)
def _check_tools(encoded: bytes) -> ToolSet:
    definitions = json.loads(json.dumps(marshal.loads(encoded)))
    return ToolSet(_parse_tool(each, f"tools[{index}]") for index, each in enumerate(definitions))


def _parse_tool(definition: JsonObject, path: str) -> Tool:
    inner = definition.get("function", definition)
    if isinstance(inner, dict):
        for key in ("parameters", "input_schema", "inputSchema"):
            if inner.get(key) is not None:
                schema = check_schema(require_type(dict, inner[key], f"{path}.{key}"), f"{path}.{key}")
                inner[key] = with_types(schema)
        require_type(str, inner.get("description"), f"{path}.description")
    require_type(dict, definition.get("annotations"), f"{path}.annotations")
    try:
        return Tool.from_definition(definition)
    except UsageError as error:
        raise RequestError(f"{path}: {error}", "tools") from error


def with_types(schema: JsonObject) -> JsonObject:
    """Copy the type of each referenced schema next to its ``$ref``, because chat templates show only ``type``."""
    named = {key: schema[key] for key in ("$defs", "definitions") if isinstance(schema.get(key), dict)}
    if "$ref" in schema:  # a recursive model of pydantic
        schema = {**merge_all_of({}, [follow_ref(schema, schema)]), **named}
    properties = dereference(schema).get("properties") or {} if named else {}
    for name, each in (schema.get("properties") or {}).items():
        types = sorted(list_types(properties.get(name)))
        if "type" not in each and types:
            each["type"] = types if len(types) > 1 else types[0]
    return schema


def check_schema(schema: JsonObject, path: str) -> JsonObject:
    """Return a normalized copy of ``schema``. Raises RequestError if its structure is invalid."""
    checked = {key: value for key, value in schema.items() if value is not None or key == "const"}
    for key in SCHEMAS_BY_NAME:
        if key in checked:
            named = require_type(dict, checked[key], f"{path}.{key}")
            checked[key] = {name: _check_subschema(each, f"{path}.{key}.{name}") for name, each in named.items()}
    for key in SCHEMAS:
        if key in checked:
            checked[key] = [
                _check_subschema(each, f"{path}.{key}") for each in require_type(list, checked[key], f"{path}.{key}")
            ]
    for key in SCHEMA:
        if key in checked and not isinstance(checked[key], bool):
            value: Any = checked[key]
            if isinstance(value, list):  # tuples, before prefixItems
                checked[key] = [_check_subschema(each, f"{path}.{key}") for each in value]
            else:
                checked[key] = check_schema(require_type(dict, value, f"{path}.{key}"), f"{path}.{key}")
    if isinstance(checked.get("required"), bool):  # the flag of a single property in schemas before 2013
        del checked["required"]
    for key in ("required", "type"):
        if key in checked and not isinstance(checked[key], str if key == "type" else list):
            require_type(list, checked[key], f"{path}.{key}")
        if isinstance(checked.get(key), list):
            checked[key] = [require_type(str, each, f"{path}.{key}") for each in checked[key]]
    require_type(list, checked.get("enum"), f"{path}.enum")
    for key in ("description", "title", "pattern", "format", "$ref"):
        require_type(str, checked.get(key), f"{path}.{key}")
    return checked


def _check_subschema(value: Json, path: str) -> JsonObject:
    """Check a subschema. A boolean, even the rare ``false``, becomes an empty schema, which allows everything."""
    return {} if isinstance(value, bool) else check_schema(require_type(dict, value, path), path)
