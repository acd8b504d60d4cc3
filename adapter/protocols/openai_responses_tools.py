"""Convert the tools of OpenAI's Responses API to functions, and convert calls to its items.

========================  ====================================================  ===========================
tool                      function for the model                                item for the client
========================  ====================================================  ===========================
function                  the same function                                     function_call
namespace                 ``<namespace>__<name>`` for each of its tools         a call with ``namespace``
custom                    a function with one string that follows the grammar   custom_tool_call
shell, local_shell        a function with one command                           shell_call, local_shell_call
apply_patch               a function with a path, a diff and an operation:      apply_patch_call
                          create_file, update_file or delete_file
tool_search               a search function if the client searches;             tool_search_call
                          otherwise, deferred tools are described
========================  ====================================================  ===========================

Source: https://platform.openai.com/docs/guides/tools-apply-patch, ``tools-shell``, ``tools-local-shell``,
``tools-tool-search`` and the types of openai-python 3.54.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.protocols.custom_and_legacy_tools import (
    INPUT,
    build_text_function,
    describe_text,
    get_text_argument,
    read_object,
)
from adapter.protocols.request_errors import require_objects, require_type
from adapter.protocols.request_list_cache import convert_once

Kind: TypeAlias = Literal["function", "custom", "shell", "local_shell", "apply_patch", "tool_search"]

IDS: Mapping[str, str] = {
    "function": "fc", "custom": "ctc", "shell": "sh", "local_shell": "lsh", "apply_patch": "apc", "tool_search": "tsc",
}  # fmt: skip
"""Prefix of the item ids for each type of tool."""
ITEMS = {kind: "custom_tool_call" if kind == "custom" else f"{kind}_call" for kind in IDS}
"""Type of the item for a call of each type of tool."""

OPERATIONS = ("create_file", "update_file", "delete_file")
"""Operations of ``apply_patch``."""

COMMAND = "command"
"""Parameter of the functions that replace ``shell`` and ``local_shell``."""

_SHELL = ("bash", "-lc")
"""Shell that runs the command line of a ``local_shell`` call."""

_DIFF = (
    "For create_file every line of the file with + before it. For update_file hunks: @@ and a line above the change, "
    "then the lines around it with a space before them, removed ones with -, added ones with +. None for delete_file."
)


@dataclass(frozen=True, slots=True)
class ResponsesTool:
    """The type, name and namespace of a tool in the client's request."""

    kind: Kind
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ResponsesTools:
    """The tools of a Responses API request.

    ``functions`` are the tools for the chat request, and ``by_name`` has the client's tool for each function name.
    Names that are not in ``by_name`` are ordinary functions.
    """

    functions: list[JsonObject] = field(default_factory=list)
    by_name: Mapping[str, ResponsesTool] = field(default_factory=dict)

    def find(self, name: str) -> ResponsesTool:
        """Return the client's tool for ``name``, its function name or its unambiguous name without the namespace."""
        return self.by_name.get(self.find_model_name(name)) or ResponsesTool("function", name)

    def find_model_name(self, name: str) -> str:
        """Return the function name of a tool. ``name`` is the client's name, with or without the namespace."""
        if name in self.by_name:
            return name
        matches = [function for function, tool in self.by_name.items() if tool.name == name]
        return matches[0] if len(matches) == 1 else name


def parse_responses_tools(tools: Json, dropped: list[str], later: Json = None) -> ResponsesTools:
    """Convert the tools of a request. ``later`` has the tools introduced by items of its input.

    Tools that OpenAI's servers run, or that only OpenAI's models know, are dropped, and their names are appended to
    ``dropped``.
    """
    return convert_once(None if later else tools, "responses", dropped, partial(_convert_all, tools, later))


def _convert_all(tools: Json, later: Json, dropped: list[str]) -> tuple[ResponsesTools, list[JsonObject]]:
    definitions = require_objects(tools, "tools")
    if any(map(_is_clients_search, definitions)):
        definitions = list(_remove_deferred(definitions))
    functions, by_name = [], dict[str, ResponsesTool]()
    for function, tool in (
        *_convert(definitions, None, dropped, "tools"),
        *_convert(require_objects(later, "tools"), None, dropped, "tools"),
    ):
        if (name := str(function.get("name"))) not in by_name:
            functions.append({"type": "function", "function": function})
            by_name[name] = tool
    return ResponsesTools(functions, by_name), functions


def _is_clients_search(tool: JsonObject) -> bool:
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def _remove_deferred(tools: Iterable[JsonObject]) -> Iterable[JsonObject]:
    """Yield the tools that are not deferred, also inside namespaces. The client's tool search returns the others."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield {**tool, "tools": list(_remove_deferred(require_objects(tool.get("tools"), "tools.tools")))}
        elif not tool.get("defer_loading"):
            yield tool


def _convert(
    tools: Iterable[JsonObject], namespace: str | None, dropped: list[str], path: str
) -> Iterable[tuple[JsonObject, ResponsesTool]]:
    for tool in tools:
        kind, name = tool.get("type"), require_type(str, tool.get("name"), f"{path}.name")
        match kind:
            case "namespace" if namespace is None:
                yield from _convert(require_objects(tool.get("tools"), f"{path}.tools"), name, dropped, f"{path}.tools")
            case "function":
                # Some clients nest the function, as in chat requests.
                about = require_type(dict, tool.get("function") or tool, path)
                name = require_type(str, about.get("name"), f"{path}.name")
                function = {key: about[key] for key in _FUNCTION if about.get(key) is not None}
                if namespace is not None:
                    function["name"] = build_qualified_name(namespace, name)
                yield function, ResponsesTool("function", name, namespace)
            case "custom":
                description = require_type(str, tool.get("description"), f"{path}.description")
                text = describe_text(tool.get("format"))
                yield (
                    build_text_function(build_qualified_name(namespace, name), description, INPUT, text),
                    ResponsesTool("custom", name, namespace),
                )
            case "shell" | "local_shell":
                description = "Run a command in the user's shell, and see its output."
                yield build_text_function(kind, description, COMMAND, "The command line."), ResponsesTool(kind, kind)
            case "apply_patch":
                yield _APPLY_PATCH, ResponsesTool("apply_patch", "apply_patch")
            case "tool_search" if _is_clients_search(tool):
                function = {key: tool[key] for key in ("description", "parameters") if tool.get(key) is not None}
                yield {**_TOOL_SEARCH, **function}, ResponsesTool("tool_search", "tool_search")
            case _:
                dropped.append(f"tool {kind}")


_FUNCTION = ("name", "description", "parameters", "strict")

_APPLY_PATCH: JsonObject = {
    "name": "apply_patch",
    "description": "Create, change or delete one file.",
    "parameters": {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": list(OPERATIONS)},
            "path": {"type": "string"},
            "diff": {"type": "string", "description": _DIFF},
        },
        "required": ["type", "path"],
    },
}

_TOOL_SEARCH: JsonObject = {
    "name": "tool_search",
    "description": "Find tools that are not listed here, by words that say what they should do.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}


def build_qualified_name(namespace: str | None, name: str) -> str:
    """Return the function name for a tool in a namespace, in the style of codex and MCP clients."""
    return name if not namespace else f"{namespace}__{name}"


def build_call_item(tool: ResponsesTool, item_id: str, call_id: str, arguments: str, status: str) -> JsonObject:
    """Convert a function call to the type of item that the client expects. ``arguments`` is JSON text."""
    head: JsonObject = {"type": ITEMS[tool.kind], "id": item_id, "call_id": call_id, "status": status}
    if tool.namespace is not None:
        head["namespace"] = tool.namespace
    match tool.kind:
        case "function":
            return {**head, "name": tool.name, "arguments": arguments}
        case "custom":
            return {**head, "name": tool.name, "input": get_text_argument(arguments, INPUT)}
        case "shell":
            action = {
                "commands": [get_text_argument(arguments, COMMAND)],
                "timeout_ms": None,
                "max_output_length": None,
            }
            return {**head, "action": action}
        case "local_shell":
            command = [*_SHELL, get_text_argument(arguments, COMMAND)]
            return {**head, "action": {"type": "exec", "command": command, "env": {}}}
        case "apply_patch":
            return {**head, "operation": _build_operation(read_object(arguments))}
        case "tool_search":
            return {**head, "execution": "client", "arguments": read_object(arguments)}


def _build_operation(arguments: JsonObject) -> JsonObject:
    diff, path = str(arguments.get("diff") or ""), str(arguments.get("path") or "")
    kind = arguments.get("type") if arguments.get("type") in OPERATIONS else "update_file"
    if kind == "delete_file":
        return {"type": kind, "path": path}
    if kind == "create_file" and not all(line.startswith("+") for line in diff.splitlines() if line):
        diff = "".join(f"+{line}" for line in diff.splitlines(keepends=True))  # models write the file's text unchanged
    return {"type": kind, "path": path, "diff": diff}


def parse_call_item(item: JsonObject) -> JsonObject:
    """Convert a client's call item to a function's name and arguments."""
    name = build_qualified_name(item.get("namespace"), str(item.get("name")))
    match item.get("type"):
        case "custom_tool_call":
            arguments = {INPUT: item.get("input")}
        case "shell_call":
            commands = require_type(dict, item.get("action"), "action").get("commands")
            name, arguments = "shell", {COMMAND: "\n".join(map(str, commands if isinstance(commands, list) else ()))}
        case "local_shell_call":
            words = require_type(dict, item.get("action"), "action").get("command")
            command = [str(word) for word in words] if isinstance(words, list) else []
            name, arguments = "local_shell", {COMMAND: _join_command_line(command)}
        case "apply_patch_call":
            name, arguments = "apply_patch", require_type(dict, item.get("operation"), "operation")
        case "tool_search_call":
            search = item.get("arguments")
            name, arguments = "tool_search", search if isinstance(search, dict) else read_object(str(search))
        case _:
            return {"name": name, "arguments": item.get("arguments")}
    return {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}


def _join_command_line(words: list[str]) -> str:
    """Convert the words of a command to a command line for the shell."""
    return words[2] if len(words) == 3 and tuple(words[:2]) == _SHELL else shlex.join(words)


def parse_result_item(item: JsonObject) -> Json:
    """Return the content of a tool result item: text, or a list of parts."""
    output = item.get("output")
    match item.get("type"):
        case "apply_patch_call_output":
            return str(output or item.get("status") or "")
        case "shell_call_output" if isinstance(output, list):
            return "\n".join(_format_shell_output(each) for each in output if isinstance(each, dict))
        case "tool_search_output":
            functions = _convert(require_objects(item.get("tools"), "tools"), None, [], "tools")
            names = [str(function["name"]) for function, _ in functions]
            return f"These can be called now: {', '.join(names)}" if names else "No tool was found."
    return output


def _format_shell_output(output: JsonObject) -> str:
    match output.get("outcome"):
        case {"type": "exit", "exit_code": code}:
            ending = f"exit code {code}"
        case {"type": "timeout"}:
            ending = "timed out"
        case _:
            ending = ""
    output_texts = [str(output.get(name) or "").rstrip("\n") for name in ("stdout", "stderr")]
    return "\n".join(part for part in (*output_texts, ending) if part)
