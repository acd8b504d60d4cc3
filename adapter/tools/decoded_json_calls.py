"""Extract calls from decoded JSON, in every structure that models use. (`adapter.parsing.json_calls` finds the JSON.)

::

    {"name": N, "arguments": {...}}                      the common structure
    {"function": {"name": N, "arguments": "{...}"}}      OpenAI's format
    {"tool_calls": [...]}, [...]                         several calls
    {"tool": N, "path": ...}, {"N": {...}}               flat, or with the name as the key
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.decode import decode_json, decode_values
from adapter.core.json.strict import decode_strict
from adapter.core.text.truncate import shorten
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.tools.unbracketed_arguments import parse_plain_arguments

Normalizer: TypeAlias = Callable[[str, JsonObject], tuple[str, JsonObject, tuple[str, ...]]]
"""A function that adapts a name and arguments to the session's tools. It returns the name, the arguments and the
repairs."""

NAME_KEYS = (
    "name", "tool_name", "tool", "function", "function_name", "action", "recipient_name", "call", "toolName",
)  # fmt: skip
ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "input", "params", "kwargs", "tool_input", "tool_args", "action_input",
    "function_args", "function_arguments", "tool_arguments", "tool_parameters",
    "inputs",
)  # fmt: skip
TOOL_KEYS = ("type", "service", "command", "command_name", "func", "api", "method")
"""Keys that hold a call's name only if their value is one of the session's tools."""

NESTING_KEYS = ("function", "function_call", "tool_call", "tool", "tool_use", "functionCall", "toolCall")
"""Keys whose value can be the whole call."""

MCP_METHOD = "tools/call"
"""The method of a call in MCP's JSON-RPC. The member ``params`` then is the whole call."""

CALL_TYPES = ("tool_call", "function_call", "tool_use")
"""Values of the key ``type`` that announce a call."""

ABOUT_KEYS = (
    "id", "type", "index", "call_id", "tool_call_id", "thought", "thoughts", "headline", "reasoning", "explanation",
)  # fmt: skip
"""Keys that describe a call. They are arguments only if the tool has a parameter of that name."""

_CALL_KEYS = frozenset((*NAME_KEYS, *ARGUMENT_KEYS, *ABOUT_KEYS))

_COMMENT = re.compile(r"[^\W\d_][^{}\[\]\":=]*")
"""Matches words after an object without JSON punctuation, and thus without another value."""
_GROUPS = re.compile("parallel|multi_?tool|batch", re.IGNORECASE)
"""Matches names that models use for a group of several calls, although no such tool is declared."""
_ANNOUNCES = re.compile("call|tool|func|action|invo|command", re.IGNORECASE)
NO_TOOLS = ToolSet()


class DecodedCall(NamedTuple):
    """A decoded call that has not been matched to a tool.

    ``end`` is the offset just after the call in the parsed text, or None if one JSON value contains several calls.
    """

    name: str
    arguments: JsonObject
    fixes: tuple[str, ...] = ()
    end: int | None = None


def looks_like_call(value: Json) -> bool:
    """Return whether ``value`` has a name and arguments, each under a usual key."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("tool_calls"), list) or isinstance(value.get("function"), dict):
        return True
    if (nesting := _find_nesting_key(value)) is not None and looks_like_call(value[nesting]):
        return True
    keys = set(value)
    return bool(keys & set(NAME_KEYS) and keys & set(ARGUMENT_KEYS))


def extract_calls(value: Json, arguments_key: str, tools: ToolSet = NO_TOOLS) -> list[DecodedCall]:
    """Return the calls in ``value``. Raises FormatError, which names the missing part, if there is no valid call.

    ``arguments_key``: the format's key for the arguments. ``tools``: the session's tools. Only for these tools, an
    object with the name as its only key, ``{"read_file": {...}}``, is a call, and arguments may be plain text.
    """
    if isinstance(value, list):
        return [call for item in value for call in extract_calls(item, arguments_key, tools)]
    if not isinstance(value, dict):
        raise FormatError(f"expected a JSON object with a name and {arguments_key}, got {_quote(value)}")
    nesting = _find_nesting_key(value)
    if isinstance(value.get("tool_calls"), list):
        container, fix = "tool_calls", "tool-calls-list"
    elif nesting is not None:
        container, arguments_key, fix = nesting, "arguments", "nested-function"
        outside = {key: item for key, item in value.items() if key in ARGUMENT_KEYS}
        value = {nesting: value[nesting] if set(ARGUMENT_KEYS) & value[nesting].keys() else value[nesting] | outside}
    elif (announcing := find_container_key(value, tools)) is not None:
        container, fix = announcing, "nested-function"
    else:
        return [_parse_call(lower_keys(value, tools) or value, arguments_key, tools)]
    inner = extract_calls(value[container], arguments_key, tools)
    return [DecodedCall(call.name, call.arguments, (fix, *call.fixes)) for call in inner]


def expand_call(call: DecodedCall, tools: ToolSet) -> list[DecodedCall]:
    """Return the calls in a group call, such as OpenAI's ``multi_tool_use.parallel``, if all are to the session's
    tools. Otherwise, return ``call`` in a list."""
    if len(call.arguments) != 1 or not _GROUPS.search(call.name) or tools.match(call.name):
        return [call]
    key, value = next(iter(call.arguments.items()))
    decoded = decode_strict(value) if isinstance(value, str) else None  # elements contain JSON as text
    grouped: JsonObject = {key: decoded.value if decoded else value}
    if find_container_key(grouped, tools) is None:
        return [call]
    calls = extract_calls(grouped[key], "arguments", tools)
    ends = [*(None for _ in calls[1:]), call.end]
    return [
        DecodedCall(inner.name, inner.arguments, (*call.fixes, "nested-function", *inner.fixes), end)
        for inner, end in zip(calls, ends, strict=True)
    ]


def lower_keys(value: JsonObject, tools: ToolSet) -> JsonObject | None:
    """Return ``value`` with plain keys: lower case, no Markdown, and underscores for spaces. Return None unless this
    makes ``value`` a call to one of the session's tools."""
    lowered = {key.lower().strip("*` ").replace(" ", "_"): item for key, item in value.items()}
    return lowered if lowered.keys() != value.keys() and _are_known_calls(lowered, tools) else None


def find_container_key(value: JsonObject, tools: ToolSet) -> str | None:
    """Return the key that announces calls, such as ``tool_calls``, if its value (an object or list) consists only of
    calls to the session's tools. Return None otherwise, or if ``value`` itself has a name, like a call."""
    if find_name_key(value, tools) is not None:
        return None
    keys = (key for key, item in value.items() if _ANNOUNCES.search(key) and isinstance(item, dict | list))
    return next((key for key in keys if _are_known_calls(value[key], tools)), None)


def _are_known_calls(value: Json, tools: ToolSet) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        _is_known_call(item, tools) or (value is items and is_named_call(item, tools)) for item in items
    )


def _find_nesting_key(value: JsonObject) -> str | None:
    """Return the key whose value is the whole call, or None."""
    keys = (*NESTING_KEYS, "params") if value.get("method") == MCP_METHOD else NESTING_KEYS
    return next((key for key in keys if isinstance(value.get(key), dict)), None)


def _is_known_call(item: Json, tools: ToolSet) -> bool:
    if not isinstance(item, dict) or not looks_like_call(item):
        return False
    nesting = _find_nesting_key(item)
    item = item if nesting is None else item[nesting]
    key = find_name_key(item, tools)
    return key is not None and tools.match(str(item[key])) is not None


def is_named_call(item: Json, tools: ToolSet) -> bool:
    """Return whether the only key of ``item`` is a tool's name, and its value the tool's arguments."""
    only, value = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else ("", None)
    tool = tools.get(only)
    keys = value.keys() if isinstance(value, dict) else set[str]()
    return tool is not None and (bool(keys) or not value) and tool.accepts(keys)


def find_flat_arguments(value: JsonObject, name_key: str, tool: Tool | None) -> JsonObject:
    """Return the arguments of a flat call: they are next to the name, as in ``{"tool": "read_file", "path": "a"}``."""
    declared = tool.properties if tool else ()
    return {key: item for key, item in value.items() if key != name_key and (key in declared or key not in ABOUT_KEYS)}


def find_name_key(value: JsonObject, tools: ToolSet) -> str | None:
    """Return the key that holds the call's name, or None."""
    keys = (key for key in NAME_KEYS if isinstance(name := value.get(key), str) and name.strip())
    others = (key for key in TOOL_KEYS if isinstance(name := value.get(key), str) and name in tools)
    return next(keys, next(others, None))


def _parse_call(value: JsonObject, arguments_key: str, tools: ToolSet) -> DecodedCall:
    name_key = find_name_key(value, tools)
    if name_key is None:
        if len(value) == 1 and (only := next(iter(value))) in tools and isinstance(value[only] or {}, dict):
            return DecodedCall(only, value[only] or {}, ("name-as-key",))
        keys = ", ".join(map(repr, value)) or "none"
        raise FormatError(f"the call has no name: expected 'name' and {arguments_key!r}, got the keys {keys}")
    fixes = [] if name_key == "name" else ["name-key"]
    name = str(value[name_key])
    bare = name.strip()
    arguments, more = _parse_arguments(value, name_key, arguments_key, tools.match(bare))
    if '"' in bare and bare not in tools:
        raise FormatError(
            f"the call's name contains a quotation mark: {_quote(name)}; write the name and the arguments under two "
            f"keys, 'name' and {arguments_key!r}"
        )
    if bare != name:
        fixes.append("tool-name")
    return DecodedCall(bare, arguments, tuple(fixes + more))


def _parse_arguments(
    value: JsonObject, name_key: str, arguments_key: str, tool: Tool | None
) -> tuple[JsonObject, list[str]]:
    key = arguments_key if arguments_key in value else next((key for key in ARGUMENT_KEYS if key in value), None)
    if key is None:
        flat = find_flat_arguments(value, name_key, tool)
        return flat, ["flat-arguments"] if flat else ["no-arguments"]
    if key == "parameters" and _is_schema(value[key]):
        raise FormatError(f"this is the definition of {value[name_key]!r}, not a call to it")
    given = value[key][0] if isinstance(value[key], list) and len(value[key]) == 1 else value[key]
    plain = None
    if tool is not None and isinstance(given, str) and given.strip() and given.lstrip()[0] not in '{["<':
        plain = parse_plain_arguments(given, tool)
    arguments, fixes = (plain[0], [plain[1]]) if plain else parse_arguments(value[key])
    if len(value) > 2 and tool is not None and (trailing := _find_trailing_arguments(value, arguments, tool)):
        arguments, fixes = {**arguments, **trailing}, [*fixes, "flat-arguments"]
    return arguments, ([] if key == arguments_key else ["arguments-key"]) + fixes


def _find_trailing_arguments(value: JsonObject, arguments: JsonObject, tool: Tool) -> JsonObject:
    """Return the arguments that follow ``arguments``, because that object was closed too early."""
    trailing = value.keys() & tool.properties.keys() - arguments.keys() - _CALL_KEYS
    return {name: item for name, item in value.items() if name in trailing}


def _is_schema(value: Json) -> bool:
    """Return whether ``value`` looks like a tool definition's parameters, which models echo from their prompt."""
    return isinstance(value, dict) and value.get("type") == "object" and isinstance(value.get("properties"), dict)


def parse_arguments(value: Json | Mapping[str, Json]) -> tuple[JsonObject, list[str]]:
    """Decode a call's arguments: an object, JSON in a string, null, or a list with one object. Return the arguments and
    the repairs."""
    fixes: list[str] = []
    for _ in range(2):  # models encode arguments once, and a template may encode them again
        if not isinstance(value, str):
            break
        if not value.strip():
            return {}, ["no-arguments"]
        if value.lstrip().startswith("```"):
            values, more = decode_values(value, closed=False)
            has_more = len(values) > 1
        else:
            values = [decode_json(value, closed=False)]
            rest = value[values[0].end :].strip(' \t\r\n"')  # strict servers write ``{}""``
            has_more = rest != "" and not (isinstance(values[0].value, dict) and _COMMENT.fullmatch(rest))
            has_more = has_more and not _repeats(rest, value[: values[0].end], values[0].value)
            more = ("text-in-tag",) if rest and not has_more else ()
        if has_more:
            raise FormatError(f"the arguments are a string, which must contain one JSON object, got {_quote(value)}")
        value = values[0].value
        fixes += ["string-arguments", *more, *values[0].fixes]
    match value:
        case Mapping():
            return dict(value), fixes
        case None | []:
            return {}, [*fixes, "no-arguments"]
        case [dict(only)]:
            return only, [*fixes, "list-arguments"]
        case _:
            raise FormatError(f"the arguments must be a JSON object, got {_quote(value)}")


def _repeats(rest: str, written: str, value: Json) -> bool:
    """Return whether ``rest`` is a copy of the object ``value``, or the start of its text, ``written``."""
    again = decode_strict(rest, 0)
    is_copy = again is not None and again.end == len(rest) and again.value == value
    return rest.startswith("{") and (is_copy or written.startswith(rest))


def _quote(value: Json) -> str:
    return shorten(repr(value), 60)
