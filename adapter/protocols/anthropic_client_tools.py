"""Definitions of Anthropic's client-side tools. Requests omit them, because Anthropic's models know their parameters.

Source: https://docs.anthropic.com/en/docs/agents-and-tools/tool-use (bash tool, text editor tool, memory tool) and the
commands of the memory tool in anthropic-sdk-python. Version 20250429 of the text editor removed ``undo_edit`` and
replaced ``insert`` by ``insert_text``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapter.core.events import JsonObject

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
    """Return the full definition of a client-side ``tool``, which requests omit, or None for other tools."""
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
    """Return the parameters of a tool with several commands. ``texts`` describes the parameters that are strings, and
    ``more`` are the commands that not every such tool has."""
    commands = ["view", "create", "str_replace", "insert", *more]
    properties: JsonObject = {"command": {"type": "string", "enum": commands}}
    properties |= {name: {"type": "string", "description": text} for name, text in texts.items()}
    properties |= {"insert_line": _INSERT_LINE, "view_range": _RANGE}
    return {"type": "object", "properties": properties, "required": ["command", *required]}


_DEFINITIONS = {"bash": _define_bash, "text_editor": _define_text_editor, "memory": _define_memory}
