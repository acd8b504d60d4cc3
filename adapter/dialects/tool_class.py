"""How a dialect is written: one small class per tool.

::

    class ReadFile(ToolArguments):
        "Read a whole file."                                    # the description

        naming = Naming("read_file", aliases=("cat",), example={"path": "src/main.rs"})
        path: Annotated[str, Field(description="File path"), Aliases("file_path")]

        def operation(self) -> Operation: ...
        def render(self, outcome: Outcome) -> Rendered: ...
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import MAX_LINES
from adapter.tools.operations import Effect, Operation, Outcome
from adapter.tools.operations.capabilities import Capability
from adapter.tools.schema_simplify import simplify_schema
from adapter.tools.tool import Failure, Tool

Rendered: TypeAlias = tuple[str, Json]
OutcomeT = TypeVar("OutcomeT")


class Aliases:
    """Other names an argument is accepted under, for use in ``Annotated``; its own may be among them."""

    def __init__(self, *names: str) -> None:
        self.names = names


@dataclass(frozen=True, slots=True)
class ToolMetadata:
    """What a tool is called. ``second_names`` are documented, ``aliases`` what models say instead.

    The rest is as in `adapter.tools.tool.Tool`.
    """

    name: str
    second_names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    effect: Effect = "read"
    example: JsonObject = field(default_factory=dict)
    needs: Capability | None = None
    max_lines: int = MAX_LINES
    """Of a result; more for a tool that gives pages, with a line below that says how to go on."""
    label: str = ""
    is_polling: bool = False
    failure: Failure | None = None


class ToolClass(BaseModel):
    """Base of all tool classes. The docstring is the description a model reads."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    naming: ClassVar[ToolMetadata]

    def operation(self) -> Operation:
        raise NotImplementedError

    def render(self, outcome: Outcome) -> Rendered:
        """The text for the model and, where documented, the result as JSON."""
        raise NotImplementedError

    def notes(self) -> tuple[str, ...]:
        """What was assumed because an argument was missing, one sentence each."""
        return ()

    @classmethod
    @cache
    def tool(cls) -> Tool:
        """The class as plain data, for parsers, prompts and servers. Made once: a schema takes milliseconds."""
        parameters = simplify_schema(cls)
        return Tool(
            name=cls.naming.name,
            description=inspect.cleandoc(cls.__doc__ or ""),
            parameters=parameters,
            unlisted=tuple(name for name in cls.model_fields if name not in parameters["properties"]),
            aliases=cls.naming.second_names + cls.naming.aliases,
            argument_aliases={name: names for name in cls.model_fields if (names := _aliases(cls, name))},
            effect=cls.naming.effect,
            example=cls.naming.example,
            validate=cls.model_validate,
            needs=cls.naming.needs,
            max_lines=cls.naming.max_lines,
            label=cls.naming.label,
            polls=cls.naming.is_polling,
            failure=cls.naming.failure,
        )


class NestedModel(BaseModel):
    """Base of the objects inside an argument. Only a call's own arguments are renamed by the caller, so they take
    their ``Aliases`` themselves; separators and case do not count."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _own_names(cls, given: Json) -> Json:
        return cls.renamed(given)

    @classmethod
    def renamed(cls, given: Json) -> Json:
        """What was given, under its own names where it is an object."""
        if not isinstance(given, dict):
            return given
        renamed = dict(given)
        for name in cls.model_fields:
            spellings = {normalized_key(alias) for alias in (name, *_aliases(cls, name))}
            used = [key for key in given if isinstance(key, str) and normalized_key(key) in spellings]
            if used and name not in given:
                renamed[name] = renamed.pop(used[0])
        return renamed


def normalized_key(name: str) -> str:
    """What two spellings of one name have in common."""
    return name.replace("_", "").replace("-", "").lower()


def _aliases(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """The other names of an argument; none that the model has for an argument itself."""
    return tuple(
        alias
        for item in model.model_fields[name].metadata
        if isinstance(item, Aliases)
        for alias in dict.fromkeys(item.names)
        if alias not in model.model_fields
    )


def require_outcome(outcome: Outcome, kind: type[OutcomeT]) -> OutcomeT:
    """``outcome`` as the kind that belongs to the tool's operation; anything else is a bug."""
    if not isinstance(outcome, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(outcome).__name__}")
    return outcome
