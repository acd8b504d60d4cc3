"""Tools of a chat that are no functions, or functions as chats had them before 2023-11, as functions of today.

A ``custom`` tool takes one text, so it is a function of one string; ``functions`` and ``function_call`` are tools of
which an answer calls one. What comes back is put in the form in which it was asked for (`adapter.protocols.openai_choice`).

Source: https://platform.openai.com/docs/api-reference/chat/create, ``tools`` and the deprecated fields.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import RequestError, objects_in, require_type

INPUT = "input"


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """``custom``: names of the tools that take a text. ``is_legacy``: calls are ``function_call``."""

    custom: frozenset[str] = frozenset()
    is_legacy: bool = False

    def call(self, index: int, call_id: str, name: str, arguments: str) -> JsonObject:
        """The delta that hands on a call, whose ``arguments`` are JSON."""
        if self.is_legacy:
            return {"function_call": {"name": name, "arguments": arguments}}
        call: JsonObject = {"index": index, "id": call_id, "type": "function"}
        if name in self.custom:
            return {"tool_calls": [{**call, "type": "custom", "custom": {"name": name, INPUT: _text(arguments)}}]}
        return {"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]}


FUNCTIONS = ToolTypes()


def tools_as_functions(body: JsonObject) -> tuple[JsonObject, ToolTypes]:
    """The request with functions alone. Raises RequestError for definitions that are none."""
    is_legacy = bool(body.get("functions")) and not body.get("tools")
    custom = frozenset(_custom_names(body.get("tools")))
    if not is_legacy and not custom and not _speaks_of_others(body.get("messages")):
        return body, FUNCTIONS
    made = {key: value for key, value in body.items() if key not in ("functions", "function_call")}
    if is_legacy:
        made["tools"] = [{"type": "function", "function": each} for each in objects_in(body["functions"], "functions")]
        made["tool_choice"] = _legacy_choice(body.get("function_call"))
        made["parallel_tool_calls"] = False
    elif custom:
        made["tools"] = [_as_function(each) for each in made["tools"]]
        match body.get("tool_choice"):
            case {"type": "custom", "custom": {"name": name}}:
                made["tool_choice"] = {"type": "function", "function": {"name": name}}
            case {"type": "allowed_tools", "allowed_tools": {"tools": list(listed)} as allowed}:
                shown = [_as_function(each) if isinstance(each, dict) else each for each in listed]
                made["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {**allowed, "tools": shown}}
    if isinstance(body.get("messages"), list):
        made["messages"] = _today(body["messages"])
    return made, ToolTypes(custom, is_legacy)


def _custom_names(tools: Json) -> list[str]:
    listed = tools if isinstance(tools, list) else []
    found = [each.get("custom") for each in listed if isinstance(each, dict) and each.get("type") == "custom"]
    return [require_type(str, each.get("name"), "tools.custom.name") for each in found if isinstance(each, dict)]


def _speaks_of_others(messages: Json) -> bool:
    said = [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    calls = [call for each in said if isinstance(made := each.get("tool_calls"), list) for call in made]
    return any(each.get("function_call") for each in said) or any(
        isinstance(call, dict) and "custom" in call for call in calls
    )


def _as_function(tool: JsonObject) -> JsonObject:
    about = tool.get("custom")
    if tool.get("type") != "custom" or not isinstance(about, dict):
        return tool
    described = require_type(str, about.get("description"), "tools.custom.description")
    function = text_function(about.get("name"), described, INPUT, _form(about.get("format")))
    return {"type": "function", "function": function}


def text_function(name: Json, description: str, parameter: str, said: str) -> JsonObject:
    """A function of one text, of which ``said`` tells what it is."""
    properties = {parameter: {"type": "string", "description": said}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    return {"name": name, "description": description, "parameters": parameters}


def _form(form: Json) -> str:
    """What the text must look like, in words: no server here holds a model to a grammar of this kind."""
    match form:
        case {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}:
            return f"The text itself. It must follow this grammar ({syntax}):\n{definition}"
    return "The text itself."


def _legacy_choice(choice: Json) -> Json:
    match choice:
        case None | "auto" | "none":
            return choice
        case {"name": str(name)}:
            return {"type": "function", "function": {"name": name}}
    raise RequestError(f'function_call must be "auto", "none" or {{"name": ...}}, got {str(choice)[:80]!r}')


def _today(messages: list[Json]) -> list[Json]:
    """Messages with calls as today's. A result is that of the function's last call; ids tell calls apart."""
    made: list[Json] = []
    last: dict[Json, str] = {}
    for index, message in enumerate(messages):
        match message:
            case {"function_call": dict(call), **rest}:
                call_id = last[str(call.get("name"))] = f"call_{index}_{call.get('name')}"
                made.append({**rest, "tool_calls": [{"id": call_id, "type": "function", "function": call}]})
            case {"role": "function"}:
                name = str(message.get("name"))
                made.append({**message, "role": "tool", "tool_call_id": last.get(name, f"call_{name}")})
            case {"tool_calls": list(calls)}:
                made.append({**message, "tool_calls": [_called(each) for each in calls]})
            case _:
                made.append(message)
    return made


def _called(call: Json) -> Json:
    about = call.get("custom") if isinstance(call, dict) else None
    if not isinstance(about, dict):
        return call
    arguments = json.dumps({INPUT: about.get(INPUT)}, ensure_ascii=False)
    return {"id": call.get("id"), "type": "function", "function": {"name": about.get("name"), "arguments": arguments}}


def _text(arguments: str) -> str:
    """The one text of a call; of a call that has none what it has."""
    read = json.loads(arguments)
    text = read.get(INPUT) if isinstance(read, dict) else None
    return text if isinstance(text, str) else arguments
