"""Tools of the user's own: a function, and what describes it to a model.

::

    @tool
    def get_weather(city: str, days: int = 1) -> str:
        '''Forecast for a city.

        Args:
            city: Its name, in English.
        '''

    tool(Forecast, get_forecast)                    # a pydantic model, and a function that takes one
    tool(openai_or_mcp_definition, call_it)         # a definition, and a function that takes its parameters

The function may be async. What it returns goes to the model: text as it is,
everything else as JSON; what it raises becomes an error result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, get_args, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.fields import FieldInfo

from adapter.core.arguments import check_types
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.tools.coercion import is_instance_of_types, schema_types
from adapter.tools.operations import CallFunction, Effect, FunctionResult, Operation, Outcome
from adapter.tools.schema_simplify import simplify_schema
from adapter.tools.tool import Tool, ValidatedCall

Function: TypeAlias = Callable[..., object]
FunctionDescription: TypeAlias = "Function | type[BaseModel] | BaseModel | Mapping[str, Json] | Tool"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A validated call of a function."""

    call: CallFunction

    def operation(self) -> Operation:
        return self.call

    def render(self, outcome: Outcome) -> tuple[str, Json]:
        assert isinstance(outcome, FunctionResult)
        return outcome.text, outcome.data

    def notes(self) -> tuple[str, ...]:
        return ()


@overload
def tool(
    described: FunctionDescription, function: Function | None = None, /, *, name: str = "", effect: Effect = "execute"
) -> Tool: ...
@overload
def tool(*, name: str = "", effect: Effect = "execute") -> Callable[[Function], Tool]: ...
def tool(
    described: FunctionDescription | None = None,
    function: Function | None = None,
    /,
    *,
    name: str = "",
    effect: Effect = "execute",
) -> Tool | Callable[[Function], Tool]:
    """A tool that runs a function; see the module for its three forms. Also a decorator, with or without brackets.

    ``effect`` says what the function does to the world; by default it is asked
    for as a command is, ``"read"`` lets it run unasked. ``name``: other than the function's, model's or definition's.
    Raises UsageError for a function whose parameters cannot be described.
    """
    check_types("tool", name=(name, str))
    if not name.isprintable():
        raise UsageError(f"tool: name must be printable characters, got {name!r}")
    if effect not in get_args(Effect):
        raise UsageError(f"unknown effect {effect!r}; expected {', '.join(get_args(Effect))}")
    if described is None:
        return lambda decorated: tool(decorated, name=name, effect=effect)
    if isinstance(described, BaseModel):  # an MCP client's `Tool`
        described = described.model_dump(by_alias=True, exclude_none=True)
    if isinstance(described, Mapping | Tool):
        made = _from_definition(Tool.from_definition(described), _required(described, function))
    elif isinstance(described, type) and issubclass(described, BaseModel):
        made = _from_model(described, _required(described, function))
    else:
        made = _from_function(described, name)
    made = replace(made, name=name or made.name, effect=effect)
    return _bound(made)


def with_runner(runner: str, made: Tool, notice: str = "") -> Tool:
    """``made``, whose function only asks ``runner`` to do it: ``the MCP server 'git'``. ``notice``: see `Tool`."""
    return _bound(replace(made, runner=runner, notice=notice))


def _bound(made: Tool) -> Tool:
    """The tool with its own name, effect and runner in the operations it makes."""
    validate, function = made.validate, made.function
    assert validate is not None
    assert function is not None

    def checked(arguments: JsonObject) -> ValidatedCall:
        call = validate(arguments)
        assert isinstance(call, FunctionCall)
        return FunctionCall(
            replace(call.call, name=made.name, effect=made.effect, runner=made.runner, notice=made.notice)
        )

    return replace(made, validate=checked)


def _required(described: object, function: Function | None) -> Function:
    if function is None:
        raise UsageError(f"{described!r} describes a tool, but nothing runs it; give the function as second argument")
    if not callable(function):
        raise UsageError(f"the function of a tool must be a function, got {function!r}")
    return function


def _from_function(function: Function, name: str) -> Tool:
    own = getattr(function, "__name__", "")
    if not callable(function) or not (name or own.isidentifier()):
        raise UsageError(f"{function!r} is no named function; give a function, a model or a definition, or a name")
    name = name or own
    from docstring_parser import parse

    documented = parse(inspect.getdoc(function) or "")
    texts = {parameter.arg_name: parameter.description or "" for parameter in documented.params}
    try:
        hints = get_type_hints(_annotated(function), include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(
            f"{name}: its types cannot be read: {error}; give a definition as the first argument"
        ) from error
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f"{name}: {parameter} cannot be given by name; a tool takes named parameters only")
        if parameter.name not in hints:
            raise UsageError(f"{name}: the parameter {parameter.name!r} has no type; a model must be told one")
        fields[_GIVEN + parameter.name] = (hints[parameter.name], _field(parameter, texts.get(parameter.name, "")))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, alias_generator=_parameter_name)
    try:
        model = create_model(name, __config__=config, **fields)
        schema = simplify_schema(model)
    except PydanticUserError as error:  # a type that JSON has no value for, and the like
        raise UsageError(f"{name}: its parameters cannot be described to a model: {error.message}") from error
    description = "\n\n".join(filter(None, (documented.short_description, documented.long_description)))

    def validate(arguments: JsonObject) -> ValidatedCall:
        values = model.model_validate(arguments)
        return FunctionCall(
            CallFunction(name, function, {_parameter_name(key): getattr(values, key) for key in fields})
        )

    return Tool(name, description, schema, validate=validate, function=function)


_GIVEN = "given_"
"""Before the name of a parameter, which may be one that pydantic keeps for itself: ``model_config``, ``_any``."""


def _parameter_name(field: str) -> str:
    return field.removeprefix(_GIVEN)


def _annotated(function: Function) -> object:
    """What has the types of ``function``: itself, what a partial calls, or an object's ``__call__``."""
    if isinstance(function, partial):
        return _annotated(function.func)
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def _field(parameter: inspect.Parameter, description: str) -> FieldInfo:
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
            if (problem := _problem(value, defined.properties.get(key) or {}))
        ]
        if problems:
            raise ValidationError.from_exception_data(defined.name, problems)  # type: ignore[arg-type]
        return FunctionCall(CallFunction(defined.name, function, dict(arguments)))

    return replace(defined, validate=validate, function=function)


def _problem(value: Json, schema: Mapping[str, Json]) -> str:
    """What is wrong with the value of a parameter, as far as the schema's type and choices say; "" for nothing."""
    types = schema_types(schema)
    if types and not is_instance_of_types(value, types):
        return f"expected {' or '.join(sorted(types))}, got {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {', '.join(map(repr, schema['enum']))}, got {value!r}"
    return ""
