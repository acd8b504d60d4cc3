"""Constrain the retry of a call to the tools that help and, for very small models, to values in the request.

For edits of short files, `adapter.agent.file_question` works better.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.requested_file_changes import (
    CHANGES,
    find_change_tools,
    find_needed_action,
    find_readers,
    find_started_action,
    find_text,
    find_unread_paths,
    has_any,
    list_paths_with_replaced_names,
)
from adapter.conversation.guardrails.requested_files import list_first_paths, list_target_paths
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.grammars.schema_ir import Choices
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.value_kinds import PATHS, find_value_kinds
from adapter.prompting.intent.verbs import is_stop_word
from adapter.tools.argument_synonyms import COMMAND, DESTINATION, NEW_TEXT, OLD_TEXT, SOURCE
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


MAX_DESTINATIONS = 200
"""Maximum number of paths that a constraint allows as the destination of a file."""

_INTERPRETERS = ("bash", "node", "perl", "php", "python", "python3", "ruby", "sh")
_PROGRAMS = "|".join(
    [*_INTERPRETERS, "cargo", "go", "gradle", "make", "mvn", "npm", "npx", "pytest", "tox", "uv", "yarn"]
)
_COMMAND = re.compile(
    rf"""(?:\b(?:run|execute|with|using|führe|mit|lance|avec|ejecuta|con|esegui)\s+[`'"]?|`)
    ((?:{_PROGRAMS})(?!\w|\.\w)(?:\s+(?!(?:and|or|then|to|in|on|for|with|please|und|et|y|e)\b)[\w./:=@-]*\w)*)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches a command in a request, after a word such as "run" or in backticks."""


def build_retry_constraint(
    client: ChatClient, format: str, history: CallHistory, tools: ToolSet, *, is_small: bool
) -> JsonObject:
    """Return the request fields that constrain an answer to a call of ``tools``. Return no fields if there are no
    tools, or if the server cannot constrain answers. ``format`` is the name of the call format. ``is_small`` is True
    for very small models."""
    from adapter.backends.constraint_fields import build_constraint_fields

    if not tools:
        return {}
    choices = find_named_values(history, tools, is_small=is_small)
    tools = require_texts(tools) if is_small else tools
    with suppress(UsageError):  # the grammar is too large or empty, so do not constrain
        return build_constraint_fields(client.endpoint.kind, tools, choices, format=format)
    return {}


def build_no_call_constraint(client: ChatClient) -> JsonObject:
    """Return the request fields that forbid calls, or no fields if the server cannot constrain answers."""
    from adapter.backends.constraint_fields import build_no_call_fields

    return build_no_call_fields(client.endpoint.kind)


def build_edit_constraint(client: ChatClient, format: str, history: CallHistory, tools: ToolSet) -> JsonObject:
    """Return the request fields that constrain the next answer of a very small model, or no fields.

    If the last call completed the requested change, the answer cannot contain another call. If the last edit failed or
    the change is incomplete, the answer must be the call that reads an unread file or, if the request asks for no edit,
    the requested action. If a lookup misspelt a path of the request, the answer must be a call to the same tool.
    """
    last = history.recent[-1] if history.recent else None
    if last is None:
        return {}
    is_change = last.ok and last.changes
    change_tools = find_change_tools(history, tools)
    if is_change and not change_tools and find_started_action(history):
        return build_no_call_constraint(client)
    if not (last.ok or last.changes) and any(f"mean '{path}'" in last.result for path in find_paths(history.request)):
        change_tools = (last.name,)
    elif not is_change and (last.ok or not find_text(last, OLD_TEXT)):
        return {}
    elif find_needed_action(history) in CHANGES and (is_change or len(find_quoted(history.request)) != 2):
        change_tools = find_readers(tools) if find_unread_paths(history) else ()
    elif is_change:
        return {}
    held_to = ToolSet(tools[name] for name in change_tools if name in tools)
    return build_retry_constraint(client, format, history, held_to, is_small=True)


def find_named_values(history: CallHistory, tools: ToolSet, *, is_small: bool = False) -> Choices:
    """Return the values that the arguments of a retried call may have: for path parameters, the paths in the request.

    If ``is_small`` is set, commands run in the current folder, a command that the request contains is the only one, and
    an edit replaces the first quoted string of the request with the second, if there are two.
    """
    paths, texts = _list_located_paths(history), find_quoted(history.request)
    changed = {value for call in history.recent if call.ok and call.changes for value in call.values}
    left = [path for path in paths if path not in changed] or list_paths_with_replaced_names(history) or paths
    unread = find_unread_paths(history) or left
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    source, command = next((path for path in left if not path.endswith("/")), ""), _find_command(history.request)
    for tool in tools.values():
        is_edit, is_move = has_any(tool, OLD_TEXT), has_any(tool, SOURCE) and has_any(tool, DESTINATION)
        for name, schema in tool.properties.items():
            if is_move and source and name in (*SOURCE, *DESTINATION):
                choices[tool.name, name] = [source] if name in SOURCE else _find_destinations(source, history.request)
            elif paths and ("_path_" in find_value_kinds(name, schema) or name in (*SOURCE, *DESTINATION)):
                choices[tool.name, name] = left if is_edit or tool.effect == "delete" else unread
            elif is_small and tool.effect == "execute" and find_value_kinds(name, schema) == {"_folder_"}:
                choices[tool.name, name] = ["."]
            elif is_small and tool.effect == "execute" and name in COMMAND and command:
                choices[tool.name, name] = [command]
            elif is_small and len(texts) == 2 and name in (*OLD_TEXT, *NEW_TEXT):
                choices[tool.name, name] = texts[:1] if name in OLD_TEXT else texts[1:]
    return choices


def _list_located_paths(history: CallHistory) -> list[str]:
    """Return the paths in the request. A path that does not exist is replaced by the one that an error suggests, if
    this is a file of the same name in a folder."""
    errors = [call for call in history.recent if not call.ok]
    suggested = find_paths("\n".join(call.result for call in errors))
    missing = {value for call in errors for value in call.values}
    return [
        next((each for each in suggested if path in missing and each.endswith(f"/{path}")), path)
        for path in list_target_paths(history.request)
    ]


def _find_command(request: str) -> str:
    """Return the command that a request contains, such as "python3 -m unittest", or "". An interpreter without
    arguments runs the first path of the request."""
    found = _COMMAND.search(request)
    if not found:
        return ""
    command, path = found[1].rstrip(".,:;"), next(iter(find_paths(request)), "")
    return f"{command} {path}" if command in _INTERPRETERS and path else command


def _find_destinations(source: str, request: str) -> list[str]:
    """Return the possible destinations if a request asks to move or copy the file ``source``: the other paths, and the
    words after ``source``, which may name a folder."""
    paths, rest = find_paths(request), request.partition(source)[2]
    for path in paths:
        rest = rest.replace(path, " ")
    words = (word for word in re.findall(r"\w[\w-]*", rest) if not is_stop_word(word.lower()))
    folders = [*(path.rstrip("/") for path in paths if path.endswith("/")), *words]
    name = source.rpartition("/")[2]
    moved = {source, *list_first_paths(request)} if source in list_first_paths(request) else {source}
    others = [path for path in paths if path not in moved and not path.endswith("/")]
    return list(dict.fromkeys([*others, *(f"{folder}/{name}" for folder in folders)]))[:MAX_DESTINATIONS] or paths


def require_texts(tools: ToolSet) -> ToolSet:
    """Return ``tools`` with simplified editing tools: their only parameters are the path, the old text and the new
    text, and all are required."""
    shown: list[Tool] = []
    for tool in tools.values():
        kept = {
            name: schema
            for name, schema in tool.properties.items()
            if name in (*OLD_TEXT, *NEW_TEXT) or find_value_kinds(name, schema) & PATHS
        }
        is_edit = has_any(tool, OLD_TEXT) and has_any(tool, NEW_TEXT)
        parameters = {"type": "object", "properties": kept, "required": list(kept)}
        shown.append(replace(tool, parameters=parameters, example=None) if is_edit else tool)
    return ToolSet(shown)
