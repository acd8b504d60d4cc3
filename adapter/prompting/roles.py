"""Which of the usual file tools a foreign tool is, by the names of the tool and of its parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapter.tools import customary
from adapter.tools.definition import Tool
from adapter.values.lazy_pattern import lazy_pattern

_ANY_PATH = (*customary.PATH, *customary.DIRECTORY)
_ROLES: tuple[tuple[str, str, dict[str, Sequence[str]]], ...] = (
    (
        "apply_edit",
        r"",
        {"path": customary.PATH, "old_text": customary.OLD_TEXT, "new_text": customary.NEW_TEXT},
    ),
    ("write_file", r"write|create|save|file", {"path": customary.PATH, "content": customary.CONTENT}),
    ("run_command", r"", {"command": customary.COMMAND}),
    ("find_files", r"glob|find", {"pattern": customary.PATTERN}),
    ("grep_search", r"grep|search|code|rg", {"pattern": customary.PATTERN, "path": _ANY_PATH}),
    ("grep_search", r"grep|search|code|rg", {"pattern": customary.PATTERN}),
    ("list_directory", r"list|ls|dir|tree", {"path": _ANY_PATH}),
    ("read_file", r"read|view|open|show|cat|get_?file$", {"path": customary.PATH}),
)
_OTHER = lazy_pattern(r"(?i)delete|remove|move|rename|copy|download|upload|web|url")


def role_of(tool: Tool) -> tuple[str, dict[str, str]] | None:
    """The usual name of what it does, and its own names of the usual parameters; None for what is no such tool."""
    if _OTHER.search(tool.name):
        return None
    for role, pattern, parameters in _ROLES:
        found = {usual: _first(tool, names) for usual, names in parameters.items()}
        own = {usual: name for usual, name in found.items() if name}
        is_whole = len(own) == len(parameters) and set(tool.required) <= set(own.values())
        if is_whole and re.search(f"(?i){pattern}", tool.name):
            return role, own
    return None


def _first(tool: Tool, names: Sequence[str]) -> str:
    plain = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): name for name in tool.properties}
    return next((plain[name] for name in names if name in plain), "")
