"""Custom tools: Python functions with a description for the model.

::

    @tool
    def get_weather(city: str, days: int = 1) -> str:
        '''Forecast for a city.

        Args:
            city: Name of the city, in English.
        '''

    tool(Forecast, get_forecast)                    # a pydantic model, and a function that takes an instance
    tool(openai_or_mcp_definition, call_it)         # a definition, and a function that takes its parameters

The function may be async. If it returns a string, the model gets the string unchanged. Any other value is converted to
JSON, and an exception becomes an error result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, get_args, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.fields import FieldInfo

from adapter.core.argument_checks import check_types
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.tools.coercion import is_instance_of_types, list_types
from adapter.tools.operations import CallFunction, Effect, FunctionResult, Operation, Outcome
from adapter.tools.schema_simplify import simplify_schema
from adapter.tools.tool import Tool, ValidatedCall

Function: TypeAlias = Callable[..., object]
FunctionDescription: TypeAlias = "Function | type[BaseModel] | BaseModel | Mapping[str, Json] | Tool"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A validated call to a custom tool."""

    call: CallFunction

    def to_operation(self) -> Operation:
        return self.call

    def render(self, outcome: Outcome) -> tuple[str, Json]:
        assert isinstance(outcome, FunctionResult)
        return outcome.text, outcome.data

    def list_notes(self) -> tuple[str, ...]:
        return ()


@overload
def tool(
    description: FunctionDescription, function: Function | None = None, /, *, name: str = "", effect: Effect = "execute"
) -> Tool: ...
@overload
def tool(*, name: str = "", effect: Effect = "execute") -> Callable[[Function], Tool]: ...
def tool(
    description: FunctionDescription | None = None,
    function: Function | None = None,
    /,
    *,
    name: str = "",
    effect: Effect = "execute",
) -> Tool | Callable[[Function], Tool]:
    """Create a tool from a function. This can also be a decorator, with or without parentheses; the module's docstring
    shows all forms. Raises UsageError if the parameters cannot be described as JSON Schema.

    ``effect``: the kind of effect that the function has. The default ``"execute"`` needs approval like a command;
    ``"read"`` runs without approval. ``name``: replaces the name of the function, model or definition.
    """
    check_types("tool", name=(name, str))
    if not name.isprintable():
        raise UsageError(f"tool: name must consist of printable characters, got {name!r}")
    if effect not in get_args(Effect):
        raise UsageError(f"unknown effect {effect!r}; expected {', '.join(get_args(Effect))}")
    if description is None:
        return lambda decorated: tool(decorated, name=name, effect=effect)
    if isinstance(description, BaseModel):  # an MCP client's `Tool`
        description = description.model_dump(by_alias=True, exclude_none=True)
    if isinstance(description, Mapping | Tool):
        built = _from_definition(Tool.from_definition(description), _require_function(description, function))
    elif isinstance(description, type) and issubclass(description, BaseModel):
        built = _from_model(description, _require_function(description, function))
    else:
        built = _from_function(description, name)
    built = replace(built, name=name or built.name, effect=effect)
    return _bind_operations(built)


def with_runner(runner: str, built: Tool, notice: str = "") -> Tool:
    """Return ``built`` with ``runner`` as its external runner, such as ``the MCP server 'git'``. ``notice`` is a reason
    to request approval (see `CallFunction`)."""
    return _bind_operations(replace(built, runner=runner, notice=notice))


def _bind_operations(built: Tool) -> Tool:
    """Return ``built`` with a ``validate`` that adds the tool's name, effect, runner and notice to its operations."""
    validate, function = built.validate, built.function
    assert validate is not None
    assert function is not None

    def validate_and_bind(arguments: JsonObject) -> ValidatedCall:
        call = validate(arguments)
        assert isinstance(call, FunctionCall)
        return FunctionCall(
            replace(call.call, name=built.name, effect=built.effect, runner=built.runner, notice=built.notice)
        )

    return replace(built, validate=validate_and_bind)


def _require_function(description: object, function: Function | None) -> Function:
    if function is None:
        raise UsageError(
            f"{description!r} describes a tool without a function; pass the function as the second argument"
        )
    if not callable(function):
        raise UsageError(f"a tool's function must be callable, got {function!r}")
    return function


def _from_function(function: Function, name: str) -> Tool:
    function_name = getattr(function, "__name__", "")
    if not callable(function):
        raise UsageError(f"a tool must be a function, a Pydantic model or a tool definition, got {function!r}")
    if not (name or function_name.isidentifier()):
        raise UsageError(f"{function!r} has no name; pass name=..., or a named function")
    name = name or function_name
    from docstring_parser import parse

    docstring = parse(inspect.getdoc(function) or "")
    texts = {parameter.arg_name: parameter.description or "" for parameter in docstring.params}
    try:
        hints = get_type_hints(_find_annotated_callable(function), include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(
            f"{name}: cannot read the parameter types: {error}; pass a tool definition as the first argument and the "
            "function as the second"
        ) from error
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f"{name}: {parameter} cannot be passed by name; a tool accepts named parameters only")
        if parameter.name not in hints:
            raise UsageError(f"{name}: the parameter {parameter.name!r} needs a type annotation")
        fields[_FIELD_PREFIX + parameter.name] = (
            hints[parameter.name],
            _build_field(parameter, texts.get(parameter.name, "")),
        )
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, alias_generator=_get_parameter_name)
    try:
        model = create_model(name, __config__=config, **fields)
        schema = simplify_schema(model)
    except PydanticUserError as error:  # for example, a type that JSON cannot represent
        raise UsageError(f"{name}: its parameters cannot be described as JSON Schema: {error.message}") from error
    description = "\n\n".join(filter(None, (docstring.short_description, docstring.long_description)))

    def validate(arguments: JsonObject) -> ValidatedCall:
        values = model.model_validate(arguments)
        return FunctionCall(
            CallFunction(name, function, {_get_parameter_name(key): getattr(values, key) for key in fields})
        )

    return Tool(name, description, schema, validate=validate, function=function)


_FIELD_PREFIX = "given_"
"""Prefix for field names, because Pydantic reserves names that a parameter may have: ``model_config``, ``_any``."""


def _get_parameter_name(field: str) -> str:
    return field.removeprefix(_FIELD_PREFIX)


def _find_annotated_callable(function: Function) -> object:
    """Return the callable that has the annotations: the function, a partial's target, or ``__call__``."""
    if isinstance(function, partial):
        return _find_annotated_callable(function.func)
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def _build_field(parameter: inspect.Parameter, description: str) -> FieldInfo:
    default = ... if parameter.default is parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        return default
    field: FieldInfo = Field(default, description=description) if description else Field(default)
    return field


def _from_model(model: type[BaseModel], function: Function) -> Tool:
    def validate(arguments: JsonObject) -> ValidatedCall:
        value = model.model_validate(arguments)
        return FunctionCall(CallFunction(model.__name__, lambda: function(value), {}))

    description = inspect.cleandoc(model.__doc__ or "")
    return Tool(model.__name__, description, simplify_schema(model), validate=validate, function=function)


def _from_definition(defined: Tool, function: Function) -> Tool:
    def validate(arguments: JsonObject) -> ValidatedCall:
        problems = [
            {"type": "missing", "loc": (key,), "input": arguments} for key in defined.required if key not in arguments
        ]
        problems += [
            {"type": "value_error", "loc": (key,), "input": value, "ctx": {"error": ValueError(problem)}}
            for key, value in arguments.items()
            if (problem := _find_problem(value, defined.properties.get(key) or {}))
        ]
        if problems:
            raise ValidationError.from_exception_data(defined.name, problems)  # type: ignore[arg-type]
        return FunctionCall(CallFunction(defined.name, function, dict(arguments)))

    return replace(defined, validate=validate, function=function)


def _find_problem(value: Json, schema: Mapping[str, Json]) -> str:
    """Describe how a value violates the schema's types or choices, or return ""."""
    types = list_types(schema)
    if types and not is_instance_of_types(value, types):
        return f"expected {' or '.join(sorted(types))}, got {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {', '.join(map(repr, schema['enum']))}, got {value!r}"
    return ""
