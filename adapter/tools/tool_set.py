"""`ToolSet` looks up a session's tools by name, and explains unknown names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from adapter.core.argument_checks import check_types
from adapter.core.events import Json
from adapter.core.text.truncate import shorten
from adapter.tools.definition_shapes import iter_definitions
from adapter.tools.tool import Tool

MAX_NAMESPACES = 8
"""Maximum number of namespaces before a name."""

MAX_NAME = 200
"""Maximum length of an unknown name in a message, in characters."""

MAX_LISTED = 40
"""Maximum number of tool names in a message. Beyond it, the most similar names come first."""

ToolDefinitions: TypeAlias = "ToolSet | Iterable[Tool | Mapping[str, Json]] | Mapping[str, Json]"


class ToolSet(Mapping[str, Tool]):
    """The tools of one session by name, in the order of their definitions."""

    def __init__(self, definitions: ToolDefinitions = ()) -> None:
        check_types("tools", definitions=(definitions, Iterable))
        each = definitions.values() if isinstance(definitions, ToolSet) else iter_definitions(definitions)
        self._tools = {tool.name: tool for tool in map(Tool.from_definition, each)}
        self._spellings: dict[str, set[str]] = {}
        self._local_spellings: dict[str, set[str]] = {}
        for tool in self._tools.values():
            for name in (tool.name, *tool.aliases):
                self._spellings.setdefault(_normalize_spelling(name), set()).add(tool.name)
                for local in _list_local_names(name):
                    self._local_spellings.setdefault(_normalize_spelling(local), set()).add(tool.name)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __eq__(self, other: object) -> bool:
        return self._tools == other._tools if isinstance(other, ToolSet) else NotImplemented

    def __hash__(self) -> int:
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
        """Return whether ``text`` may contain a tool's name, in time linear in its length."""
        lowered = text.lower()
        if len(text) < 10 * len(self):
            return not self._first_words.isdisjoint(_WORD.findall(lowered))
        return any(name in lowered for name in self.lower_names)

    def has_name(self, name: str) -> bool:
        """Return whether ``name`` is a tool's name or alias, ignoring letter case and punctuation."""
        return _normalize_spelling(name) in self._spellings

    def match(self, name: str) -> Tool | None:
        """Return the tool that ``name`` refers to, or None.

        ``name`` may be an alias, differ in letter case or punctuation, have a namespace before it, lack the tool's own
        namespace, or end with ``Tool``. A merely similar name does not match.
        """
        if name in self._tools:
            return self._tools[name]
        bare = _INDEX.sub("", _SPECIAL_TOKEN.sub("", name).strip())
        locals = _list_local_names(bare)
        candidates = [bare, *locals, _SUFFIX.sub("", locals[-1] if locals else bare)]
        known = [self._spellings.get(_normalize_spelling(each), set()) for each in candidates]
        known.append(self._local_spellings.get(_normalize_spelling(bare), set()))
        return next((self._tools[next(iter(names))] for names in known if len(names) == 1), None)

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
_INDEX = re.compile(r"(?::index)?:\d*$")  # Kimi's functions.read_file:0; a label's colon
_NAMESPACE_END = re.compile(
    r"[.:/]|__"
)  # functions.read_file, tool:read_file, repo_browser/read_file, mcp__fs__read_file
_SUFFIX = re.compile(r"[_-]?tool$", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_PUNCTUATION = re.compile(r"[\W_]+")


def _list_local_names(name: str) -> list[str]:
    """Return ``name`` without its first namespace, without its first two, and so on."""
    ends = [found.end() for found in _NAMESPACE_END.finditer(name)]
    return [name[end:] for end in ends[-MAX_NAMESPACES:] if end < len(name)]


def _normalize_spelling(name: str) -> str:
    return _PUNCTUATION.sub("", name).lower() or name
