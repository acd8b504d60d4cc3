"""Tools that the user defines in a tools file: parse and validate the entries, and convert calls to program runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError
from rapidfuzz import fuzz, process

from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.truncate import shorten
from adapter.core.validation_errors import simplify_message
from adapter.dialects import result_formatting
from adapter.dialects.tool_class import Rendered
from adapter.tools.argument_synonyms import DIRECTORY, PATH
from adapter.tools.bounded_validator import build_bounded_validator, find_violations
from adapter.tools.operations import Operation, Outcome, PathValue, ProgramArgument, ProgramOutput, RunProgram
from adapter.tools.schema_refs import resolve_references
from adapter.tools.tool import Tool

ENTRIES_KEY = "shellCommands"

MAX_MESSAGE = 200
"""Maximum length of a schema error, in characters."""

MAX_ENTRIES = 500
"""Maximum number of entries in a listing or a search by name."""

_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}|\{\(\s*([^()]+?)\s*\)\}")

_NAME = r"^[A-Za-z0-9_.-]{1,64}$"


def _inline_references(schema: JsonObject) -> JsonObject:
    """Return ``schema`` with its references inlined, so that none is fetched. Raises ValueError if it is invalid."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema, Draft202012Validator.FORMAT_CHECKER)
    except SchemaError as error:
        raise ValueError(
            f"is not a valid JSON Schema: {_format_path(error.absolute_path)}{shorten(error.message, MAX_MESSAGE)}"
        ) from None
    if schema.get("type", "object") != "object":
        raise ValueError(f"describes {schema['type']!r}; expected an object with the parameters as properties")
    resolved = resolve_references(schema)
    undeclared = [name for name in resolved.get("required", ()) if name not in resolved.get("properties", {})]
    if undeclared:
        raise ValueError(f"requires {', '.join(map(repr, undeclared))}, which {_suggest_name(undeclared[0], resolved)}")
    return {"type": "object", "properties": {}} | resolved


class ShellTool(BaseModel):
    """An entry in a tools file. The fields have the documented names, in snake case."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, strict=True)

    name: Annotated[str, Field(pattern=_NAME)]
    description: str = ""
    executable: Annotated[str, Field(min_length=1)]
    argument_template: list[list[str]] = Field(default=[])
    parameters: Annotated[JsonObject, AfterValidator(_inline_references)] = Field(
        default={"type": "object", "properties": {}}
    )
    echo_output: bool = False
    truncate_output: bool = False
    exclusive_argument_template: bool = False
    opt_in: bool = False

    @model_validator(mode="after")
    def _check_placeholders(self) -> ShellTool:
        for index, group in enumerate(self.argument_template):
            for token in group:
                for name in _list_placeholder_names(token):
                    if name not in self.parameters["properties"]:
                        problem = _suggest_name(name, self.parameters)
                        raise ValueError(f"argumentTemplate[{index}]: the placeholder in {token!r} {problem}")
        return self

    def build_tool(self) -> Tool:
        tokens = [token for group in self.argument_template for token in group]
        paths = {path for token in tokens for _, path in _PLACEHOLDER.findall(token) if path}
        return Tool(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            argument_aliases=dict.fromkeys(paths, (*PATH, *DIRECTORY, "target")) if len(paths) == 1 else {},
            effect="execute",
            validate=self.validate_call,
        )

    def validate_call(self, arguments: JsonObject) -> ShellToolCall:
        """Validate a call. Raises pydantic's ValidationError if the arguments do not match ``parameters``."""
        missing = [name for name in self.parameters.get("required", ()) if name not in arguments]
        details = [InitErrorDetails(type="missing", loc=(name,), input=arguments) for name in missing]
        for problem in find_violations(build_bounded_validator(self.parameters), arguments):
            if problem.validator == "required" and not problem.absolute_path:
                continue
            kind = PydanticCustomError("value_error", "{error}", {"error": shorten(problem.message, MAX_MESSAGE)})
            details.append(InitErrorDetails(type=kind, loc=tuple(problem.absolute_path), input=problem.instance))
        if details:
            raise ValidationError.from_exception_data(self.name, details)
        defaults = {
            name: schema["default"] for name, schema in self.parameters["properties"].items() if "default" in schema
        }
        return ShellToolCall(self, defaults | arguments)


def parse_entries(text: str, source: str) -> list[ShellTool]:
    """Parse a tools file. Raises UsageError if it is invalid; the message names ``source``, the tool and the field."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} is not valid JSON: {explain_read_error(error)}") from error
    if isinstance(content, dict):
        content = content.get(ENTRIES_KEY, [content])
    if not isinstance(content, list):
        raise UsageError(f'{source} must contain {{"{ENTRIES_KEY}": [...]}} or a list of tools')
    entries = [parse_entry(entry, f"{source}, tool {number}") for number, entry in enumerate(content, 1)]
    names = [entry.name for entry in entries]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise UsageError(f"{source} defines {duplicate!r} more than once; names must be unique")
    return entries


def parse_entry(entry: Json, source: str) -> ShellTool:
    """Parse one entry. Raises UsageError if it is invalid; the message lists every invalid field."""
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        source = f"{source} ({escape_for_display(entry['name'])})"
    try:
        return ShellTool.model_validate(entry)
    except ValidationError as error:
        problems = "; ".join(
            _describe_field_problem(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors()
        )
        raise UsageError(f"{source}: {problems}") from error


_FIELDS = [to_camel(name) for name in ShellTool.model_fields]


def _describe_field_problem(index: Sequence[str | int], kind: str, message: str) -> str:
    if not index:
        return simplify_message(message)
    field = _format_path(index).removesuffix(": ")
    if kind == "extra_forbidden":
        near = process.extractOne(str(index[0]), _FIELDS, scorer=fuzz.ratio, score_cutoff=60)
        return f"unknown field {field!r}; " + (f"did you mean {near[0]!r}?" if near else f"expected one of {_FIELDS}")
    if kind == "missing":
        return f"{field!r} is missing"
    return f"{field!r}: {simplify_message(message)}"


def _suggest_name(name: str, parameters: JsonObject) -> str:
    known = list(parameters.get("properties", {}))
    near = process.extractOne(name, known, scorer=fuzz.ratio, score_cutoff=50)
    hint = f" (did you mean {near[0]!r}?)" if near else f"; available: {', '.join(known) or 'none'}"
    return f"is not one of its parameters{hint}"


def _format_path(path: Iterable[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return f"{text}: " if text else ""


@dataclass(frozen=True, slots=True)
class ShellToolCall:
    """A validated call to a `ShellTool`."""

    tool: ShellTool
    values: JsonObject

    def to_operation(self) -> Operation:
        return RunProgram(
            program=self.tool.executable,
            arguments=tuple(self._build_arguments()),
            echo=self.tool.echo_output,
            slice_output=self.tool.truncate_output,
        )

    def render(self, run: Outcome) -> Rendered:
        assert isinstance(run, ProgramOutput)
        data: JsonObject = {"exitCode": run.exit_code, "output": run.output}
        if run.skipped_lines:
            data |= {"skippedLines": run.skipped_lines, "regex": list(run.patterns)}
        return result_formatting.format_program(run), data

    def list_notes(self) -> tuple[str, ...]:
        return ()

    def _build_arguments(self) -> Iterator[ProgramArgument]:
        """Yield the arguments. Raises ToolError if a value would be an option, or if no exclusive group is complete."""
        complete_groups = [group for group in self.tool.argument_template if self._is_complete(group)]
        if self.tool.exclusive_argument_template:
            if not complete_groups and self.tool.argument_template:
                ways = " or ".join(", ".join(sorted(_list_group(group))) for group in self.tool.argument_template)
                raise ToolError(f"{self.tool.name} needs more arguments: expected {ways}. Nothing was run.")
            complete_groups = complete_groups[:1]
        only_operands = False
        for group in complete_groups:
            for token in group:
                for word in self._fill_token(token):
                    if not only_operands:
                        self._reject_option(token, word)
                    yield word
                only_operands = only_operands or token == "--"

    def _is_complete(self, group: Sequence[str]) -> bool:
        return all(self.values.get(name) not in (None, []) for name in _list_group(group))

    def _fill_token(self, token: str) -> Iterator[ProgramArgument]:
        """Replace the placeholders in a token. If a value is an array, yield one argument per item."""
        lists = [name for name in _list_placeholder_names(token) if isinstance(self.values[name], list)]
        if len(set(lists)) > 1:
            raise ToolError(f"{self.tool.name} cannot put two lists into one argument ({token!r}); nothing was run")
        for item in self.values[lists[0]] if lists else [None]:
            yield tuple(_fill_pieces(token, self.values | ({lists[0]: item} if lists else {})))

    def _reject_option(self, token: str, word: ProgramArgument) -> None:
        first = next((piece for piece in word if piece != ""), "")
        if not token.startswith("-") and isinstance(first, str) and first.startswith("-"):
            names = ", ".join(_list_placeholder_names(token))
            raise ToolError(
                f"{self.tool.name}: {names} is {escape_for_display(first[:60])!r}, which {self.tool.executable} would "
                "treat as an option. Nothing was run; pass a value that does not begin with '-'."
            )


def _fill_pieces(token: str, values: Mapping[str, Json]) -> Iterator[str | PathValue]:
    end = 0
    for match in _PLACEHOLDER.finditer(token):
        yield token[end : match.start()]
        value, path = match.groups()
        yield _to_text(values[value]) if value else PathValue(_to_text(values[path]))
        end = match.end()
    yield token[end:]


def _to_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _list_placeholder_names(token: str) -> list[str]:
    return [value or path for value, path in _PLACEHOLDER.findall(token)]


def _list_group(group: Sequence[str]) -> set[str]:
    return {name for token in group for name in _list_placeholder_names(token)}
