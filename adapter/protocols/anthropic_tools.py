"""Define Anthropic's client-side tools, and list the tools that the model may call next.

Requests omit the definitions of client-side tools, because Anthropic's models know their parameters. Source:
https://docs.anthropic.com/en/docs/agents-and-tools/tool-use (bash tool, text editor tool, memory tool) and the commands
of the memory tool in anthropic-sdk-python. Version 20250429 of the text editor removed ``undo_edit`` and replaced
``insert`` by ``insert_text``.

Tools can be deferred, and messages can add or remove tools. Source: the types of anthropic-sdk-python
(``BetaToolParam``: a tool with ``defer_loading`` is available once a ``tool_reference`` names it, as in Claude Code's
tool search) and https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
(``tool_addition`` and ``tool_removal``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import require_objects

_RANGE = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "First and last line to show. Lines are numbered from 1; -1 is the last line.",
}
_INSERT_LINE = {
    "type": "integer",
    "description": "For insert: the number of the line after which to insert the text; 0 inserts it at the beginning.",
}
_FILE_TEXT = "For create: the content of the file."


def define_client_tool(tool: JsonObject) -> JsonObject | None:
    """Return the full definition of ``tool`` if it is one of Anthropic's client-side tools, otherwise None."""
    match = re.fullmatch(r"(bash|text_editor|memory)_(\d{8})", str(tool.get("type")))
    if match is None:
        return None
    kind, version = match[1], match[2]
    description, parameters = _DEFINITIONS[kind](version)
    return {"name": tool.get("name") or kind, "description": description, "input_schema": parameters}


def _define_bash(_: str) -> tuple[str, JsonObject]:
    command = {"type": "string", "description": "The command to run. Required unless the tool is being restarted."}
    restart = {"type": "boolean", "description": "Set to true to restart the tool."}
    properties = {"command": command, "restart": restart}
    return "Run commands in a bash shell that keeps its state.", {"type": "object", "properties": properties}


def _define_text_editor(version: str) -> tuple[str, JsonObject]:
    is_old = version < "20250429"
    texts = {
        "path": "The file or folder.",
        "file_text": _FILE_TEXT,
        "old_str": "For str_replace: the text to replace. It must occur exactly once in the file.",
        "new_str": "For str_replace: the replacement text.",
    }
    if is_old:
        texts["new_str"] += " For insert: the text to insert."
    else:
        texts["insert_text"] = "For insert: the text to insert."
    last = ["undo_edit"] if is_old else []
    return "View, create and edit text files.", _define_commands(texts, last, "path")


def _define_memory(_: str) -> tuple[str, JsonObject]:
    texts = {
        "path": "A file or folder in /memories. Not used by rename.",
        "file_text": _FILE_TEXT,
        "old_str": "For str_replace: the text to replace.",
        "new_str": "For str_replace: the replacement text.",
        "insert_text": "For insert: the text to insert.",
        "old_path": "For rename: the current path.",
        "new_path": "For rename: the new path.",
    }
    description = "Keep notes in files in /memories, which remain available in later conversations."
    return description, _define_commands(texts, ["delete", "rename"])


def _define_commands(texts: Mapping[str, str], more: list[str], *required: str) -> JsonObject:
    """Return the parameter schema of a tool with several commands. ``texts`` describes its string parameters, ``more``
    has the commands that it adds to the common ones, and ``required`` its required parameters."""
    commands = ["view", "create", "str_replace", "insert", *more]
    properties: JsonObject = {"command": {"type": "string", "enum": commands}}
    properties |= {name: {"type": "string", "description": text} for name, text in texts.items()}
    properties |= {"insert_line": _INSERT_LINE, "view_range": _RANGE}
    return {"type": "object", "properties": properties, "required": ["command", *required]}


_DEFINITIONS = {"bash": _define_bash, "text_editor": _define_text_editor, "memory": _define_memory}


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
    """If ``block`` adds or removes a tool, return its name, its new definition or None, and whether the tool is
    available afterwards. Return None for other blocks."""
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
