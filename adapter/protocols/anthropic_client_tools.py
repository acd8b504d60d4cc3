"""Definitions of Anthropic's client-side tools. Requests omit them, because Anthropic's models know their parameters.

Source: https://docs.anthropic.com/en/docs/agents-and-tools/tool-use (bash tool, text editor tool, memory tool) and the
commands of the memory tool in anthropic-sdk-python. Version 20250429 of the text editor removed ``undo_edit`` and
replaced ``insert`` by ``insert_text``.
"""

from __future__ import annotations

import re

from adapter.core.events import JsonObject

_INSERT_LINE = "For insert: the number of the line after which to insert the text; 0 inserts it at the beginning."
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_RANGE = {
    "type": "array",
    "items": _NUMBER,
    "description": "First and last line to show. Lines are numbered from 1; -1 is the last line.",
}


def define_client_tool(tool: JsonObject) -> JsonObject | None:
    """Return the full definition of a client-side tool, or None for other tools. ``tool`` is the tool in the request,
    which contains only its type and name.
    """
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
    commands = ["view", "create", "str_replace", "insert", *(["undo_edit"] if is_old else [])]
    text_parameter = "new_str" if is_old else "insert_text"
    properties: JsonObject = {
        "command": {"type": "string", "enum": commands},
        "path": {**_TEXT, "description": "The file or folder."},
        "file_text": {**_TEXT, "description": "For create: the content of the file."},
        "old_str": {
            **_TEXT,
            "description": "For str_replace: the text to replace. It must occur exactly once in the file.",
        },
        "new_str": {**_TEXT, "description": "For str_replace: the replacement text."},
        "insert_line": {
            **_NUMBER,
            "description": _INSERT_LINE,
        },
        "view_range": _RANGE,
    }
    properties[text_parameter] = {**_TEXT, "description": f"{_ALSO if is_old else ''}For insert: the text to insert."}
    return "View, create and edit text files.", _define_commands(properties, "path")


_ALSO = "For str_replace: the replacement text. "


def _define_memory(_: str) -> tuple[str, JsonObject]:
    properties: JsonObject = {
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert", "delete", "rename"]},
        "path": {**_TEXT, "description": "A file or folder in /memories. Not used by rename."},
        "view_range": _RANGE,
        "file_text": {**_TEXT, "description": "For create: the content of the file."},
        "old_str": {**_TEXT, "description": "For str_replace: the text to replace."},
        "new_str": {**_TEXT, "description": "For str_replace: the replacement text."},
        "insert_line": {
            **_NUMBER,
            "description": _INSERT_LINE,
        },
        "insert_text": {**_TEXT, "description": "For insert: the text to insert."},
        "old_path": {**_TEXT, "description": "For rename: the current path."},
        "new_path": {**_TEXT, "description": "For rename: the new path."},
    }
    return "Keep notes in files in /memories, which remain available in later conversations.", _define_commands(
        properties
    )


def _define_commands(properties: JsonObject, *required: str) -> JsonObject:
    return {"type": "object", "properties": properties, "required": ["command", *required]}


_DEFINITIONS = {"bash": _define_bash, "text_editor": _define_text_editor, "memory": _define_memory}
