"""Limit the arguments of constrained calls to values found in the conversation or supplied by the host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from adapter.conversation.message_content import get_text
from adapter.core.callback_checks import build_callback_error, require_items
from adapter.core.events import Json
from adapter.grammars.schema_ir import Choices
from adapter.prompting.intent.candidate_values import MAX_CHOICES
from adapter.prompting.intent.text_values import find_paths, find_quoted, find_runs
from adapter.prompting.intent.value_kinds import PATHS, find_value_kinds
from adapter.tools import argument_synonyms
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

_TEXTS = {
    *argument_synonyms.OLD_TEXT,
    *argument_synonyms.NEW_TEXT,
    *argument_synonyms.PATTERN,
    *argument_synonyms.COMMAND,
} - {"from", "to"}
"""Names of arguments whose value is text, a pattern or a command, which users put in quotes."""


class Ground(Protocol):
    """A callback that returns the values that a tool's argument may take. None allows any value; an empty list allows
    no value.

    ``messages`` is the conversation so far, in OpenAI's format. The function is called for each argument in each
    request, so it must be fast. For an argument inside an object or list, it gets the inner name. If it raises an
    exception or returns a value of another type, the request is rejected.
    """

    def __call__(self, tool: str, argument: str, messages: Sequence[Mapping[str, Json]]) -> Sequence[str] | None: ...


def ground_conversation(
    tools: ToolSet, messages: Sequence[Mapping[str, Json]], ground: Ground | None = None
) -> Choices:
    """Return the allowed values for the arguments of a client's tools, from ``ground`` or else from the conversation.

    Tools that delete, move, overwrite or execute get only values from the conversation, even if ``ground`` returns
    others.
    """
    texts = [(message.get("role"), get_text(message.get("content"))) for message in messages]
    request = next((text for role, text in reversed(texts) if role == "user"), "")
    results = "\n".join(text for role, text in texts if role == "tool")
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    every = ((tool, *argument) for tool in tools.values() for argument in _iter_arguments(tool.parameters))
    for tool, name, schema in every:
        named = _find_named(tool, name, schema, request, results) if ground is None or tool.is_risky else None
        if ground is not None and (values := _ask_ground(ground, tool.name, name, messages)) is not None:
            texts_so_far = f"{request}\n{results}"
            named = [
                each
                for each in values
                if named is None or re.search(rf"(?<!\w){re.escape(each)}(?!\w)", texts_so_far) is not None
            ]
        if named is not None:
            choices[tool.name, name] = list(dict.fromkeys(named))[:MAX_CHOICES]
    return choices


def _ask_ground(
    ground: Ground, tool: str, argument: str, messages: Sequence[Mapping[str, Json]]
) -> Sequence[str] | None:
    try:
        values = ground(tool, argument, messages)
    except Exception as error:
        raise build_callback_error(ground, "ground", error, "No request was sent to the model") from error
    if values is not None:
        require_items(ground, "ground", values, str, "a list of strings, or None")
    return values


def _find_named(tool: Tool, name: str, schema: Json, request: str, results: str) -> list[str] | None:
    if name in _TEXTS:
        return find_quoted(request) or find_runs(request)
    if find_value_kinds(name, schema) & PATHS or name in (*argument_synonyms.SOURCE, *argument_synonyms.DESTINATION):
        paths = find_paths(request) or find_paths(results)
        return paths if paths or tool.is_risky else None
    return None


def _iter_arguments(schema: Json) -> Iterator[tuple[str, Json]]:
    """Yield the name and schema of each property in a JSON Schema, also inside nested lists and objects."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, inner in (properties if isinstance(properties, Mapping) else {}).items():
        yield name, inner
        yield from _iter_arguments(inner)
    if isinstance(schema, Mapping) and "items" in schema:
        yield from _iter_arguments(schema["items"])
