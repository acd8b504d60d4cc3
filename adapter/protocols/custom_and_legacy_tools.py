"""Convert custom tools and legacy ``functions`` to function tools, and calls back to the client's type.

The input of a ``custom`` tool is one string, so the tool becomes a function with one string parameter. OpenAI replaced
``functions`` and ``function_call`` in November 2023; they become tools, and each answer calls at most one of them.
`adapter.protocols.choice_stream` converts calls back.

Source: https://platform.openai.com/docs/api-reference/chat/create, ``tools`` and the deprecated fields.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import RequestError, require_objects, require_type
from adapter.protocols.request_list_cache import build_once

INPUT = "input"
"""Name of the string parameter of a function that replaces a custom tool."""
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_RESULT_ROLES = ("ipython", "observation")
"""Roles of tool results in the templates of Llama and GLM, which some clients send."""
_TEMPLATE_ROLES = ("control",)
"""Roles that only a model's template knows: Granite's switch for thinking."""


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """The kinds of tools that the client defined, which determine the kinds of calls that it expects.

    ``custom`` has the names of custom tools. ``is_legacy`` is True if the client expects ``function_call`` instead of
    ``tool_calls``.
    """

    custom: frozenset[str] = frozenset()
    is_legacy: bool = False

    def build_call(self, index: int, call_id: str, name: str, arguments: str) -> JsonObject:
        """Return the delta for a call. ``arguments`` is JSON text."""
        if self.is_legacy:
            return {"function_call": {"name": name, "arguments": arguments}}
        call: JsonObject = {"index": index, "id": call_id, "type": "function"}
        if name in self.custom:
            return {
                "tool_calls": [
                    {**call, "type": "custom", "custom": {"name": name, INPUT: get_text_argument(arguments, INPUT)}}
                ]
            }
        return {"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]}


FUNCTIONS = ToolTypes()
"""The types of a request whose tools are all functions."""


def convert_tools_to_functions(body: JsonObject, start: int = 0) -> tuple[JsonObject, ToolTypes]:
    """Convert all tools and calls of a request to functions, and return the request and the original types.

    ``start`` is the index of the first message that may contain calls of other types. Raises RequestError for an
    invalid tool or message.
    """
    is_legacy = bool(body.get("functions")) and not body.get("tools")
    custom = build_once(body.get("tools"), "custom", lambda: frozenset(_list_custom_names(body.get("tools"))))
    messages = body.get("messages")
    new_messages = messages[start:] if isinstance(messages, list) else []
    _check_roles(new_messages, start)
    if not (is_legacy or custom or any(map(_has_other_calls, new_messages))):
        return body, FUNCTIONS
    request = {key: value for key, value in body.items() if key not in ("functions", "function_call")}
    if is_legacy:
        functions = require_objects(body["functions"], "functions")
        request["tools"] = [{"type": "function", "function": each} for each in functions]
        request["tool_choice"] = _convert_legacy_choice(body.get("function_call"))
        request["parallel_tool_calls"] = False
    elif custom:
        request["tools"] = [_convert_to_function(each) for each in request["tools"]]
        match body.get("tool_choice"):
            case {"type": "custom", "custom": {"name": name}}:
                request["tool_choice"] = {"type": "function", "function": {"name": name}}
            case {"type": "allowed_tools", "allowed_tools": {"tools": list(tools)} as allowed}:
                converted = [_convert_to_function(each) if isinstance(each, dict) else each for each in tools]
                request["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {**allowed, "tools": converted}}
    if isinstance(messages, list):
        request["messages"] = _convert_legacy_messages(messages)
    return request, ToolTypes(custom, is_legacy) if custom or is_legacy else FUNCTIONS


def _list_custom_names(tools: Json) -> list[str]:
    definitions = tools if isinstance(tools, list) else []
    custom = [each.get("custom") for each in definitions if isinstance(each, dict) and each.get("type") == "custom"]
    return [require_type(str, each.get("name"), "tools.custom.name") for each in custom if isinstance(each, dict)]


def _check_roles(messages: Sequence[Json], start: int) -> None:
    """Raise RequestError for a message with an unknown role."""
    for index, message in enumerate(messages, start):
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(role, str) and role not in _ROLES + _RESULT_ROLES + _TEMPLATE_ROLES:
            path = f"messages[{index}].role"
            raise RequestError(f"{path} must be one of {', '.join(_ROLES)}, got {role[:80]!r}", path)


def _has_other_calls(message: Json) -> bool:
    if not isinstance(message, dict):
        return False
    calls = message.get("tool_calls")
    is_custom = isinstance(calls, list) and any(isinstance(call, dict) and "custom" in call for call in calls)
    return is_custom or bool(message.get("function_call")) or message.get("role") in _RESULT_ROLES


def _convert_to_function(tool: JsonObject) -> JsonObject:
    about = tool.get("custom")
    if tool.get("type") != "custom" or not isinstance(about, dict):
        return tool
    description = require_type(str, about.get("description"), "tools.custom.description")
    function = build_text_function(about.get("name"), description, INPUT, describe_text(about.get("format")))
    return {"type": "function", "function": function}


def build_text_function(name: Json, description: str, parameter: str, text_description: str) -> JsonObject:
    """Return the definition of a function whose only argument is the string ``parameter``."""
    properties = {parameter: {"type": "string", "description": text_description}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    return {"name": name, "description": description, "parameters": parameters}


def describe_text(format: Json) -> str:
    """Return the description of a custom tool's parameter, including its grammar, which this server cannot enforce."""
    match format:
        case {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}} | {
            "type": "grammar",
            "syntax": syntax,
            "definition": definition,
        }:
            return f"The text itself. It must follow this grammar ({syntax}):\n{definition}"
    return "The text itself."


def _convert_legacy_choice(choice: Json) -> Json:
    match choice:
        case None | "auto" | "none":
            return choice
        case {"name": str(name)}:
            return {"type": "function", "function": {"name": name}}
    raise RequestError(f'function_call must be "auto", "none" or {{"name": ...}}, got {str(choice)[:80]!r}')


def _convert_legacy_messages(messages: list[Json]) -> list[Json]:
    """Convert legacy calls and results, and custom tools' calls. A legacy result belongs to its function's last
    call."""
    converted: list[Json] = []
    last: dict[Json, str] = {}
    for index, message in enumerate(messages):
        match message:
            case {"function_call": dict(call), **rest}:
                call_id = last[str(call.get("name"))] = f"call_{index}_{call.get('name')}"
                converted.append({**rest, "tool_calls": [{"id": call_id, "type": "function", "function": call}]})
            case {"role": "function"}:
                name = str(message.get("name"))
                converted.append({**message, "role": "tool", "tool_call_id": last.get(name, f"call_{name}")})
            case {"role": "ipython" | "observation"}:
                converted.append({**message, "role": "tool"})
            case {"tool_calls": list(calls)}:
                converted.append({**message, "tool_calls": [_convert_to_function_call(each) for each in calls]})
            case _:
                converted.append(message)
    return converted


def _convert_to_function_call(call: Json) -> Json:
    about = call.get("custom") if isinstance(call, dict) else None
    if not isinstance(about, dict):
        return call
    arguments = json.dumps({INPUT: about.get(INPUT)}, ensure_ascii=False)
    return {"id": call.get("id"), "type": "function", "function": {"name": about.get("name"), "arguments": arguments}}


def get_text_argument(arguments: str, name: str) -> str:
    """Return the string argument ``name`` of the JSON object ``arguments``, or ``arguments`` itself if it is
    missing."""
    text = read_object(arguments).get(name)
    return text if isinstance(text, str) else arguments


def read_object(arguments: str) -> JsonObject:
    """Return the JSON object in ``arguments``, or an empty object for any other value."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
