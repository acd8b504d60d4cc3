"""Normalize and validate tool calls.

`normalize_call` corrects only unambiguous details: spellings of the name, argument aliases, and types that can be
converted without loss. It never fails, so that a parser can use it. `resolve_call` then validates the call; its errors
explain to the model how to fix the call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from adapter.core.callbacks import result_error
from adapter.core.errors import FormatError, ToolError
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.tools import argument_synonyms
from adapter.tools.argument_synonyms import normalize_key
from adapter.tools.call_shapes import extract_calls, looks_like_call, parse_arguments
from adapter.tools.coercion import coerce_to_schema, has_schema_type, schema_types
from adapter.tools.example_calls import example_call
from adapter.tools.schema_validation import bounded_validator
from adapter.tools.tool import Tool, ToolSet, ValidatedCall

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

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

MAX_CHOICES = 12
"""Maximum number of choices that a message lists."""

_NAME_LIKE = re.compile(r"[\w .:-]*")
"""Matches everything that may be meant as the name of a tool."""

_WRAPPERS = ("arguments", "parameters", "args", "input", "params", "kwargs", "properties")
_ESCAPED_BY_ACCIDENT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/\n\t\r\x08\f][^\"<>|?*]*")
_PATH_WORDS = ("path", "file", "dir", "folder", "cwd")
_NULL_WORDS = ("null", "none", "undefined", "")

_CHANGING_ARGUMENTS = {
    "append": (),
    "dryrun": (),
    "preview": (),
    "mode": ("w", "wt", "write", "overwrite", "create", "replace"),
}
_PARTIAL_ARGUMENTS = ("startline", "endline", "insertline", "line", "position", "offset")
"""Names, without separators, of unknown arguments that would change the effect of a call.

`_CHANGING_ARGUMENTS` applies to all tools that change something, and lists the values that make no difference.
`_PARTIAL_ARGUMENTS` applies to tools that write a whole file.
"""


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A call to one of the session's tools, with valid arguments. ``validated``: the validated call; None for a
    client's tool, which has no validation. ``notes``: the corrections made to the call. ``left_out``: the ignored
    arguments. Both are lists of sentences for the model."""

    tool: Tool
    arguments: JsonObject
    validated: ValidatedCall | None
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def normalize_call(name: str, arguments: JsonObject, tools: ToolSet) -> tuple[str, JsonObject, tuple[str, ...]]:
    """Normalize the tool's name, the argument names and the types if this is unambiguous. Return the name, the
    arguments and the fixes."""
    tool = tools.match(name) or match_arguments(name, arguments, tools)
    if tool is None:
        return name, arguments, ()
    fixes: dict[str, None] = {} if tool.name == name else {"tool-name": None}
    named: JsonObject = {}
    properties, given = tool.properties, _unwrap_arguments(arguments, tool, fixes)
    for key, value in (given if given.keys() <= properties.keys() else _rename_arguments(given, tool, fixes)).items():
        value, more = coerce_to_schema(value, properties[key] if key in properties else tool.schema_of(key))
        if more:
            fixes.update(dict.fromkeys(more))
        if isinstance(value, str) and value[1:2] == ":" and (path := _restore_backslashes(key, value)) != value:
            value = path
            fixes["windows-path"] = None
        named[key] = value
    return tool.name, named, tuple(fixes)


def match_arguments(name: str, arguments: JsonObject, tools: ToolSet) -> Tool | None:
    """Return the only tool that takes exactly these arguments, if ``name`` cannot be the name of a tool.

    Small models write ``write_notes/todo.md`` for ``write_file``. A tool that deletes is never guessed.
    """
    if _NAME_LIKE.fullmatch(name):
        return None
    fitting = [tool for tool in tools.values() if tool.required and _takes(tool, arguments)]
    return fitting[0] if len(fitting) == 1 and fitting[0].effect != "delete" else None


def tool_with_arguments(arguments: JsonObject, tools: ToolSet) -> Tool | None:
    """Return the only tool that takes several arguments with exactly these names, for a message about a wrong name."""
    fitting = [tool for tool in tools.values() if {*tool.required} <= arguments.keys() <= tool.properties.keys()]
    return fitting[0] if len(fitting) == 1 and len(arguments) > 1 else None


def _takes(tool: Tool, arguments: JsonObject) -> bool:
    names = {key if key in tool.properties else match_parameter(key, tool) for key in arguments}
    return names <= tool.properties.keys() and names >= {*tool.required}


def resolve_call(name: str, arguments: Mapping[str, Json] | str, tools: ToolSet) -> ResolvedCall:
    """Return the validated call. Raises ToolError, with a message for the model, if the call is invalid."""
    tool = tools.match(name)
    if tool is None:
        raise ToolError(tools.explain_unknown(name))
    _, named, fixes = normalize_call(name, _parse_arguments(arguments, tool), tools)
    notes = tuple(f"read as a call to {tool.name}" for fix in fixes if fix == "tool-name")
    _reject_conflicts(named, tool)
    kept = _drop_nulls(named, tool)
    unknown = [key for key in kept if key not in (*tool.properties, *tool.unlisted) and not _is_open(tool)]
    _reject_changed_meaning(tool, {key: kept[key] for key in unknown}, tools)
    left_out = tuple(f"{tool.name} has no argument {key!r}; it was ignored" for key in unknown)
    final = {key: value for key, value in kept.items() if key not in unknown}
    return ResolvedCall(tool, final, _validate(tool, final, unknown), notes, left_out)


def is_valid(call: ToolCall, tools: ToolSet) -> bool:
    """Return whether the call names one of the tools and its arguments match the schema."""
    from jsonschema import ValidationError
    from referencing.exceptions import Unresolvable

    tool = tools.match(call.name)
    if tool is None:
        return False
    validator = validator_of(tool)
    try:
        if validator is not None:
            validator.validate(call.arguments)
    except (ValidationError, RecursionError):
        return False
    except (Unresolvable, re.error):
        pass  # an invalid schema is ignored
    return True


def validator_of(tool: Tool) -> Draft202012Validator | None:
    """Return a validator of the tool's parameters, or None if their schema is invalid."""
    return _validator(json.dumps(tool.parameters))


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator | None:
    """Return a validator, or None if ``schema`` is invalid. The result is cached, because checking a schema takes a
    hundred times as long as using it."""
    from jsonschema import Draft202012Validator, SchemaError
    from referencing.exceptions import Unresolvable

    parameters = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parameters)
    except (SchemaError, Unresolvable, RecursionError, re.error):
        return None
    return bounded_validator(parameters)


def _parse_arguments(arguments: Mapping[str, Json] | str, tool: Tool) -> JsonObject:
    try:
        unwrapped, _ = parse_arguments(arguments if isinstance(arguments, str | dict) else dict(arguments))
    except FormatError as error:
        raise ToolError(f"{tool.name}: {error}. {_describe_example(tool)}") from error
    return unwrapped


def _restore_backslashes(key: str, value: str) -> str:
    """Restore a Windows path: in ``"C:\\new\\test"`` JSON decodes a line break and a tab, which no path contains."""
    if not _WINDOWS_PATH.fullmatch(value) or not _names_path(key):
        return value
    return "".join(_ESCAPED_BY_ACCIDENT.get(char, char) for char in value)


def _names_path(key: str) -> bool:
    return any(word in key.lower() for word in _PATH_WORDS)


def _unwrap_arguments(arguments: JsonObject, tool: Tool, fixes: dict[str, None]) -> JsonObject:
    """Return the inner object of ``{"arguments": {...}}`` and ``{"read_file": {...}}``. It may also be JSON in a
    string, or be in a whole call of the same tool."""
    if len(arguments) == 2 and not arguments.keys() <= tool.properties.keys() and looks_like_call(arguments):
        return _unwrap_call(arguments, tool, fixes)
    if len(arguments) != 1:
        return arguments
    key, value = next(iter(arguments.items()))
    if key in tool.properties or key not in (*_WRAPPERS, tool.name) or match_parameter(key, tool):
        return arguments
    if isinstance(value, str):
        value = _decode_object(value, tool, fixes)
    if not isinstance(value, dict):
        return arguments
    fixes["arguments-key"] = None
    return value


def _unwrap_call(arguments: JsonObject, tool: Tool, fixes: dict[str, None]) -> JsonObject:
    """Return the inner arguments of ``{"name": ..., "arguments": {...}}``, a whole call of ``tool``."""
    try:
        (call,) = extract_calls(arguments, "arguments")
    except (FormatError, ValueError):
        return arguments
    if normalize_key(call.name) != normalize_key(tool.name):
        return arguments
    fixes["nested-function"] = None
    return call.arguments


def _decode_object(text: str, tool: Tool, fixes: dict[str, None]) -> Json:
    """Decode ``text`` if it is a JSON object whose keys are all parameters of ``tool``. Otherwise return None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(key in tool.properties or match_parameter(key, tool) for key in value):
        return None
    fixes["string-arguments"] = None
    return value


def _rename_arguments(arguments: JsonObject, tool: Tool, fixes: dict[str, None]) -> JsonObject:
    """Rename arguments to the tool's parameter names, and keep their order.

    A parameter's own name takes precedence over an alias, unless its value is empty. An alias with a contradicting
    value is not renamed, and `resolve_call` rejects it.
    """
    chosen = {key: value for key, value in arguments.items() if key in tool.properties and value not in (None, "")}
    renamed: JsonObject = {}
    for key, value in arguments.items():
        parameter = key if key in tool.properties else match_parameter(key, tool)
        if parameter is None or (parameter != key and _contradicts(chosen.get(parameter), value)):
            renamed[key] = value
        elif parameter == key:
            renamed.setdefault(key, value)
        else:
            fixes["argument-alias"] = None
            renamed[parameter] = value if value in (None, "") else chosen.setdefault(parameter, value)
        if parameter in chosen:
            renamed[parameter] = chosen[parameter]
    return renamed


def _contradicts(first: Json, second: Json) -> bool:
    return first not in (None, "") and second not in (None, "") and first != second


def match_parameter(key: str, tool: Tool) -> str | None:
    """Return the parameter of ``tool`` that ``key`` is a variant of. Return None unless exactly one matches."""
    spelt = normalize_key(key.rstrip(": "))  # Qwen3.6 writes "name:" for "name"
    same = [name for name in tool.properties if normalize_key(name) == spelt]
    if len(same) == 1:
        return same[0]
    for table in (tool.argument_aliases, COMMON_ARGUMENT_ALIASES):
        matches = [
            name
            for name in tool.properties
            if any(alias.replace("_", "").lower() == spelt for alias in table.get(name, ()))
        ]
        if len(matches) == 1:
            return matches[0]
    return None


def _reject_conflicts(arguments: JsonObject, tool: Tool) -> None:
    for key, value in arguments.items():
        parameter = None if key in tool.properties else match_parameter(key, tool)
        if parameter is not None and _contradicts(arguments.get(parameter), value):
            raise ToolError(
                f"{tool.name}: {parameter!r} and {key!r} mean the same but differ "
                f"({short_json(arguments[parameter])} and {short_json(value)}). Pass only {parameter!r}."
            )


def _reject_changed_meaning(tool: Tool, unknown: JsonObject, tools: ToolSet) -> None:
    """Reject unknown arguments that would change the call's effect: `write_file(append=true)` must not overwrite the
    file."""
    if tool.effect not in ("write", "delete"):
        return
    for key, value in unknown.items():
        if changes_meaning(tool, key, value):
            having = [other.name for other in tools.values() if other.effect == tool.effect and key in other.properties]
            instead = f"use a tool that has it ({', '.join(having)})" if having else "use another tool"
            raise ToolError(
                f"{tool.name} has no argument {key!r}. Nothing was done, because the call has a different effect "
                f"without {key!r}. Omit it to accept this, or {instead}."
            )


def changes_meaning(tool: Tool, key: str, value: Json) -> bool:
    """Return whether a tool that changes something would do something else if an unknown argument were ignored."""
    spelt = normalize_key(key)
    if value in (None, False, "", "false") or value in _CHANGING_ARGUMENTS.get(spelt, ()):
        return False
    return spelt in _CHANGING_ARGUMENTS or ("content" in tool.properties and spelt in _PARTIAL_ARGUMENTS)


def _drop_nulls(arguments: JsonObject, tool: Tool) -> JsonObject:
    """Drop optional arguments that are null, or a word for null unless the argument may be text."""

    def is_absent(key: str, value: Json) -> bool:
        types = schema_types(tool.properties.get(key, {}))
        if key in tool.required or "null" in types:
            return False
        is_word = isinstance(value, str) and "string" not in types and bool(types)
        return value is None or (is_word and value.strip().lower() in _NULL_WORDS)

    return {key: value for key, value in arguments.items() if not is_absent(key, value)}


def _is_open(tool: Tool) -> bool:
    """Return whether the tool accepts arguments that its schema does not name."""
    return tool.validate is None and not tool.properties


def _validate(tool: Tool, arguments: JsonObject, unknown: list[str]) -> ValidatedCall | None:
    if tool.validate is None:
        missing = [key for key in tool.required if key not in arguments]
        if missing:
            raise ToolError(
                _describe_problems(tool, [f"{key!r} is missing ({_type(tool, key)})" for key in missing], unknown)
            )
        return None
    from pydantic import ValidationError

    try:
        validated = tool.validate(arguments)
    except ValidationError as error:
        raise ToolError(_describe_problems(tool, list(_field_errors(error, tool)), unknown)) from error
    if not callable(getattr(validated, "operation", None)):
        raise result_error(
            tool.validate, "Tool.validate", validated, "an object with operation(), render() and notes()"
        )
    return validated


def _field_errors(error: ValidationError, tool: Tool) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        path = ".".join(str(part) for part in detail["loc"])
        top = str(detail["loc"][0]) if detail["loc"] else ""
        if detail["type"] == "missing":
            yield f"{path!r} is missing ({_type(tool, top)})" if top == path else f"{path!r} is missing"
        elif detail["type"] == "value_error":
            reason = str(detail["ctx"]["error"])
            yield f"{path!r}: {reason}" if path else reason
        else:
            yield f"{path!r} is {short_json(detail['input'])}: {_describe_field(detail, tool, top == path)}"


def _describe_field(detail: ErrorDetails, tool: Tool, is_top: bool) -> str:
    """Describe the expected type if the value does not match it. Otherwise describe the violated rule."""
    key, value = str(detail["loc"][0]) if detail["loc"] else "", detail["input"]
    if is_top and not has_schema_type(value, tool.properties.get(key, {})):
        return f"expected {_type(tool, key)}"
    rule: str = detail["msg"]
    return rule[:1].lower() + rule[1:]


def _describe_problems(tool: Tool, problems: list[str], unknown: list[str]) -> str:
    also = f" It has no argument {', '.join(map(repr, unknown))}." if unknown else ""
    return f"{tool.name}: {'; '.join(problems)}.{also} {_describe_example(tool)}"


def _type(tool: Tool, key: str) -> str:
    return describe_expected(tool.properties.get(key, {}))


def describe_expected(schema: Json) -> str:
    """Describe the values that ``schema`` accepts, for a message."""
    if not isinstance(schema, Mapping):
        return "any value"
    if isinstance(values := schema.get("enum"), list):
        more = ", ..." if len(values) > MAX_CHOICES else ""
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in values[:MAX_CHOICES]) + more
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    return " or ".join(sorted(schema_types(schema))) or "any value"


def _describe_example(tool: Tool) -> str:
    """Show the tool's own example only if its arguments are nested, because models copy the values of an example. The
    other example has the same arguments."""
    own = example_call(tool)
    is_nested = any(isinstance(value, dict | list) for value in own.values())
    optional = {key: f"your {key}" for key in own if key not in tool.required}
    shown = own if is_nested else example_call(replace(tool, example=None), optional)
    example = f"Example: {json.dumps(shown, ensure_ascii=False)}"
    return (
        example if tool.example is not None else f"Its arguments are: {', '.join(tool.properties) or 'none'}. {example}"
    )


def short_json(value: Json) -> str:
    """Convert a value to JSON for a message, truncated to 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
