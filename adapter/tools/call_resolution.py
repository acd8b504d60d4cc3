"""From a call as the model wrote it to one that is safe to run.

`normalise` changes only what is certain: spelling of the name, other names of
arguments, types that convert without loss. It never fails, so a parser can use
it. `resolve` then decides: it validates and answers what is wrong in words the
model can act on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from adapter.core.callbacks import wrong_answer
from adapter.core.errors import FormatError, ToolError
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.tools import argument_synonyms
from adapter.tools.argument_synonyms import aliases_besides
from adapter.tools.call_shapes import parse_arguments
from adapter.tools.coercion import coerce_to_schema, has_schema_type, schema_types
from adapter.tools.example_calls import example_call
from adapter.tools.tool import Tool, ToolSet, ValidatedCall

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

COMMON_ARGUMENT_ALIASES: dict[str, tuple[str, ...]] = {
    name: aliases_besides(name, names)
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
"""Names that models give to common parameters, whatever the tool calls them. A tool's own aliases come first."""

_WRAPPERS = ("arguments", "parameters", "args", "input", "params", "kwargs", "properties")
_ESCAPED_BY_ACCIDENT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/\n\t\r\x08\f][^\"<>|?*]*")
_PATH_WORDS = ("path", "file", "dir", "folder", "cwd")
_WORDS_FOR_NULL = ("null", "none", "undefined", "")

_OTHERWISE = {"append": (), "dryrun": (), "preview": (), "mode": ("w", "wt", "write", "overwrite", "create", "replace")}
_PART_OF_FILE = ("startline", "endline", "insertline", "line", "position", "offset")
"""Arguments without which a change would not be the one that was meant, spelt without separators: of all tools that
change something, with the values that ask for nothing else; and of those that write a file whole."""


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A call that names a tool of this session and whose arguments fit it.

    ``validated`` is None for a tool that has no validation of its own (a client's). ``notes``: what was taken otherwise
    than it was written; ``left_out``: what was not taken at all, which the model has to know.
    """

    tool: Tool
    arguments: JsonObject
    validated: ValidatedCall | None
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def normalize_call(name: str, arguments: JsonObject, tools: ToolSet) -> tuple[str, JsonObject, tuple[str, ...]]:
    """The tool's own name, its own argument names and its types, as far as that is certain; and the fixes."""
    tool = tools.match(name)
    if tool is None:
        return name, arguments, ()
    fixes: dict[str, None] = {} if tool.name == name else {"tool-name": None}
    named: JsonObject = {}
    properties, given = tool.properties, _unwrapped(arguments, tool, fixes)
    for key, value in (given if given.keys() <= properties.keys() else _renamed(given, tool, fixes)).items():
        value, more = coerce_to_schema(value, properties.get(key, {}))
        if more:
            fixes.update(dict.fromkeys(more))
        if isinstance(value, str) and value[1:2] == ":" and (path := _with_backslashes(key, value)) != value:
            value = path
            fixes["windows-path"] = None
        named[key] = value
    return tool.name, named, tuple(fixes)


def resolve_call(name: str, arguments: Mapping[str, Json] | str, tools: ToolSet) -> ResolvedCall:
    """The invocation that a call asks for. Raises ToolError with a message for the model."""
    tool = tools.match(name)
    if tool is None:
        raise ToolError(tools.explain_unknown(name))
    _, named, fixes = normalize_call(name, _as_arguments(arguments, tool), tools)
    notes = tuple(f"read as a call of {tool.name}" for fix in fixes if fix == "tool-name")
    _refuse_conflicts(named, tool)
    kept = _without_nulls(named, tool)
    unknown = [key for key in kept if key not in (*tool.properties, *tool.unlisted) and not _is_open(tool)]
    _refuse_another_change(tool, {key: kept[key] for key in unknown}, tools)
    left_out = tuple(f"{tool.name} has no argument {key!r}: it was left out" for key in unknown)
    final = {key: value for key, value in kept.items() if key not in unknown}
    return ResolvedCall(tool, final, _validated(tool, final, unknown), notes, left_out)


def is_valid(call: ToolCall, tools: ToolSet) -> bool:
    """Whether the call names one of the tools and its arguments are what the schema asks for."""
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
        pass  # a schema that is none says nothing
    return True


def validator_of(tool: Tool) -> Draft202012Validator | None:
    """Of its parameters; None where they are no schema."""
    return _validator(json.dumps(tool.parameters))


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator | None:
    """None where ``schema`` is none. To find that out takes a hundred times as long as to use it."""
    from jsonschema import Draft202012Validator, SchemaError
    from referencing.exceptions import Unresolvable

    parameters = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parameters)
    except (SchemaError, Unresolvable, RecursionError, re.error):
        return None
    return Draft202012Validator(parameters)


def _as_arguments(arguments: Mapping[str, Json] | str, tool: Tool) -> JsonObject:
    try:
        unwrapped, _ = parse_arguments(arguments if isinstance(arguments, str | dict) else dict(arguments))
    except FormatError as error:
        raise ToolError(f"{tool.name}: {error}. {_example(tool)}") from error
    return unwrapped


def _with_backslashes(key: str, value: str) -> str:
    """A Windows path as it was meant: in ``"C:\\new\\test"`` JSON reads a line break and a tab, which no path holds."""
    if not _WINDOWS_PATH.fullmatch(value) or not _names_path(key):
        return value
    return "".join(_ESCAPED_BY_ACCIDENT.get(char, char) for char in value)


def _names_path(key: str) -> bool:
    return any(word in key.lower() for word in _PATH_WORDS)


def _unwrapped(arguments: JsonObject, tool: Tool, fixes: dict[str, None]) -> JsonObject:
    """The inner object of ``{"arguments": {...}}`` and of ``{"read_file": {...}}``, also as JSON in a string."""
    if len(arguments) != 1:
        return arguments
    key, value = next(iter(arguments.items()))
    if key in tool.properties or key not in (*_WRAPPERS, tool.name) or match_parameter(key, tool):
        return arguments
    if isinstance(value, str):
        value = _object_in(value, tool, fixes)
    if not isinstance(value, dict):
        return arguments
    fixes["arguments-key"] = None
    return value


def _object_in(text: str, tool: Tool, fixes: dict[str, None]) -> Json:
    """The object that ``text`` is as JSON, if it names parameters of ``tool`` and nothing else."""
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


def _renamed(arguments: JsonObject, tool: Tool, fixes: dict[str, None]) -> JsonObject:
    """Arguments under the tool's own names, in the model's order.

    An alias gives way to the name itself unless that is empty; one that would
    contradict it is left as it is, for `resolve` to refuse.
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
    """The parameter of ``tool`` that ``key`` is another name of; None when there is none, or more than one."""
    spelt = key.rstrip(": ").replace("_", "").replace("-", "").lower()  # Qwen3.6 writes "name:" for "name"
    same = [name for name in tool.properties if name.replace("_", "").replace("-", "").lower() == spelt]
    if len(same) == 1:
        return same[0]
    for table in (tool.argument_aliases, COMMON_ARGUMENT_ALIASES):
        found = [
            name
            for name in tool.properties
            if any(alias.replace("_", "").lower() == spelt for alias in table.get(name, ()))
        ]
        if len(found) == 1:
            return found[0]
    return None


def _refuse_conflicts(arguments: JsonObject, tool: Tool) -> None:
    for key, value in arguments.items():
        parameter = None if key in tool.properties else match_parameter(key, tool)
        if parameter is not None and _contradicts(arguments.get(parameter), value):
            raise ToolError(
                f"{tool.name}: {parameter!r} and {key!r} mean the same but differ "
                f"({_short(arguments[parameter])} and {_short(value)}). Give only {parameter!r}."
            )


def _refuse_another_change(tool: Tool, unknown: JsonObject, tools: ToolSet) -> None:
    """Of a tool that changes something: `write_file(append=true)` is no overwriting of the file."""
    if tool.effect not in ("write", "delete"):
        return
    for key, value in unknown.items():
        spelt = key.replace("_", "").replace("-", "").lower()
        is_meant = value in (None, False, "", "false") or value in _OTHERWISE.get(spelt, ())
        if not is_meant and (spelt in _OTHERWISE or ("content" in tool.properties and spelt in _PART_OF_FILE)):
            having = [other.name for other in tools.values() if other.effect == tool.effect and key in other.properties]
            instead = f"use a tool that has it ({', '.join(having)})" if having else "use another tool"
            raise ToolError(
                f"{tool.name} has no argument {key!r}: nothing was done, as it would be another change. "
                f"Leave {key!r} out if that one is meant, or {instead}"
            )


def _without_nulls(arguments: JsonObject, tool: Tool) -> JsonObject:
    """Optional arguments that are null, or a word for null where no text is expected, count as absent."""

    def is_absent(key: str, value: Json) -> bool:
        types = schema_types(tool.properties.get(key, {}))
        if key in tool.required or "null" in types:
            return False
        is_word = isinstance(value, str) and "string" not in types and bool(types)
        return value is None or (is_word and value.strip().lower() in _WORDS_FOR_NULL)

    return {key: value for key, value in arguments.items() if not is_absent(key, value)}


def _is_open(tool: Tool) -> bool:
    """Whether the tool takes arguments that its schema does not name."""
    return tool.validate is None and not tool.properties


def _validated(tool: Tool, arguments: JsonObject, unknown: list[str]) -> ValidatedCall | None:
    if tool.validate is None:
        missing = [key for key in tool.required if key not in arguments]
        if missing:
            raise ToolError(_complaint(tool, [f"{key!r} is missing ({_type(tool, key)})" for key in missing], unknown))
        return None
    from pydantic import ValidationError

    try:
        validated = tool.validate(arguments)
    except ValidationError as error:
        raise ToolError(_complaint(tool, list(_field_errors(error, tool)), unknown)) from error
    if not callable(getattr(validated, "operation", None)):
        raise wrong_answer(
            tool.validate, "Tool.validate", validated, "an object with operation(), render() and notes()"
        )
    return validated


def _field_errors(error: ValidationError, tool: Tool) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        place = ".".join(str(part) for part in detail["loc"])
        top = str(detail["loc"][0]) if detail["loc"] else ""
        if detail["type"] == "missing":
            yield f"{place!r} is missing ({_type(tool, top)})" if top == place else f"{place!r} is missing"
        elif detail["type"] == "value_error":
            reason = str(detail["ctx"]["error"])
            yield f"{place!r}: {reason}" if place else reason
        else:
            yield f"{place!r} is {_short(detail['input'])}: {_expected(detail, tool, top == place)}"


def _expected(detail: ErrorDetails, tool: Tool, is_top: bool) -> str:
    """What the schema says of an argument; where a value breaks another rule than that, the rule."""
    key, value = str(detail["loc"][0]) if detail["loc"] else "", detail["input"]
    if is_top and not has_schema_type(value, tool.properties.get(key, {})):
        return f"expected {_type(tool, key)}"
    rule: str = detail["msg"]
    return rule[:1].lower() + rule[1:]


def _complaint(tool: Tool, problems: list[str], unknown: list[str]) -> str:
    also = f" It has no argument {', '.join(map(repr, unknown))}." if unknown else ""
    return f"{tool.name}: {'; '.join(problems)}.{also} {_example(tool)}"


def _type(tool: Tool, key: str) -> str:
    schema = tool.properties.get(key, {})
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    return " or ".join(sorted(schema_types(schema))) or "any value"


def _example(tool: Tool) -> str:
    example = f"Example: {json.dumps(example_call(tool), ensure_ascii=False)}"
    return (
        example if tool.example is not None else f"Its arguments are: {', '.join(tool.properties) or 'none'}. {example}"
    )


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
