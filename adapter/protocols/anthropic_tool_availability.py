"""Select the tools that the model may call next: tools can be deferred, and messages can add or remove tools.

Source: the types of anthropic-sdk-python (``BetaToolParam``: a tool with ``defer_loading`` is available once a
``tool_reference`` names it, as in Claude Code's tool search) and
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages (``tool_addition`` and
``tool_removal``).
"""

from __future__ import annotations

from collections.abc import Iterator

from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import require_objects


def list_available_tools(definitions: Json, messages: list[Json]) -> list[JsonObject]:
    """Return the tools that may be called after ``messages``.

    A deferred tool is included only if a message references it, or if the request uses the tool search of Anthropic's
    servers, which does not exist here.
    """
    tools = list(require_objects(definitions, "tools"))
    defined: dict[str, JsonObject] = {}
    is_searched = any(str(tool.get("type")).startswith("tool_search_tool_") for tool in tools)
    deferred = {str(tool.get("name")) for tool in tools if tool.get("defer_loading") and not is_searched}
    for block in _iter_blocks(messages):
        if change := _parse_tool_change(block):
            name, definition, is_available = change
            if definition is not None:
                defined[name] = definition
            (deferred.discard if is_available else deferred.add)(name)
    tools = [tool for tool in tools if str(tool.get("name")) not in defined]
    return [tool for tool in (*tools, *defined.values()) if str(tool.get("name")) not in deferred]


def describe_tool_change(block: JsonObject) -> str | None:
    """Return a note for the model if ``block`` adds or removes a tool, otherwise None."""
    if (change := _parse_tool_change(block)) is None:
        return None
    name, _, is_available = change
    return f"The tool {name} can {'be called from here on' if is_available else 'no longer be called'}."


def _parse_tool_change(block: JsonObject) -> tuple[str, JsonObject | None, bool] | None:
    """Return the name and the new definition, if any, of a tool, and whether it is available from ``block`` on. Return
    None for other blocks."""
    match block:
        case {"type": "tool_reference", "tool_name": str(name)}:
            return name, None, True
        case {"type": "tool_addition", "tool": {"definition": {"name": str(name)} as definition}}:
            return name, definition, True
        case {"type": "tool_addition" | "tool_removal" as kind, "tool": {"type": "tool_reference", "name": str(name)}}:
            return name, None, kind == "tool_addition"
    return None


def _iter_blocks(messages: list[Json]) -> Iterator[JsonObject]:
    """Yield the blocks of all messages in order, including blocks inside tool results."""
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                yield block
                inner = block.get("content")
                yield from (each for each in inner if isinstance(each, dict)) if isinstance(inner, list) else ()
