"""Match a call's tool name, argument names and argument types to the session's tools.

Only unambiguous deviations are corrected: spellings of the name, argument aliases, and values that can be converted
without loss. Nothing here raises an error, so parsers can use it; `call_validation` validates the call later.
"""

from __future__ import annotations

import json
import re

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import RepeatedValues, encode_as_written
from adapter.tools import argument_synonyms
from adapter.tools.argument_synonyms import normalize_key
from adapter.tools.coercion import coerce_to_schema, list_types
from adapter.tools.decoded_json_calls import extract_calls, looks_like_call
from adapter.tools.literal_backslashes import restore_backslashes
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

COMMON_ARGUMENT_ALIASES: dict[str, tuple[str, ...]] = {
    name: tuple(each for each in names if each != name)
    for names, known in (
        (argument_synonyms.PATH, ("path", "file_path")),
        (argument_synonyms.CONTENT, ("content",)),
        (argument_synonyms.COMMAND, ("command",)),
        (argument_synonyms.PATTERN, ("pattern", "query")),
        (argument_synonyms.OLD_TEXT, ("old_text", "old_string")),
        (argument_synonyms.NEW_TEXT, ("new_text", "new_string")),
    )
    for name in known
}
"""Other names that models use for the common parameters of any tool. A tool's own aliases take precedence."""

_NAME_LIKE = re.compile(r"[\w .:-]*")
"""Matches every string that may be meant as a tool's name."""

_WRAPPERS = ("arguments", "parameters", "args", "input", "params", "kwargs", "properties")

_AROUND_NAMES = ": \\\"'\n{}[],<>|"
"""Punctuation that models write next to an argument's name. Qwen3.6 writes ``name:``."""
_NULL_WORDS = ("null", "none", "undefined", "")


def normalize_call(name: str, arguments: JsonObject, tools: ToolSet) -> tuple[str, JsonObject, tuple[str, ...]]:
    """Correct the tool's name, the argument names and the values' types where this is unambiguous. Return the name, the
    arguments and the repairs."""
    tool = tools.match(name) or match_arguments(name, arguments, tools)
    if tool is None:
        return name, arguments, ()
    repairs: dict[str, None] = {} if tool.name == name else {"tool-name": None}
    named: JsonObject = {}
    properties, given = tool.properties, arguments
    while (inner := _unwrap_arguments(given, tool, repairs)) is not given:
        given = inner
    for key, value in (given if given.keys() <= properties.keys() else _rename_arguments(given, tool, repairs)).items():
        schema = properties[key] if key in properties else tool.find_schema(key)
        value, more = coerce_to_schema(value, schema)
        if isinstance(value, list | dict) and _is_document(key, value, schema):
            value, more = encode_as_written(value), (*more, "json-as-text")
        if more:
            repairs.update(dict.fromkeys(more))
        if key not in tool.required and _is_absent(value, schema):
            repairs["key-without-value"] = None
            continue
        named[key], more = restore_backslashes(key, value)
        if more:
            repairs.update(dict.fromkeys(more))
    return tool.name, named, tuple(repairs)


def _is_absent(value: Json, schema: Json) -> bool:
    """Return whether ``value`` is null or, if the schema allows no strings, an empty string or a word for null."""
    if value is not None and not isinstance(value, str):
        return False
    types = list_types(schema)
    if not types or "null" in types:
        return False
    return value is None or ("string" not in types and value.strip().lower() in _NULL_WORDS)


def _is_document(key: str, value: Json, schema: Json) -> bool:
    """Return whether the model wrote the content of a JSON file as a JSON value instead of a string. A copy of the
    parameter's schema is not such content."""
    is_other = isinstance(value, RepeatedValues) or (isinstance(value, dict) and value.get("type") == "string")
    return key in argument_synonyms.CONTENT and list_types(schema) - {"null"} == {"string"} and not is_other


def match_arguments(name: str, arguments: JsonObject, tools: ToolSet) -> Tool | None:
    """Return the only tool that accepts exactly these arguments, if ``name`` cannot be a tool's name, or None. Small
    models write ``write_notes/todo.md`` for ``write_file``. A tool that deletes is never guessed."""
    if _NAME_LIKE.fullmatch(name):
        return None
    fitting = [tool for tool in tools.values() if tool.required and _takes(tool, arguments)]
    return fitting[0] if len(fitting) == 1 and fitting[0].effect != "delete" else None


def find_tool_with_arguments(arguments: JsonObject, tools: ToolSet) -> Tool | None:
    """Return the only tool with parameters for all ``arguments``, as a suggestion for an unknown tool. Return None if
    there are several, or if there is only one argument."""
    fitting = [tool for tool in tools.values() if tool.accepts(arguments.keys())]
    return fitting[0] if len(fitting) == 1 and len(arguments) > 1 else None


def _takes(tool: Tool, arguments: JsonObject) -> bool:
    names = {key if key in tool.properties else match_parameter(key, tool) for key in arguments}
    return names <= tool.properties.keys() and names >= {*tool.required}


def _unwrap_arguments(arguments: JsonObject, tool: Tool, repairs: dict[str, None]) -> JsonObject:
    """Return the arguments inside ``{"arguments": {...}}``, ``{"read_file": {...}}`` or a whole call to the tool."""
    if len(arguments) == 2 and not arguments.keys() <= tool.properties.keys() and looks_like_call(arguments):
        return _unwrap_call(arguments, tool, repairs)
    if len(arguments) != 1:
        return arguments
    key, value = next(iter(arguments.items()))
    if key in tool.properties or key not in (*_WRAPPERS, tool.name) or match_parameter(key, tool):
        return arguments
    if isinstance(value, str):
        value = _decode_object(value, tool, repairs)
    if not isinstance(value, dict):
        return arguments
    repairs["arguments-key"] = None
    return value


def _unwrap_call(arguments: JsonObject, tool: Tool, repairs: dict[str, None]) -> JsonObject:
    """Return the inner arguments of ``{"name": ..., "arguments": {...}}``, a whole call of ``tool``."""
    try:
        (call,) = extract_calls(arguments, "arguments")
    except (FormatError, ValueError):
        return arguments
    if normalize_key(call.name) != normalize_key(tool.name):
        return arguments
    repairs["nested-function"] = None
    return call.arguments


def _decode_object(text: str, tool: Tool, repairs: dict[str, None]) -> Json:
    """Decode ``text`` if it is a JSON object whose keys are all parameters of ``tool``, or return None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(key in tool.properties or match_parameter(key, tool) for key in value):
        return None
    repairs["string-arguments"] = None
    return value


def _rename_arguments(arguments: JsonObject, tool: Tool, repairs: dict[str, None]) -> JsonObject:
    """Rename arguments to the tool's parameters, in the same order. A parameter's own name takes precedence over an
    alias. An alias with a contradicting value is left for `validate_call` to reject."""
    chosen = {key: value for key, value in arguments.items() if key in tool.properties and value not in (None, "")}
    renamed: JsonObject = {}
    for key, value in arguments.items():
        parameter = key if key in tool.properties else match_parameter(key, tool)
        if parameter is None or (parameter != key and is_contradiction(chosen.get(parameter), value)):
            renamed[key] = value
        elif parameter == key:
            renamed.setdefault(key, value)
        else:
            repairs["argument-alias"] = None
            renamed[parameter] = value if value in (None, "") else chosen.setdefault(parameter, value)
        if parameter in chosen:
            renamed[parameter] = chosen[parameter]
    return renamed


def is_contradiction(first: Json, second: Json) -> bool:
    return first not in (None, "") and second not in (None, "") and first != second


def match_parameter(key: str, tool: Tool) -> str | None:
    """Return the only parameter of ``tool`` that ``key`` may mean, as another spelling or an alias, or None."""
    spelt = normalize_key(key.strip(_AROUND_NAMES))
    same = [name for name in tool.properties if normalize_key(name) == spelt]
    if len(same) == 1:
        return same[0]
    for table in (tool.argument_aliases, COMMON_ARGUMENT_ALIASES):
        matches = [name for name in tool.properties if spelt in map(normalize_key, table.get(name, ()))]
        if len(matches) == 1:
            return matches[0]
    return None
