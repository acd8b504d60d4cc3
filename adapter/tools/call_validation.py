"""Validate tool calls after `call_normalization`. The errors explain to the model how to fix the call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from adapter.core.callback_checks import build_result_error
from adapter.core.errors import FormatError, ToolError
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.core.text.truncate import shorten
from adapter.tools.argument_synonyms import normalize_key
from adapter.tools.bounded_validator import build_bounded_validator, find_violations
from adapter.tools.call_normalization import is_contradiction, match_parameter, normalize_call
from adapter.tools.coercion import has_schema_type, list_types
from adapter.tools.decoded_json_calls import parse_arguments
from adapter.tools.example_calls import build_example_call
from adapter.tools.signatures import format_parameters
from adapter.tools.tool import Tool, ValidatedCall
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MAX_PARAMETERS = 400
"""Maximum length, in characters, of the list of parameters in a message."""
MAX_CHOICES = 12
"""Maximum number of an enum's values in a message."""

_CHANGING_ARGUMENTS = {
    **dict.fromkeys(("append", "dryrun", "preview"), ()),
    "mode": ("w", "wt", "write", "overwrite", "create", "replace"),
}
_PARTIAL_ARGUMENTS = ("startline", "endline", "insertline", "line", "position", "offset")
"""Unknown arguments that would change a call's effect, as names without separators.

`_CHANGING_ARGUMENTS` apply to every tool that changes files; their values make no difference. `_PARTIAL_ARGUMENTS`
apply to tools that write a whole file.
"""


@dataclass(frozen=True, slots=True)
class MatchedCall:
    """A call to one of the session's tools, with valid arguments."""

    tool: Tool
    arguments: JsonObject
    validated: ValidatedCall | None
    """The validated call, or None for a client's tool, which has no validation."""
    notes: tuple[str, ...] = ()
    """Corrections made to the call, one sentence each, for the model."""
    left_out: tuple[str, ...] = ()
    """Arguments that were ignored, one sentence each, for the model."""


def validate_call(name: str, arguments: Mapping[str, Json] | str, tools: ToolSet) -> MatchedCall:
    """Match a call to one of ``tools`` and validate it. Raises ToolError with a message for the model."""
    tool = tools.match(name)
    if tool is None:
        raise ToolError(tools.explain_unknown(name))
    _, named, repairs = normalize_call(name, _parse_arguments(arguments, tool), tools)
    notes = tuple(f"read as a call to {tool.name}" for repair in repairs if repair == "tool-name")
    _reject_conflicts(named, tool)
    known = (*tool.properties, *tool.unlisted)
    named = {key: value for key, value in named.items() if key in known or value is not None}
    unknown = [key for key in named if key not in known and not _is_open(tool)]
    _reject_changed_meaning(tool, {key: named[key] for key in unknown}, tools)
    left_out = tuple(f"{tool.name} has no argument {key!r}; it was ignored" for key in unknown)
    final = {key: value for key, value in named.items() if key not in unknown}
    return MatchedCall(tool, final, _validate(tool, final, unknown), notes, left_out)


def is_valid(call: ToolCall, tools: ToolSet) -> bool:
    """Return whether the call names a tool and, if the schema is valid, its arguments match the schema."""
    tool = tools.match(call.name)
    if tool is None:
        return False
    validator = find_validator(tool)
    return validator is None or not find_violations(validator, call.arguments)


def find_validator(tool: Tool) -> Draft202012Validator | None:
    """Return a validator for the tool's parameters, or None if their schema is invalid."""
    return _build_validator(json.dumps(tool.parameters))


@lru_cache(maxsize=256)
def _build_validator(schema: str) -> Draft202012Validator | None:
    """Return a validator, or None for an invalid schema. The result is cached, because checking a schema is slow."""
    from jsonschema import Draft202012Validator, SchemaError
    from referencing.exceptions import Unresolvable

    parameters = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parameters)
    except (SchemaError, Unresolvable, RecursionError, re.error):
        return None
    return build_bounded_validator(parameters)


def _parse_arguments(arguments: Mapping[str, Json] | str, tool: Tool) -> JsonObject:
    try:
        unwrapped, _ = parse_arguments(arguments)
    except FormatError as error:
        raise ToolError(f"{tool.name}: {error}. {_describe_example(tool)}") from error
    return unwrapped


def _reject_conflicts(arguments: JsonObject, tool: Tool) -> None:
    for key, value in arguments.items():
        parameter = None if key in tool.properties else match_parameter(key, tool)
        if parameter is not None and is_contradiction(arguments.get(parameter), value):
            raise ToolError(
                f"{tool.name}: {parameter!r} and {key!r} mean the same but differ "
                f"({shorten_json(arguments[parameter])} and {shorten_json(value)}). Pass only {parameter!r}."
            )


def _reject_changed_meaning(tool: Tool, unknown: JsonObject, tools: ToolSet) -> None:
    """Raise ToolError for an unknown argument that matters, as in ``write_file(append=true)``."""
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
    """Return whether ignoring the unknown argument ``key`` would change the effect of a call to ``tool``."""
    spelt = normalize_key(key)
    if value in (None, False, "", "false") or value in _CHANGING_ARGUMENTS.get(spelt, ()):
        return False
    return spelt in _CHANGING_ARGUMENTS or ("content" in tool.properties and spelt in _PARTIAL_ARGUMENTS)


def _is_open(tool: Tool) -> bool:
    """Return whether the tool accepts arguments that are not in its schema."""
    return tool.validate is None and not tool.properties


def _validate(tool: Tool, arguments: JsonObject, unknown: list[str]) -> ValidatedCall | None:
    if tool.validate is None:
        missing = [key for key in tool.required if key not in arguments]
        problems = [f"{key!r} is missing ({_describe_type(tool, key)})" for key in missing]
        if problems:
            raise ToolError(_describe_problems(tool, arguments, problems, unknown))
        return None
    from pydantic import ValidationError

    try:
        validated = tool.validate(arguments)
    except ValidationError as error:
        wrong = {str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"]}
        right = {name: value for name, value in arguments.items() if wrong and name not in wrong}
        raise ToolError(_describe_problems(tool, right, list(_iter_field_errors(error, tool)), unknown)) from error
    if not callable(getattr(validated, "to_operation", None)):
        raise build_result_error(
            tool.validate, "Tool.validate", validated, "an object with to_operation(), render() and list_notes()"
        )
    return validated


def _iter_field_errors(error: ValidationError, tool: Tool) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        path = ".".join(str(part) for part in detail["loc"])
        top = str(detail["loc"][0]) if detail["loc"] else ""
        if detail["type"] == "missing":
            yield f"{path!r} is missing ({_describe_type(tool, top)})" if top == path else f"{path!r} is missing"
        elif detail["type"] == "value_error":
            reason = str(detail["ctx"]["error"])
            yield f"{path!r}: {reason}" if path else reason
        else:
            yield f"{path!r} is {shorten_json(detail['input'])}: {_describe_field(detail, tool, top == path)}"


def _describe_field(detail: ErrorDetails, tool: Tool, is_top: bool) -> str:
    """Return the expected type if the value has another type. Otherwise, return the violated rule."""
    key, value = str(detail["loc"][0]) if detail["loc"] else "", detail["input"]
    if is_top and not has_schema_type(value, tool.properties.get(key, {})):
        return f"expected {_describe_type(tool, key)}"
    rule: str = detail["msg"]
    return rule[:1].lower() + rule[1:]


def _describe_problems(tool: Tool, arguments: JsonObject, problems: list[str], unknown: list[str]) -> str:
    also = f" It has no argument {', '.join(map(repr, unknown))}." if unknown else ""
    return f"{tool.name}: {'; '.join(problems)}.{also} {_describe_example(tool, arguments)}"


def _describe_type(tool: Tool, key: str) -> str:
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
    return " or ".join(sorted(list_types(schema))) or "any value"


def _describe_example(tool: Tool, arguments: Mapping[str, Json] | None = None) -> str:
    """Return an example call with the model's valid ``arguments``, or the parameters if a value is unknown."""
    example = build_example_call(tool, arguments) if arguments else None
    if example is None:
        return f"Its parameters: {shorten(format_parameters(tool), MAX_PARAMETERS) or 'none'}."
    return f"Example: {json.dumps(example, ensure_ascii=False)}"


def shorten_json(value: Json) -> str:
    """Return a value as JSON for a message, truncated to 60 characters."""
    return shorten(json.dumps(value, ensure_ascii=False, default=str), 60)
