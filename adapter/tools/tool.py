"""What a tool is: the one definition that describes, validates, encodes and constrains its calls.

`Tool` is plain data, so that a parser can use it without knowing where it came
from: a dialect's class, an OpenAI tool definition, an MCP tool, a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapter.core.arguments import check_types, shown
from adapter.core.callbacks import require_sync
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import MAX_LINES
from adapter.tools.schema_refs import dereference

if TYPE_CHECKING:  # a parser needs tools, but none of what they do
    from adapter.tools.operations import Effect, Operation, Outcome
    from adapter.tools.operations.capabilities import Capability


class ValidatedCall(Protocol):
    """A validated call: knows the operation it asks for and how to word its result."""

    def operation(self) -> Operation: ...

    def render(self, outcome: Outcome) -> tuple[str, Json]:
        """The text for the model and, where documented, the result's fields as JSON."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What was assumed because an argument was missing or too large, one sentence each."""
        ...


Failure: TypeAlias = Callable[[JsonObject, ToolError], Json]
"""From the arguments that were given, some of which may be missing, and the error."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model sees it.

    ``parameters`` is a JSON Schema of type object. ``argument_aliases`` maps a
    parameter to the other names it is accepted under. ``validate`` raises
    pydantic's ValidationError; it is None for tools that only a client can run.
    ``needs``: what the host must have for the tool to be offered.
    """

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=lambda: {"type": "object", "properties": {}})
    aliases: tuple[str, ...] = ()
    argument_aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effect: Effect = "read"
    example: JsonObject | None = None
    unlisted: tuple[str, ...] = ()
    """Arguments that are taken although ``parameters`` does not show them."""
    validate: Callable[[JsonObject], ValidatedCall] | None = None
    needs: Capability | None = None
    program: str = ""
    """What it runs, where it is offered only if that is installed."""
    max_lines: int = MAX_LINES
    """A longer result is truncated."""
    function: Callable[..., object] | None = None
    """What a tool of the user's runs; see `adapter.tools.function_tools`."""
    runner: str = ""
    """Of such a tool: who performs it, where that is not this program."""
    notice: str = ""
    """Of such a tool: why it is asked about until it was allowed once, whatever it says that it does."""
    label: str = ""
    """The argument in which the model says what the call is for: shown to whoever approves it."""
    polls: bool = False
    """Asking the same again is what it is for: no repetition that a session refuses."""
    failure: Failure | None = None
    """The result as JSON of a call that failed, where it is documented."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"Tool: name must be a string, got {shown(self.name)}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function itself, so that ``@tool`` leaves it usable."""
        if self.function is None:
            raise UsageError(f"{self.name} is no function: run it in a Workspace")
        return self.function(*args, **kwargs)

    def require_sync(self) -> None:
        """Raises UsageError where ``validate`` or ``failure`` is async; ``function`` may be."""
        for name in ("validate", "failure"):
            if (callback := getattr(self, name)) is not None:
                require_sync(callback, f"Tool.{name}")

    _resolved: list[JsonObject] = field(default_factory=list, init=False, repr=False, compare=False)
    """``parameters`` with nothing left to follow, once somebody has asked."""

    @property
    def properties(self) -> JsonObject:
        """The parameters by name, each a JSON Schema in which nothing is left to follow."""
        properties: JsonObject = self._schema().get("properties") or {}
        return properties

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self._schema().get("required") or ())

    def _schema(self) -> JsonObject:
        if not self._resolved:
            self._resolved.append(dereference(self.parameters))
        return self._resolved[0]

    def to_openai(self) -> JsonObject:
        """The definition as OpenAI's chat completions take it."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    @classmethod
    def from_definition(cls, definition: Tool | Mapping[str, Json]) -> Tool:
        """Accept a Tool, an OpenAI definition (nested or flat), an Anthropic or an MCP one.

        Raises UsageError when no name can be found, and for parameters that are no schema.
        """
        if isinstance(definition, Tool):
            return definition
        if not isinstance(definition, Mapping):
            raise UsageError(
                f"a tool definition is an object or a Tool, got {repr(definition)[:80]}; adapter.tool(f) makes one"
            )
        inner = definition.get("function", definition)
        if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
            raise UsageError(
                f"a tool definition needs a name, got {str(definition)[:80]!r}; "
                'expected {"type": "function", "function": {"name": ..., "parameters": {...}}}'
            )
        parameters = inner.get("parameters") or inner.get("input_schema") or inner.get("inputSchema")
        if parameters and not isinstance(parameters, Mapping):
            raise UsageError(
                f"the parameters of tool {inner['name']!r} are {str(parameters)[:80]!r}; "
                "expected a JSON Schema of type object"
            )
        return cls(
            name=inner["name"],
            description=inner.get("description") or "",
            parameters=dict(parameters) if parameters else {"type": "object", "properties": {}},
            effect=_effect_by(definition.get("annotations") or {}),
        )


def _effect_by(hints: Mapping[str, Json]) -> Effect:
    """By MCP's annotations. A tool without any counts as one that only reads: its client decides what it may do."""
    if hints.get("readOnlyHint") is not False:
        return "read"
    return "delete" if hints.get("destructiveHint") else "write"


MAX_LISTED = 40
"""Tools whose names a message lists; the nearest come first where there are more."""

ToolDefinitions: TypeAlias = "ToolSet | Iterable[Tool | Mapping[str, Json]]"


class ToolSet(Mapping[str, Tool]):
    """The tools of one session by name. Iterates over the names in definition order."""

    def __init__(self, definitions: ToolDefinitions = ()) -> None:
        each = definitions.values() if isinstance(definitions, ToolSet) else definitions
        check_types("tools", definitions=(each, Iterable))
        self._tools = {tool.name: tool for tool in map(Tool.from_definition, each)}
        self._spellings: dict[str, set[str]] = {}
        for tool in self._tools.values():
            for name in (tool.name, *tool.aliases):
                self._spellings.setdefault(_spelling(name), set()).add(tool.name)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __hash__(self) -> int:
        return hash(frozenset(self._tools))

    @cached_property
    def lower_names(self) -> frozenset[str]:
        """The names in lower case."""
        return frozenset(name.lower() for name in self._tools)

    def match(self, name: str) -> Tool | None:
        """The tool that ``name`` spells: exactly, by an alias, in another case or with other separators,
        with a namespace before it or ``Tool`` behind it. Never a merely similar one: None then."""
        if name in self._tools:
            return self._tools[name]
        bare = _SPECIAL_TOKEN.sub("", name).strip()
        local = _NAMESPACE.sub("", bare)
        for candidate in (bare, local, _SUFFIX.sub("", local)):
            found = self._spellings.get(_spelling(candidate), set())
            if len(found) == 1:
                return self._tools[next(iter(found))]
        return None

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """The names most like ``name``, for a message. They are never called in its stead."""
        from rapidfuzz import fuzz, process

        found = process.extract(name, list(self._tools), scorer=fuzz.WRatio, processor=_spelling, limit=count)
        return [match for match, score, _ in found if score >= 60]

    def explain_unknown(self, name: str) -> str:
        """Why ``name`` cannot be called, for the model: what there is, and what is nearest."""
        near = self.nearest(name)
        hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        listed = list(self) if len(self) <= MAX_LISTED else [*near, *(each for each in self if each not in near)]
        more = f" and {len(self) - MAX_LISTED} more" if len(self) > MAX_LISTED else ""
        names = ", ".join(listed[:MAX_LISTED]) or "none"
        return f"unknown tool {name!r}; this session has: {names}{more}{hint}. Nothing was run."


_SPECIAL_TOKEN = re.compile(r"^(?:<\|[^<>|]*\|>)+|<\|.*", re.DOTALL)  # harmony's `<|channel|>` glued to a name
_NAMESPACE = re.compile(r"^.*[.:/]")  # functions.read_file, tool:read_file, repo_browser/read_file
_SUFFIX = re.compile(r"[_-]?tool$", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_\-.]+")


def _spelling(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()
