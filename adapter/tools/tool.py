"""Tool definitions: `Tool` describes a tool and validates calls to it; `ToolSet` looks tools up by name.

`Tool` is plain data, so that a parser can use tools from any source: a dialect's class, an OpenAI tool definition, an
MCP tool or a function.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapter.core.argument_checks import check_types, format_value
from adapter.core.callback_checks import require_sync
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import MAX_LINES, shorten
from adapter.tools.coercion import find_member_schema, list_required
from adapter.tools.schema_refs import dereference

if TYPE_CHECKING:  # a parser needs tools, but not their operations
    from adapter.tools.operations import Effect, Operation, Outcome
    from adapter.tools.operations.capabilities import Capability


class ValidatedCall(Protocol):
    """A validated call, which returns its operation and renders the result."""

    def to_operation(self) -> Operation: ...

    def render(self, outcome: Outcome, /) -> tuple[str, Json]:
        """Return the text for the model and, if documented, the result's fields as JSON."""
        ...

    def list_notes(self) -> tuple[str, ...]:
        """Return the assumptions made for missing or oversized arguments, as one sentence each."""
        ...


FailureRenderer: TypeAlias = Callable[[JsonObject, ToolError], Json]
"""A function that renders an error as JSON. Its arguments are the call's arguments, which may be incomplete, and the
error."""


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
    """Validates arguments, or raises pydantic's ValidationError. It is None for a tool that only a client can run."""
    needs: Capability | None = None
    """The host capability needed by the tool. Without it, models do not see the tool."""
    program: str = ""
    """Name of the program that the tool runs. If the program is not installed, models do not see the tool."""
    max_lines: int = MAX_LINES
    """Maximum number of lines in a result. Longer results are truncated."""
    function: Callable[..., object] | None = None
    """Function of a custom tool; see `adapter.tools.function_tools`."""
    runner: str = ""
    """Name of the external runner of a custom tool, such as an MCP server."""
    notice: str = ""
    """A reason to request approval for a custom tool, regardless of its effect, until the tool has been allowed
    once."""
    label: str = ""
    """Name of the argument in which the model states the purpose of a call. The approver sees its value."""
    polls: bool = False
    """True if a model may repeat the same call, so that loop detection ignores it."""
    failure: FailureRenderer | None = None
    """Renders a failed call as JSON, if the dialect documents such a result."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"Tool: name must be a string, got {format_value(self.name)}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function directly, so that a function decorated with ``@tool`` can still be called."""
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

    def to_openai(self) -> JsonObject:
        """Return the definition in the format of OpenAI's chat completions."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    @classmethod
    def from_definition(cls, definition: Tool | Mapping[str, Json]) -> Tool:
        """Build a Tool from an OpenAI definition (nested or flat), an Anthropic definition or an MCP definition.
        Return a Tool unchanged.

        Raises UsageError if the name is missing or the parameters are not a JSON object.
        """
        if isinstance(definition, Tool):
            return definition
        if not isinstance(definition, Mapping):
            raise UsageError(
                f"a tool definition must be a dict or a Tool, got {repr(definition)[:80]}; "
                "for a function, use adapter.tool"
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
            effect=_find_effect(definition.get("annotations") or {}),
        )


def _find_effect(hints: Mapping[str, Json]) -> Effect:
    """Return the effect that MCP annotations declare. Without them it is "read": the client decides about
    permissions."""
    if hints.get("readOnlyHint") is not False:
        return "read"
    return "delete" if hints.get("destructiveHint") else "write"


_RISKY = re.compile(r"(?i)delete|remove|unlink|erase|drop|move|rename|overwrite|run|shell|exec|kill")

MAX_NAMESPACES = 8
"""Maximum number of namespaces before a name."""

MAX_NAME = 200
"""Maximum number of characters of an unknown name in a message."""

MAX_LISTED = 40
"""Maximum number of tool names in a message. If there are more, the most similar names come first."""

ToolDefinitions: TypeAlias = "ToolSet | Iterable[Tool | Mapping[str, Json]]"


class ToolSet(Mapping[str, Tool]):
    """The tools of one session by name, in the order of their definitions."""

    def __init__(self, definitions: ToolDefinitions = ()) -> None:
        each = definitions.values() if isinstance(definitions, ToolSet) else definitions
        check_types("tools", definitions=(each, Iterable))
        self._tools = {tool.name: tool for tool in map(Tool.from_definition, each)}
        self._spellings: dict[str, set[str]] = {}
        for tool in self._tools.values():
            for name in (tool.name, *tool.aliases):
                self._spellings.setdefault(_normalize_spelling(name), set()).add(tool.name)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __eq__(self, other: object) -> bool:
        return self._tools == other._tools if isinstance(other, ToolSet) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        # Hashes of strings differ between processes.
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self._tools))

    @cached_property
    def all_names(self) -> tuple[str, ...]:
        """The names and aliases of all tools."""
        return tuple(dict.fromkeys(name for tool in self._tools.values() for name in (tool.name, *tool.aliases)))

    @cached_property
    def _sorted_names(self) -> list[str]:
        return sorted(self._tools)

    def has_prefix(self, text: str) -> bool:
        """Return whether a tool's name begins with ``text``."""
        index = bisect_left(self._sorted_names, text)
        return index < len(self) and self._sorted_names[index].startswith(text)

    @cached_property
    def lower_names(self) -> frozenset[str]:
        """The names of all tools, in lower case."""
        return frozenset(name.lower() for name in self._tools)

    @cached_property
    def _first_words(self) -> frozenset[str]:
        return frozenset((_WORD.findall(name) or [name])[0] for name in self.lower_names)

    def may_be_named(self, text: str) -> bool:
        """Return whether ``text`` may contain the name of a tool, in time linear in its length."""
        lowered = text.lower()
        if len(text) < 10 * len(self):
            return not self._first_words.isdisjoint(_WORD.findall(lowered))
        return any(name in lowered for name in self.lower_names)

    def match(self, name: str) -> Tool | None:
        """Return the tool that ``name`` refers to, or None.

        ``name`` may be an alias, differ in letter case or separators, have a namespace before it, or end with ``Tool``.
        A name that is merely similar does not match.
        """
        if name in self._tools:
            return self._tools[name]
        bare = _INDEX.sub("", _SPECIAL_TOKEN.sub("", name).strip())
        ends = [found.end() for found in _NAMESPACE_END.finditer(bare)]
        locals = [bare[end:] for end in ends[-MAX_NAMESPACES:]]
        for candidate in (bare, *locals, _SUFFIX.sub("", locals[-1] if locals else bare)):
            found = self._spellings.get(_normalize_spelling(candidate), set())
            if len(found) == 1:
                return self._tools[next(iter(found))]
        return None

    def find_nearest(self, name: str, count: int = 3) -> list[str]:
        """Return the tool names most similar to ``name``, for messages only."""
        from rapidfuzz import fuzz, process

        similar = process.extract(
            name, list(self._tools), scorer=fuzz.WRatio, processor=_normalize_spelling, limit=count
        )
        return [match for match, score, _ in similar if score >= 60]

    def explain_unknown(self, name: str) -> str:
        """Return an error message for the unknown tool ``name``, with the available and the most similar names."""
        near = self.find_nearest(name)
        hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        listed = list(self) if len(self) <= MAX_LISTED else [*near, *(each for each in self if each not in near)]
        more = f" and {len(self) - MAX_LISTED} more" if len(self) > MAX_LISTED else ""
        names = ", ".join(listed[:MAX_LISTED]) or "none"
        return f"unknown tool {shorten(name, MAX_NAME)!r}; this session has: {names}{more}{hint}. Nothing was run."


_SPECIAL_TOKEN = re.compile(r"^(?:<\|[^<>|]*\|>)+|<\|.*", re.DOTALL)  # harmony's `<|channel|>` after a name
_INDEX = re.compile(r":\d*$")  # Kimi's functions.read_file:0; a label's colon
_NAMESPACE_END = re.compile(r"[.:/]")  # functions.read_file, tool:read_file, repo_browser/read_file
_SUFFIX = re.compile(r"[_-]?tool$", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_SEPARATORS = re.compile(r"[\s_\-.]+")


def _normalize_spelling(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()
