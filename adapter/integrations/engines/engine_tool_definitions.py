"""Convert the tool definitions in an engine's request, for both engines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


def convert_request_tools(tools: Iterable[Any] | None) -> ToolSet:
    """Convert the tools in an engine's request, which are pydantic models, to a `ToolSet`."""
    return _build_tool_set(tuple(tool.model_dump_json() for tool in tools or ()))


@lru_cache(maxsize=64)
def _build_tool_set(definitions: tuple[str, ...]) -> ToolSet:
    """Build a tool set from definitions as JSON text. The result is cached, because an agent sends the same tools with
    each request, and both parsers of a response need them."""
    return ToolSet([_convert_tool(json.loads(definition)) for definition in definitions])


def _convert_tool(definition: JsonObject) -> Tool:
    """Convert a tool definition. If it is invalid, only the tool's name is kept."""
    try:
        return Tool.from_definition(definition)
    except UsageError:
        function = definition.get("function") or definition
        return Tool.from_definition({"name": str(function.get("name"))})
