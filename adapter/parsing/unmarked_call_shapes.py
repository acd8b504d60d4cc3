"""Recognize calls that are written as JSON without markers, by their keys and the session's tools."""

from __future__ import annotations

import re

from adapter.core.events import Json
from adapter.core.json.strict import DecodedJson as Value
from adapter.tools.decoded_json_calls import (
    ARGUMENT_KEYS,
    CALL_TYPES,
    TOOL_KEYS,
    find_container_key,
    find_flat_arguments,
    find_name_key,
    looks_like_call,
    lower_keys,
)
from adapter.tools.tool_set import ToolSet

_NAME = re.compile(r'[\[\s]*\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,200})"\s*,')


def names_tool(text: str, tools: ToolSet) -> bool:
    """Return whether ``text``, an incomplete value, begins with the name of a tool in ``tools``."""
    name_match = _NAME.match(text)
    return name_match is not None and tools.match(name_match.group(1)) is not None


def has_only_calls(values: list[Value], tools: ToolSet) -> bool:
    """Return whether all ``values`` are calls. If at least one is, any object with a tool's name counts as a (damaged)
    call."""
    are_calls = [is_unmarked_call(each.value, tools) for each in values]
    return any(are_calls) and all(
        is_call or _names_tool(each.value, tools) for is_call, each in zip(are_calls, values, strict=True)
    )


def _names_tool(item: Json, tools: ToolSet) -> bool:
    key = find_name_key(item, tools) if isinstance(item, dict) else None
    return key is not None and item[key] in tools


def has_damaged_name(value: Value, tools: ToolSet) -> bool:
    """Return whether ``value`` is a repaired call whose name contains more of the call: a tool's name, a quote and
    other text."""
    key = find_name_key(value.value, tools) if value.fixes and isinstance(value.value, dict) else None
    name, quote, _ = value.value[key].partition('"') if key is not None else ("", "", "")
    return quote != "" and name in tools


def is_unmarked_call(value: Json, tools: ToolSet) -> bool:
    """Return whether ``value``, or every item of a list, is a call written without markers."""
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        looks_like_call(item) or _is_named_call(item, tools) or _is_flat_call(item, tools) or _is_container(item, tools)
        for item in items
    )


def _is_container(item: Json, tools: ToolSet) -> bool:
    if not isinstance(item, dict):
        return False
    return find_container_key(item, tools) is not None or lower_keys(item, tools) is not None


def _is_named_call(item: Json, tools: ToolSet) -> bool:
    only, value = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else ("", None)
    return only in tools and isinstance(value, dict)


def _is_flat_call(item: Json, tools: ToolSet) -> bool:
    """Return whether ``item`` is a call with the arguments next to the name, including all required ones. If there are
    no arguments, the item's type must announce a call."""
    if not isinstance(item, dict):
        return False
    key = find_name_key(item, tools)
    tool = tools.get(str(item[key]).strip()) if key else None
    if tool is None or key is None or key in tool.properties:
        return False
    if any(isinstance(item.get(key), dict) and key not in tool.properties for key in ARGUMENT_KEYS):
        return True
    arguments = find_flat_arguments(item, key, tool).keys()
    is_announced = bool(arguments) or item.get("type") in CALL_TYPES or key not in ("name", *TOOL_KEYS)
    return is_announced and tool.accepts(arguments)
