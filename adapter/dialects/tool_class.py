"""Base classes for a dialect's tools, with one small class per tool.

::

    class ReadFile(ToolClass):
        "Read a whole file."                                    # the description
        naming = ToolMetadata("read_file", ReadText, aliases=("cat",))
        example = {"path": "src/main.rs"}
        path: Annotated[str, Parameter("File path", "file_path")]
        render = render_as(format_numbered_lines)               # unless the operation's usual format suffices
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import MAX_LINES
from adapter.dialects.result_formatting import format_outcome
from adapter.tools.argument_synonyms import normalize_key
from adapter.tools.operations import EFFECTS, Effect, Operation
from adapter.tools.operations.capabilities import Capability
from adapter.tools.schema_simplify import REQUIRED_KEY, simplify_schema
from adapter.tools.tool import FailureRenderer, Tool

Rendered: TypeAlias = tuple[str, Json]


class Parameter:
    """The description of a tool's parameter, for use in ``Annotated``.

    Args:
        description: Text for the model.
        aliases: Other names that models use for the parameter. The parameter's own name may be among them.
        is_required: True if the schema requires the parameter, although calls may omit it.
    """

    def __init__(self, description: str, *aliases: str, is_required: bool = False) -> None:
        self.description, self.aliases, self.is_required = description, aliases, is_required

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        shown = {"description": self.description} if self.description else {}
        return {**handler(core_schema), **shown, **({REQUIRED_KEY: True} if self.is_required else {})}


def _require_unsigned(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative; expected 0 or more")
    return number


_QUOTED = re.compile(r"\s*([`'\"])([^\n]+)\1\s*")
_FENCED = re.compile(r"\s*```[^\n`]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_IN_BACKTICKS = re.compile(r"\s*`([^`]+)`\s*")


def _strip_quotes(path: Any) -> Any:
    """Remove quotation marks or backticks around a path."""
    found = _QUOTED.fullmatch(path) if isinstance(path, str) else None
    return found[2] if found else path


def _strip_markdown(command: Any) -> Any:
    """Remove a code fence, ``$`` prompts, and backticks around a command, because a shell would execute text in
    backticks."""
    if not isinstance(command, str):
        return command
    found = _FENCED.fullmatch(command) or _IN_BACKTICKS.fullmatch(command)
    lines = (found[1] if found else command).split("\n")
    if all(line.lstrip().startswith("$ ") for line in lines if line.strip()):
        lines = [line.lstrip().removeprefix("$ ") for line in lines]
    return "\n".join(lines)


EDIT_ALIASES = (
    *("edit_file", "apply_edit", "str_replace", "replace", "search_replace", "search_and_replace"),
    "replace_in_file",
)
"""Names of other agents' tools that replace text in a file."""
PathText = Annotated[str, BeforeValidator(_strip_quotes)]
CommandText = Annotated[str, BeforeValidator(_strip_markdown)]
Unsigned = Annotated[int, AfterValidator(_require_unsigned)]


@dataclass(frozen=True, slots=True)
class ToolMetadata:
    """A tool's names and metadata.

    Args:
        action: The operation that a call performs: its class, or a partial with fixed fields. The call's arguments are
            its other fields, in order. None if the class itself defines ``to_operation()`` and the ``effect``.
        second_names: Further documented names.
        aliases: Undocumented names that models use.

    For the other fields, see `adapter.tools.tool.Tool`.
    """

    name: str
    action: Callable[..., Operation] | None = None
    second_names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    effect: Effect = "read"
    needs: Capability | None = None
    max_lines: int = MAX_LINES
    """Maximum number of lines in a result. A tool may allow more lines if its pages end with a hint on how to
    continue."""
    label: str = ""
    is_polling: bool = False
    failure: FailureRenderer | None = None


class ToolClass(BaseModel):
    """Base class of all tools. The docstring of a subclass is its description for the model."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    naming: ClassVar[ToolMetadata]
    example: ClassVar[JsonObject] = {}
    """Arguments of a valid call."""

    def to_operation(self) -> Operation:
        """Return the operation that the call performs."""
        if self.naming.action is None:
            raise NotImplementedError(f"{type(self).__name__} must have an action, or define to_operation()")
        return self.naming.action(*(getattr(self, name) for name in type(self).model_fields))

    def render(self, outcome: Any, /) -> Rendered:
        """Return the text for the model, by default from `format_outcome`, and the result's JSON if documented."""
        return format_outcome(self.to_operation(), outcome), None

    def list_notes(self) -> tuple[str, ...]:
        """Return the assumptions made for missing or invalid arguments, one sentence each."""
        return ()

    @classmethod
    @cache
    def build_tool(cls) -> Tool:
        """Return the `Tool` for parsers, prompts and servers. It is cached, because building a schema takes
        milliseconds."""
        parameters, naming = simplify_schema(cls), cls.naming
        action: Any = getattr(naming.action, "func", naming.action)
        return Tool(
            name=naming.name,
            description=inspect.cleandoc(cls.__doc__ or ""),
            parameters=parameters,
            unlisted=tuple(name for name in cls.model_fields if name not in parameters["properties"]),
            aliases=naming.second_names + naming.aliases,
            argument_aliases={name: names for name in cls.model_fields if (names := _list_aliases(cls, name))},
            effect=naming.effect if action is None else EFFECTS[action],
            example=cls.example,
            validate=cls.model_validate,
            needs=naming.needs,
            max_lines=naming.max_lines,
            label=naming.label,
            polls=naming.is_polling,
            failure=naming.failure,
        )


class NestedModel(BaseModel):
    """Base class for objects inside an argument.

    It resolves its fields' aliases, ignoring separators and case, because call resolution renames only top-level
    arguments.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _apply_aliases(cls, value: Json) -> Json:
        return cls.rename_keys(value)

    @classmethod
    def rename_keys(cls, value: Json) -> Json:
        """Rename an object's keys to the field names. Other values are unchanged."""
        if not isinstance(value, dict):
            return value
        renamed = dict(value)
        for name in cls.model_fields:
            spellings = {normalize_key(alias) for alias in (name, *_list_aliases(cls, name))}
            matching = [key for key in value if isinstance(key, str) and normalize_key(key) in spellings]
            if matching and name not in value:
                renamed[name] = renamed.pop(matching[0])
        return renamed


def _list_aliases(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """Return an argument's aliases, except names of other arguments of ``model``."""
    return tuple(
        alias
        for item in model.model_fields[name].metadata
        if isinstance(item, Parameter)
        for alias in dict.fromkeys(item.aliases)
        if alias not in model.model_fields
    )


def render_as(format_outcome: Callable[..., str], *arguments: str) -> Callable[[Any, Any], Rendered]:
    """Return a ``render`` method for a tool whose result is only text. ``arguments``: names of the tool's fields to
    pass to ``format_outcome``."""

    def render(self: Any, outcome: Any) -> Rendered:
        return format_outcome(outcome, *(getattr(self, name) for name in arguments)), None

    return render
