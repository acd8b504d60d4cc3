"""Tool definitions: `Tool` describes a tool and validates calls to it.

It is plain data, so that parsers can use tools from any source: a dialect's class, an OpenAI definition, an MCP tool or
a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapter.core.argument_checks import format_value
from adapter.core.callback_checks import require_sync
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import MAX_LINES
from adapter.tools.coercion import find_member_schema, list_required
from adapter.tools.definition_shapes import find_schema
from adapter.tools.schema_refs import dereference

if TYPE_CHECKING:  # a parser needs tools, but not their operations
    from adapter.tools.operations import Effect, Operation, Outcome
    from adapter.tools.operations.capabilities import Capability


class ValidatedCall(Protocol):
    """A validated call: builds its operation and renders the result."""

    def to_operation(self) -> Operation: ...

    def render(self, outcome: Outcome, /) -> tuple[str, Json]:
        """Return the text for the model and, if documented, the result's fields as JSON."""
        ...

    def list_notes(self) -> tuple[str, ...]:
        """Return the assumptions made for missing or oversized arguments, as one sentence each."""
        ...


FailureRenderer: TypeAlias = Callable[[JsonObject, ToolError], Json]
"""A function that renders an error as JSON. It gets the call's arguments, which may be incomplete, and the error."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, description and JSON Schema, and the functions that validate and run a call."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=lambda: {"type": "object", "properties": {}})
    """A JSON Schema of type object."""
    aliases: tuple[str, ...] = ()
    argument_aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Additional names for each parameter."""
    effect: Effect = "read"
    example: JsonObject | None = None
    unlisted: tuple[str, ...] = ()
    """Arguments that the tool accepts although ``parameters`` does not list them."""
    validate: Callable[[JsonObject], ValidatedCall] | None = None
    """Validates arguments, or raises pydantic's ValidationError. None for a tool that only a client can run."""
    needs: Capability | None = None
    """The host capability that the tool needs. Without it, models do not see the tool."""
    program: str = ""
    """Name of the program that the tool runs. If the program is not installed, models do not see the tool."""
    max_lines: int = MAX_LINES
    """Maximum number of lines in a result. Longer results are truncated."""
    function: Callable[..., object] | None = None
    """Function of a custom tool; see `adapter.tools.function_tools`."""
    runner: str = ""
    """Name of the external runner of a custom tool, such as an MCP server."""
    notice: str = ""
    """A reason to request approval for a custom tool, whatever its effect, until the user has allowed one call."""
    label: str = ""
    """Name of the argument that states the purpose of a call, in the model's words. The approver sees its value."""
    polls: bool = False
    """True if a model may repeat the same call, which loop detection then ignores."""
    failure: FailureRenderer | None = None
    """Renders a failed call as JSON, if the dialect documents such a result."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"Tool: name must be a string, got {format_value(self.name)}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function directly, so that a function decorated with ``@tool`` remains callable."""
        if self.function is None:
            raise UsageError(f"{self.name} has no function; run it in a Workspace")
        return self.function(*args, **kwargs)

    def require_sync(self) -> None:
        """Raise UsageError if ``validate`` or ``failure`` is async. ``function`` may be async."""
        for name in ("validate", "failure"):
            if (callback := getattr(self, name)) is not None:
                require_sync(callback, f"Tool.{name}")

    _resolved: list[JsonObject] = field(default_factory=list, init=False, repr=False, compare=False)
    """``parameters`` with references resolved, computed on first use."""

    @property
    def properties(self) -> JsonObject:
        """The parameters by name. Each is a JSON Schema with its references resolved."""
        properties: JsonObject = self.schema.get("properties") or {}
        return properties

    def find_schema(self, key: str) -> Json:
        """Return the schema of the argument ``key``, which need not be a named parameter."""
        return find_member_schema(self.schema, key)

    schema_of = find_schema
    """Former name of `find_schema`."""

    @property
    def is_risky(self) -> bool:
        """True if the tool deletes, moves or overwrites data, or executes commands."""
        return self.effect in ("delete", "execute") or _RISKY.search(self.name) is not None

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(list_required(self.schema))

    @property
    def schema(self) -> JsonObject:
        """``parameters`` with references resolved."""
        if not self._resolved:
            self._resolved.append(dereference(self.parameters))
        return self._resolved[0]

    def accepts(self, keys: Set[str]) -> bool:
        """Return whether ``keys`` include all required parameters, and nothing but parameters."""
        return {*self.required} <= keys <= self.properties.keys()

    def to_openai(self) -> JsonObject:
        """Return the definition in the format of OpenAI's chat completions."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    @classmethod
    def from_definition(cls, definition: Tool | Mapping[str, Json]) -> Tool:
        """Build a Tool from a definition in any shape of `adapter.tools.definition_shapes`. A Tool is returned
        unchanged. Raises UsageError if the name is missing or empty, or the parameters are not a JSON object."""
        if isinstance(definition, Tool):
            return definition
        if not isinstance(definition, Mapping):
            raise UsageError(
                f"a tool definition must be a dict or a Tool, got {repr(definition)[:80]}; "
                "for a function, use adapter.tool"
            )
        inner = definition.get("function", definition.get("toolSpec", definition))
        if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str) or not inner["name"].strip():
            raise UsageError(
                f"a tool definition needs a name, got {str(definition)[:80]!r}; "
                'expected {"type": "function", "function": {"name": ..., "parameters": {...}}}'
            )
        parameters = find_schema(inner)
        if parameters and not isinstance(parameters, Mapping):
            raise UsageError(
                f"the parameters of tool {inner['name']!r} are {str(parameters)[:80]!r}; "
                "expected a JSON Schema of type object"
            )
        return cls(
            name=inner["name"],
            description=inner.get("description") or "",
            parameters=dict(parameters) if parameters else {"type": "object", "properties": {}},
            effect=_find_effect(definition.get("annotations") or {}),
        )


def _find_effect(hints: Mapping[str, Json]) -> Effect:
    """Return the effect that MCP annotations declare. Without a hint, return "read", because the client decides about
    permissions."""
    if hints.get("readOnlyHint") is not False:
        return "read"
    return "delete" if hints.get("destructiveHint") else "write"


_RISKY = re.compile(
    r"(?i)delete|remove|unlink|erase|drop|move|rename|overwrite|run|shell|exec|kill|bash"
    r"|(?<![a-z])(?:command|cmd|terminal)\Z"
)
