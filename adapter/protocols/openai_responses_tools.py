"""Tools of OpenAI's responses that are no plain functions, as functions, and their calls as the items they belong to.

========================  ====================================================  ===========================
tool                      what the model calls                                  what the client gets
========================  ====================================================  ===========================
function                  the same                                              function_call
namespace                 ``<namespace>__<name>`` for each of its tools         a call with ``namespace``
custom                    a function of one text, its grammar told in words     custom_tool_call
shell, local_shell        a function of one command                             shell_call, local_shell_call
apply_patch               a function of a path and a diff, which create_file,   apply_patch_call
                          update_file or delete_file says
tool_search               where the client searches, a function of its words;   tool_search_call
                          else nothing, and deferred tools are shown
========================  ====================================================  ===========================

Source: https://platform.openai.com/docs/guides/tools-apply-patch, ``tools-shell``, ``tools-local-shell``,
``tools-tool-search`` and the types of openai-python 3.54.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import objects_in, require_type
from adapter.protocols.tool_types import INPUT, text_function

Kind: TypeAlias = Literal["function", "custom", "shell", "local_shell", "apply_patch", "tool_search"]

ITEMS: Mapping[str, str] = {
    "function": "function_call",
    "custom": "custom_tool_call",
    "shell": "shell_call",
    "local_shell": "local_shell_call",
    "apply_patch": "apply_patch_call",
    "tool_search": "tool_search_call",
}
IDS: Mapping[str, str] = {
    "function": "fc", "custom": "ctc", "shell": "sh", "local_shell": "lsh", "apply_patch": "apc", "tool_search": "tsc",
}  # fmt: skip
"""How the ids of their items begin."""

OPERATIONS = ("create_file", "update_file", "delete_file")

COMMAND = "command"

_SHELL = ("bash", "-lc")
"""How a command line becomes the list of words that ``local_shell`` runs."""

_DIFF = (
    "For create_file every line of the file with + before it. For update_file hunks: @@ and a line above the change, "
    "then the lines around it with a space before them, removed ones with -, added ones with +. None for delete_file."
)


@dataclass(frozen=True, slots=True)
class ResponsesTool:
    """``name``: the client's. ``namespace``: of it, if any."""

    kind: Kind
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ResponsesTools:
    """``functions``: the tools as chats have them. ``by_name``: what the model calls by that name; whatever is not
    there is a plain function."""

    functions: list[JsonObject] = field(default_factory=list)
    by_name: Mapping[str, ResponsesTool] = field(default_factory=dict)

    def of(self, name: str) -> ResponsesTool:
        return self.by_name.get(name) or ResponsesTool("function", name)

    def called(self, name: str) -> str:
        """What the model calls a tool that a client names: a namespace's may be named alone."""
        if name in self.by_name:
            return name
        found = [ours for ours, form in self.by_name.items() if form.name == name]
        return found[0] if len(found) == 1 else name


def parse_responses_tools(tools: Json, left_out: list[str], later: Json = None) -> ResponsesTools:
    """Of a request's tools, and of those that came up ``later`` in its conversation. Those that are run by OpenAI's
    servers or known to its models alone are left out."""
    listed = objects_in(tools, "tools")
    begun = _read(_loaded(listed) if any(map(_is_clients_search, listed)) else listed, None, left_out, "tools")
    functions, forms = [], dict[str, ResponsesTool]()
    for function, form in (*begun, *_read(objects_in(later, "tools"), None, left_out, "tools")):
        if (name := str(function.get("name"))) not in forms:
            functions.append({"type": "function", "function": function})
            forms[name] = form
    return ResponsesTools(functions, forms)


def _is_clients_search(tool: JsonObject) -> bool:
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def _loaded(tools: Iterable[JsonObject]) -> Iterable[JsonObject]:
    """Without those that a search is to bring; a namespace with the rest of its own."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield {**tool, "tools": list(_loaded(objects_in(tool.get("tools"), "tools.tools")))}
        elif not tool.get("defer_loading"):
            yield tool


def _read(
    tools: Iterable[JsonObject], namespace: str | None, left_out: list[str], place: str
) -> Iterable[tuple[JsonObject, ResponsesTool]]:
    for tool in tools:
        kind, name = tool.get("type"), require_type(str, tool.get("name"), f"{place}.name")
        match kind:
            case "namespace" if namespace is None:
                yield from _read(objects_in(tool.get("tools"), f"{place}.tools"), name, left_out, f"{place}.tools")
            case "function":
                about = require_type(dict, tool.get("function") or tool, place)  # some clients nest it as chats do
                function = {key: about[key] for key in _FUNCTION if about.get(key) is not None}
                if namespace is not None:
                    function["name"] = joined(namespace, name)
                yield function, ResponsesTool("function", name, namespace)
            case "custom":
                described = require_type(str, tool.get("description"), f"{place}.description")
                text = _form(tool.get("format"))
                yield (
                    text_function(joined(namespace, name), described, INPUT, text),
                    ResponsesTool("custom", name, namespace),
                )
            case "shell" | "local_shell":
                said = "Run a command in the user's shell, and see its output."
                yield text_function(kind, said, COMMAND, "The command line."), ResponsesTool(kind, kind)
            case "apply_patch":
                yield _PATCHING, ResponsesTool("apply_patch", "apply_patch")
            case "tool_search" if _is_clients_search(tool):
                function = {key: tool[key] for key in ("description", "parameters") if tool.get(key) is not None}
                yield {**_SEARCHING, **function}, ResponsesTool("tool_search", "tool_search")
            case _:
                left_out.append(f"tool {kind}")


_FUNCTION = ("name", "description", "parameters", "strict")

_PATCHING: JsonObject = {
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

_SEARCHING: JsonObject = {
    "name": "tool_search",
    "description": "Find tools that are not listed here, by words that say what they should do.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}


def joined(namespace: str | None, name: str) -> str:
    """What the model calls a tool of a namespace, as codex and MCP clients put it."""
    return name if not namespace else f"{namespace}__{name}"


def _form(form: Json) -> str:
    match form:
        case {"type": "grammar", "syntax": syntax, "definition": definition}:
            return f"The text itself. It must follow this grammar ({syntax}):\n{definition}"
    return "The text itself."


def call_item(form: ResponsesTool, item_id: str, call_id: str, arguments: str, status: str) -> JsonObject:
    """A call as the client's own item."""
    head: JsonObject = {"type": ITEMS[form.kind], "id": item_id, "call_id": call_id, "status": status}
    if form.namespace is not None:
        head["namespace"] = form.namespace
    match form.kind:
        case "function":
            return {**head, "name": form.name, "arguments": arguments}
        case "custom":
            return {**head, "name": form.name, "input": _text(arguments, INPUT)}
        case "shell":
            action = {"commands": [_text(arguments, COMMAND)], "timeout_ms": None, "max_output_length": None}
            return {**head, "action": action}
        case "local_shell":
            return {**head, "action": {"type": "exec", "command": [*_SHELL, _text(arguments, COMMAND)], "env": {}}}
        case "apply_patch":
            return {**head, "operation": _operation(_read_object(arguments))}
        case "tool_search":
            return {**head, "execution": "client", "arguments": _read_object(arguments)}


def _text(arguments: str, name: str) -> str:
    """The one text of a call; of a call that has none what it has."""
    text = _read_object(arguments).get(name)
    return text if isinstance(text, str) else arguments


def _read_object(arguments: str) -> JsonObject:
    try:
        read = json.loads(arguments)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _operation(given: JsonObject) -> JsonObject:
    diff, path = str(given.get("diff") or ""), str(given.get("path") or "")
    kind = given.get("type") if given.get("type") in OPERATIONS else "update_file"
    if kind == "delete_file":
        return {"type": kind, "path": path}
    if kind == "create_file" and not all(line.startswith("+") for line in diff.splitlines() if line):
        diff = "".join(f"+{line}" for line in diff.splitlines(keepends=True))  # a file as it is, which models write
    return {"type": kind, "path": path, "diff": diff}


def call_from_item(item: JsonObject) -> JsonObject:
    """The function and its arguments for a call that a client sends back."""
    match item.get("type"):
        case "custom_tool_call":
            name, given = joined(item.get("namespace"), str(item.get("name"))), {INPUT: item.get("input")}
        case "shell_call":
            commands = require_type(dict, item.get("action"), "action").get("commands")
            name, given = "shell", {COMMAND: "\n".join(map(str, commands if isinstance(commands, list) else ()))}
        case "local_shell_call":
            words = require_type(dict, item.get("action"), "action").get("command")
            listed = [str(word) for word in words] if isinstance(words, list) else []
            name, given = "local_shell", {COMMAND: _line(listed)}
        case "apply_patch_call":
            name, given = "apply_patch", require_type(dict, item.get("operation"), "operation")
        case "tool_search_call":
            sought = item.get("arguments")
            name, given = "tool_search", sought if isinstance(sought, dict) else _read_object(str(sought))
        case _:
            return {"name": joined(item.get("namespace"), str(item.get("name"))), "arguments": item.get("arguments")}
    return {"name": name, "arguments": json.dumps(given, ensure_ascii=False)}


def _line(words: list[str]) -> str:
    """The command line of a list of words."""
    return words[2] if len(words) == 3 and tuple(words[:2]) == _SHELL else shlex.join(words)


def result_from_item(item: JsonObject) -> Json:
    """The content of a result: text, or parts."""
    output = item.get("output")
    match item.get("type"):
        case "apply_patch_call_output":
            return str(output or item.get("status") or "")
        case "shell_call_output" if isinstance(output, list):
            return "\n".join(_ran(each) for each in output if isinstance(each, dict))
        case "tool_search_output":
            found = _read(objects_in(item.get("tools"), "tools"), None, [], "tools")
            names = [str(function["name"]) for function, _ in found]
            return f"These can be called now: {', '.join(names)}" if names else "No tool was found."
    return output


def _ran(output: JsonObject) -> str:
    match output.get("outcome"):
        case {"type": "exit", "exit_code": code}:
            ending = f"exit code {code}"
        case {"type": "timeout"}:
            ending = "timed out"
        case _:
            ending = ""
    said = [str(output.get(name) or "").rstrip("\n") for name in ("stdout", "stderr")]
    return "\n".join(part for part in (*said, ending) if part)
