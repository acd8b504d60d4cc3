"""JSON Schema, reduced to the shapes that a constrained decoder can follow.

Servers take different and partial subsets of JSON Schema: llama.cpp's own
converter and Ollama know no ``$ref`` here, no list of types there, and fail on
what they do not know. So a schema is first reduced to the few classes below,
and `adapter.grammar` writes those out as GBNF or as plain JSON Schema.

What cannot be expressed (``pattern``, ``multipleOf``, a reference to itself,
nesting beyond `MAX_DEPTH`, ...) becomes something *wider*, never something
invalid: validation after decoding has the last word.

*Choices* narrow a string parameter to given values; see `Choices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from adapter.events import Json, JsonObject

Choices: TypeAlias = Mapping[tuple[str, str] | str, Sequence[str]]
"""The only values a string parameter may take, by ``(tool, parameter)`` or by parameter alone.

It applies at any depth (``old_text`` inside a list of patches) and to the items of a list of strings.
No values at all means that the parameter cannot be written: an optional one is left out,
a required one takes its tool with it.
"""

MAX_DEPTH = 8
"""Levels of nesting that are followed; deeper ones may hold anything."""
MAX_ITEMS = 16
"""Of a list; a small model that starts one rarely ends it by itself."""
MAX_SCHEMAS = 2000
"""Inside one schema that are followed; references can make a short one grow without end."""
TEXTS = frozenset(
    {
        "content", "contents", "file_text", "file_content", "text", "body", "code", "source", "script", "message",
        "prompt", "patch", "patches", "diff", "input", "html", "markdown", "document", "old_text", "new_text",
        "old_string", "new_string", "old_str", "new_str", "search", "replace", "replacement", "command", "cmd",
        "query", "sql", "url",
    }
)  # fmt: skip
"""Parameters that hold text of any length. In other strings a small model that goes on and on has lost its way."""


@dataclass(frozen=True, slots=True)
class Literals:
    """One of these JSON values, spelled exactly so."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class String:
    """A string of ``min_length`` to ``max_length`` characters; None: no bound."""

    min_length: int = 0
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    integer: bool
    negative: bool
    """Whether values below zero may be written."""


@dataclass(frozen=True, slots=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Array:
    item: Shape
    min_items: int = 0
    max_items: int = MAX_ITEMS


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, slots=True)
class Object:
    """An object with exactly these properties, the required ones first."""

    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """An object with any keys."""

    value: Shape


@dataclass(frozen=True, slots=True)
class AnyOf:
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Anything:
    pass


Shape: TypeAlias = Literals | String | Number | Boolean | Null | Array | Object | Table | AnyOf | Anything


def is_possible(shape: Shape) -> bool:
    """Whether any value has this shape: choices may have left none."""
    match shape:
        case Literals(values):
            return bool(values)
        case AnyOf(shapes):
            return any(map(is_possible, shapes))
        case Object(properties):
            return all(is_possible(each.shape) for each in properties if each.required)
        case Array(item, min_items):
            return min_items == 0 or is_possible(item)
        case _:
            return True


@dataclass(frozen=True, slots=True)
class Shaping:
    """How schemas are reduced.

    ``max_string`` bounds the strings that a schema leaves longer or unbounded, in
    characters; None leaves them. ``max_text``: the same for parameters whose name says
    that they hold text of any length (`TEXTS`). ``max_depth``: levels that are followed.
    """

    choices: Choices = field(default_factory=dict)
    max_string: int | None = None
    max_text: int | None = None
    max_depth: int = MAX_DEPTH


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduces the schema of one tool. Never raises on a dict, however odd or large."""

    tool: str
    schema: JsonObject
    shaping: Shaping
    _visited: list[None] = field(default_factory=list)

    def shape(self) -> Shape:
        return self._reduce(self.schema, ())

    def _reduce(self, schema: Json, path: tuple[str, ...]) -> Shape:
        """``path`` holds one entry per level above, references included: it bounds the depth and shows cycles."""
        self._visited.append(None)
        too_much = len(path) >= self.shaping.max_depth or len(self._visited) > MAX_SCHEMAS
        if not isinstance(schema, Mapping) or too_much:
            return Anything()
        if isinstance(reference := schema.get("$ref"), str):
            return Anything() if reference in path else self._reduce(self._target(reference), (*path, reference))
        if parts := _list(schema, "allOf"):
            return self._reduce(_merged(schema, parts), (*path, "allOf"))
        if "const" in schema:
            return Literals((schema["const"],))
        if values := _list(schema, "enum"):
            return Literals(tuple(values))
        for keyword in ("anyOf", "oneOf"):
            if parts := _list(schema, keyword):
                return _any_of([self._reduce(part, (*path, keyword)) for part in parts])
        kinds = schema.get("type", _implied_type(schema))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return _any_of([self._of_type(kind, schema, path) for kind in kinds])

    def _of_type(self, kind: Json, schema: Mapping[str, Json], path: tuple[str, ...]) -> Shape:
        match kind:
            case "string":
                return self._string(schema, is_text=_parameter(path) in TEXTS)
            case "integer" | "number":
                lowest = schema.get("minimum", schema.get("exclusiveMinimum"))
                return Number(integer=kind == "integer", negative=not isinstance(lowest, int | float) or lowest < 0)
            case "boolean":
                return Boolean()
            case "null":
                return Null()
            case "array":
                item = self._reduce(schema.get("items", {}), (*path, "items"))
                fewest = _count(schema, "minItems") or 0
                most = _count(schema, "maxItems")
                return Array(item, fewest, max(fewest, MAX_ITEMS if most is None else min(most, MAX_ITEMS)))
            case "object":
                return self._object(schema, path)
            case _:
                return Anything()

    def _string(self, schema: Mapping[str, Json], is_text: bool) -> String:
        shortest = _count(schema, "minLength") or 0
        limit = self.shaping.max_text if is_text else self.shaping.max_string
        bounds = [bound for bound in (_count(schema, "maxLength"), limit) if bound is not None]
        longest = min(bounds, default=None)
        return String(shortest, longest if longest is None else max(longest, shortest))

    def _object(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> Shape:
        declared = schema.get("properties")
        if not isinstance(declared, Mapping) or not declared:
            # Who declares no properties means none, unless it is said that others may come.
            more = schema.get("additionalProperties", not isinstance(declared, Mapping))
            return Object(()) if more is False else Table(self._reduce(more, (*path, "additionalProperties")))
        required = _list(schema, "required")
        properties = [
            self._property(name, inner, name in required, (*path, "properties")) for name, inner in declared.items()
        ]
        properties = [each for each in properties if each.required or is_possible(each.shape)]
        return Object(tuple(sorted(properties, key=lambda each: not each.required)))

    def _property(self, name: str, schema: Json, required: bool, path: tuple[str, ...]) -> Property:
        shape = self._reduce(schema, (*path[:-1], name))
        if not required and isinstance(shape, AnyOf):
            # An optional parameter is left out, never written as null: one way to say nothing is enough.
            shape = _any_of([each for each in shape.shapes if each != Null()])
        allowed = self.shaping.choices.get((self.tool, name), self.shaping.choices.get(name))
        return Property(name, shape if allowed is None else _narrowed(shape, tuple(dict.fromkeys(allowed))), required)

    def _target(self, reference: str) -> Json:
        """What ``#/a/b`` points at inside this schema; anything goes where it points nowhere."""
        node: Json = self.schema
        if not reference.startswith("#"):
            return {}
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or step not in node:
                return {}
            node = node[step]
        return node


def _parameter(path: tuple[str, ...]) -> str | None:
    """The name of the property that a schema belongs to."""
    return next((step for step in reversed(path) if step not in _KEYWORDS and not step.startswith("#")), None)


_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "items", "additionalProperties"})


def _narrowed(shape: Shape, allowed: tuple[str, ...]) -> Shape:
    match shape:
        case String() | Anything():
            return Literals(allowed)
        case Literals(values):
            return Literals(tuple(value for value in values if value in allowed))
        case Array(item):
            narrowed = _narrowed(item, allowed)
            return replace(shape, item=narrowed, max_items=shape.max_items if is_possible(narrowed) else 0)
        case AnyOf(shapes):
            return _any_of([_narrowed(each, allowed) for each in shapes])
        case _:
            return shape


def _any_of(shapes: Sequence[Shape]) -> Shape:
    """The union, flat, without doubles and without what cannot be written."""
    flat: list[Shape] = []
    for shape in shapes:
        flat.extend(shape.shapes if isinstance(shape, AnyOf) else [shape])
    if Anything() in flat:
        return Anything()
    distinct = tuple(shape for index, shape in enumerate(flat) if is_possible(shape) and shape not in flat[:index])
    return distinct[0] if len(distinct) == 1 else AnyOf(distinct)


def _merged(schema: Mapping[str, Json], parts: Sequence[Json]) -> JsonObject:
    """``allOf`` as one schema: properties and requirements add up, of anything else the last one stays."""
    merged: JsonObject = {}
    rest = {key: value for key, value in schema.items() if key != "allOf"}
    for part in [*parts, rest]:
        if not isinstance(part, Mapping):
            continue
        properties = {**_mapping(merged, "properties"), **_mapping(part, "properties")}
        required = [*_list(merged, "required"), *_list(part, "required")]
        merged = {**merged, **part, "properties": properties, "required": required}
    return {key: value for key, value in merged.items() if value or key not in ("properties", "required")}


def _implied_type(schema: Mapping[str, Json]) -> str | None:
    implied = {"properties": "object", "additionalProperties": "object", "items": "array", "maxLength": "string"}
    return next((kind for keyword, kind in implied.items() if keyword in schema), None)


def _mapping(schema: Mapping[str, Json], keyword: str) -> Mapping[str, Json]:
    value = schema.get(keyword)
    return value if isinstance(value, Mapping) else {}


def _list(schema: Mapping[str, Json], keyword: str) -> list[Json]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _count(schema: Mapping[str, Json], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
