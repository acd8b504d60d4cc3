"""What both engines are asked with: our parsers' names, and the tools of a request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.parsing.formats import FORMATS
from adapter.tools.tool import Tool, ToolSet

NAME = "adapter"
"""Of the parsers that read what the model's template and name tell; those of one format have its name behind it."""


def parser_names() -> dict[str, str | None]:
    """Our parsers by name, and the format that each reads: None is the model's."""
    return {NAME: None} | {f"{NAME}_{format}": format for format in FORMATS}


def tools_from_request(given: Iterable[Any] | None) -> ToolSet:
    """The tools of a request of any of an engine's endpoints, which are pydantic models."""
    return _tool_set(tuple(tool.model_dump_json() for tool in given or ()))


@lru_cache(maxsize=64)
def _tool_set(definitions: tuple[str, ...]) -> ToolSet:
    """Kept, because an agent offers the same tools with each request, and both of an answer's parsers ask."""
    return ToolSet([_tool(json.loads(definition)) for definition in definitions])


def _tool(definition: JsonObject) -> Tool:
    """A tool as the engine has let it pass; parameters that are no schema tell nothing."""
    try:
        return Tool.from_definition(definition)
    except UsageError:
        inner = definition.get("function") or definition
        return Tool.from_definition({"name": str(inner.get("name"))})
