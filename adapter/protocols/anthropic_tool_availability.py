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
        match block:
            case {"type": "tool_reference", "tool_name": str(name)}:
                deferred.discard(name)
            case {"type": "tool_addition", "tool": {"definition": dict(tool)}}:
                defined[str(tool.get("name"))] = tool
                deferred.discard(str(tool.get("name")))
            case {"type": "tool_addition", "tool": {"type": "tool_reference", "name": str(name)}}:
                deferred.discard(name)
            case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": str(name)}}:
                deferred.add(name)
    tools = [tool for tool in tools if str(tool.get("name")) not in defined]
    return [tool for tool in (*tools, *defined.values()) if str(tool.get("name")) not in deferred]


def describe_tool_change(block: JsonObject) -> str | None:
    """Return a note for the model if ``block`` adds or removes a tool, otherwise None."""
    match block:
        case {"type": "tool_reference", "tool_name": str(name)}:
            return f"The tool {name} can be called now."
        case {"type": "tool_addition", "tool": {"definition": {"name": str(name)}}}:
            return f"The tool {name} can be called from here on."
        case {"type": "tool_addition", "tool": {"type": "tool_reference", "name": str(name)}}:
            return f"The tool {name} can be called from here on."
        case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": str(name)}}:
            return f"The tool {name} can no longer be called."
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
