"""Which of a request's tools are offered at its end: some wait for a search, others come and go with its messages.

Source: the types of anthropic-sdk-python (``BetaToolParam``: a tool with ``defer_loading`` is shown once a
``tool_reference`` names it; so do Claude Code and its search of tools) and
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages (``tool_addition`` and
``tool_removal``).
"""

from __future__ import annotations

from collections.abc import Iterator

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import objects_in


def offered_tools(given: Json, messages: list[Json]) -> list[JsonObject]:
    """All but those that nobody has named yet; those too where Anthropic's servers were to search for them."""
    tools = list(objects_in(given, "tools"))
    defined: dict[str, JsonObject] = {}
    is_searched = any(str(tool.get("type")).startswith("tool_search_tool_") for tool in tools)
    waiting = {str(tool.get("name")) for tool in tools if tool.get("defer_loading") and not is_searched}
    for block in _blocks(messages):
        match block:
            case {"type": "tool_reference", "tool_name": str(name)}:
                waiting.discard(name)
            case {"type": "tool_addition", "tool": {"definition": dict(tool)}}:
                defined[str(tool.get("name"))] = tool
                waiting.discard(str(tool.get("name")))
            case {"type": "tool_addition", "tool": {"type": "tool_reference", "name": str(name)}}:
                waiting.discard(name)
            case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": str(name)}}:
                waiting.add(name)
    tools = [tool for tool in tools if str(tool.get("name")) not in defined]
    return [tool for tool in (*tools, *defined.values()) if str(tool.get("name")) not in waiting]


def referenced_tools(block: JsonObject) -> str | None:
    """What such a block says to a model where it stands; None for other blocks."""
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


def _blocks(messages: list[Json]) -> Iterator[JsonObject]:
    """Those of messages, and those within results, in their order."""
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                yield block
                within = block.get("content")
                yield from (each for each in within if isinstance(each, dict)) if isinstance(within, list) else ()
