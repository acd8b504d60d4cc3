"""JSON Schema, reduced to the shapes that a constrained decoder can follow.

Servers take different and partial subsets of JSON Schema: llama.cpp's own
converter and Ollama know no ``$ref`` here, no list of types there, and fail on
what they do not know. So a schema is first reduced to the few classes of
`adapter.grammars.schema_ir`, and `adapter.grammars.gbnf` writes those out as GBNF or as plain JSON Schema.

What cannot be expressed (``multipleOf``, ``uniqueItems``, ``not``, ``if``,
nesting beyond `MAX_DEPTH`, ...) becomes something *wider*, never something
invalid: validation after decoding has the last word. What refers to itself is
followed `MAX_VISITS` times and then left out.

*Choices* narrow a string parameter to given values; see `adapter.grammars.schema_ir.Choices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Decimal

from adapter.core.events import Json, JsonObject
from adapter.grammars.number_ranges import MOST, PLACES
from adapter.grammars.schema_ir import (
    MAX_ITEMS,
    NOTHING,
    AnyShape,
    ArrayShape,
    Boolean,
    Choices,
    EnumShape,
    MapShape,
    Null,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    TupleShape,
    UnionShape,
    is_satisfiable,
)
from adapter.tools.schema_refs import follow_ref, merge_all_of, resolve_pointer

MAX_DEPTH = 16
"""Levels of nesting, references and alternatives that are followed; deeper ones may hold anything."""
MAX_VISITS = 2
"""Times that a reference is followed inside itself."""
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
class LoweringOptions:
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
class SchemaLowering:
    """Reduces the schema of one tool. Never raises on a dict, however odd or large."""

    tool: str
    schema: JsonObject
    shaping: LoweringOptions
    _visited: list[None] = field(default_factory=list)
    _inmost: Shape = NOTHING
    """What a reference that has been followed often enough comes to."""

    def lower(self) -> Shape:
        """Of the arguments: an object, whatever the schema says."""
        shape = self._reduce(self.schema, ())
        if not is_satisfiable(shape):  # perhaps only because something needs itself
            shape = replace(self, _visited=[], _inmost=AnyShape())._reduce(self.schema, ())
        match shape:
            case UnionShape(shapes) if objects := [each for each in shapes if isinstance(each, ObjectShape | MapShape)]:
                return _any_of(objects)
            case ObjectShape() | MapShape() | EnumShape():
                return shape
            case _:
                return MapShape(AnyShape()) if is_satisfiable(shape) else NOTHING

    def _reduce(self, schema: Json, path: tuple[str, ...]) -> Shape:
        """``path`` holds one entry per level above, references included: it bounds the depth and shows cycles."""
        self._visited.append(None)
        too_much = len(path) >= self.shaping.max_depth or len(self._visited) > MAX_SCHEMAS
        if not isinstance(schema, Mapping) or too_much:
            return AnyShape()
        if isinstance(reference := schema.get("$ref"), str):
            if path.count(reference) >= MAX_VISITS:
                return self._inmost
            return self._reduce(resolve_pointer(self.schema, reference), (*path, reference))
        if parts := _list(schema, "allOf"):
            return self._reduce(
                merge_all_of(schema, [follow_ref(self.schema, part) for part in parts]), (*path, "allOf")
            )
        if "const" in schema:
            return EnumShape((schema["const"],))
        if values := _list(schema, "enum"):
            return EnumShape(tuple(values))
        for keyword in ("anyOf", "oneOf"):
            if parts := _list(schema, keyword):
                rest = {key: value for key, value in schema.items() if key != keyword}
                if rest.keys() & _COUNTING:
                    parts = [merge_all_of({}, [rest, follow_ref(self.schema, part)]) for part in parts]
                return _any_of([self._reduce(part, (*path, keyword)) for part in parts])
        kinds = schema.get("type", _implied_type(schema))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return _any_of([self._of_type(kind, schema, path) for kind in kinds])

    def _of_type(self, kind: Json, schema: Mapping[str, Json], path: tuple[str, ...]) -> Shape:
        match kind:
            case "string":
                return self._string(schema, is_text=_parameter(path) in TEXTS)
            case "integer" | "number":
                return _number(schema, kind == "integer")
            case "boolean":
                return Boolean()
            case "null":
                return Null()
            case "array":
                item = self._reduce(schema.get("items", {}), (*path, "items"))
                fewest = _count(schema, "minItems") or 0
                most = _count(schema, "maxItems")
                if prefix := _list(schema, "prefixItems") or _list(schema, "items"):  # the older way to write it
                    first = [
                        self._reduce(each, (*path, "items")) for each in prefix[: MAX_ITEMS if most is None else most]
                    ]
                    return TupleShape((*first, *[item] * (min(fewest, MAX_ITEMS) - len(first))))
                most = max(fewest, MAX_ITEMS if most is None else min(most, MAX_ITEMS))
                return ArrayShape(item, fewest, most if is_satisfiable(item) else fewest)
            case "object":
                return self._object(schema, path)
            case _:
                return AnyShape()

    def _string(self, schema: Mapping[str, Json], is_text: bool) -> StringShape:
        shortest = _count(schema, "minLength") or 0
        limit = self.shaping.max_text if is_text else self.shaping.max_string
        bounds = [bound for bound in (_count(schema, "maxLength"), limit) if bound is not None]
        longest = min(bounds, default=None)
        pattern = schema.get("pattern")
        return StringShape(
            shortest,
            longest if longest is None else max(longest, shortest),
            pattern if isinstance(pattern, str) else None,
        )

    def _object(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> Shape:
        declared = schema.get("properties")
        required = [name for name in _list(schema, "required") if isinstance(name, str)]
        # Who declares no properties means none, unless it is said that others may come.
        none_declared = isinstance(declared, Mapping) and not declared and not required
        more = schema.get("additionalProperties", not none_declared)
        declared = declared if isinstance(declared, Mapping) else {}
        if more is not False:
            declared = {**declared, **{name: more for name in required if name not in declared}}
        if not declared:
            other = NOTHING if more is False else self._reduce(more, (*path, "additionalProperties"))
            return MapShape(other) if is_satisfiable(other) else ObjectShape(())
        properties = [
            self._property(name, inner, name in required, (*path, "properties")) for name, inner in declared.items()
        ]
        properties = [each for each in properties if each.required or is_satisfiable(each.shape)]
        return ObjectShape(tuple(sorted(properties, key=lambda each: not each.required)))

    def _property(self, name: str, schema: Json, required: bool, path: tuple[str, ...]) -> Property:
        shape = self._reduce(schema, (*path[:-1], name))
        if not required and isinstance(shape, UnionShape):
            # An optional parameter is left out, never written as null: one way to say nothing is enough.
            shape = _any_of([each for each in shape.shapes if each != Null()])
        allowed = self.shaping.choices.get((self.tool, name), self.shaping.choices.get(name))
        return Property(name, shape if allowed is None else _narrowed(shape, tuple(dict.fromkeys(allowed))), required)


def _parameter(path: tuple[str, ...]) -> str | None:
    """The name of the property that a schema belongs to."""
    return next((step for step in reversed(path) if step not in _KEYWORDS and not step.startswith("#")), None)


_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "items", "additionalProperties"})
_COUNTING = frozenset({"type", "properties", "required", "items", "additionalProperties", "allOf"})
"""Keywords that hold for each of the alternatives beside them."""


def _number(schema: Mapping[str, Json], integer: bool) -> NumberShape:
    """The bounds as included ones; those that leave nothing, or are too far away to matter, are none."""
    step = Decimal(1) if integer else Decimal(1).scaleb(-PLACES)
    lows, highs = list[Decimal](), list[Decimal]()
    if (bound := _decimal(schema, "minimum")) is not None:
        lows.append(-(-bound / step).to_integral_value(ROUND_FLOOR) * step)
    if (bound := _decimal(schema, "exclusiveMinimum")) is not None:
        lows.append((bound / step).to_integral_value(ROUND_FLOOR) * step + step)
    if (bound := _decimal(schema, "maximum")) is not None:
        highs.append((bound / step).to_integral_value(ROUND_FLOOR) * step)
    if (bound := _decimal(schema, "exclusiveMaximum")) is not None:
        highs.append(-(-bound / step).to_integral_value(ROUND_FLOOR) * step - step)
    lowest, highest = max(lows, default=None), min(highs, default=None)
    if lowest is not None and highest is not None and lowest > highest:
        return NumberShape(integer)
    return NumberShape(integer, lowest, highest)


def _decimal(schema: Mapping[str, Json], keyword: str) -> Decimal | None:
    value = schema.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        return None
    return Decimal(str(value))


def _narrowed(shape: Shape, allowed: tuple[str, ...]) -> Shape:
    match shape:
        case StringShape() | AnyShape():
            return EnumShape(allowed)
        case EnumShape(values):
            return EnumShape(tuple(value for value in values if value in allowed))
        case ArrayShape(item):
            narrowed = _narrowed(item, allowed)
            return replace(shape, item=narrowed, max_items=shape.max_items if is_satisfiable(narrowed) else 0)
        case TupleShape(items):
            return TupleShape(tuple(_narrowed(each, allowed) for each in items))
        case UnionShape(shapes):
            return _any_of([_narrowed(each, allowed) for each in shapes])
        case _:
            return shape


def _any_of(shapes: Sequence[Shape]) -> Shape:
    """The union, flat, without doubles and without what cannot be written."""
    flat: list[Shape] = []
    for shape in shapes:
        flat.extend(shape.shapes if isinstance(shape, UnionShape) else [shape])
    if AnyShape() in flat:
        return AnyShape()
    distinct = tuple(shape for index, shape in enumerate(flat) if is_satisfiable(shape) and shape not in flat[:index])
    return distinct[0] if len(distinct) == 1 else UnionShape(distinct)


def _implied_type(schema: Mapping[str, Json]) -> str | None:
    return next((kind for keyword, kind in _IMPLIED.items() if keyword in schema), None)


_IMPLIED = {
    **dict.fromkeys(("properties", "additionalProperties", "required"), "object"),
    **dict.fromkeys(("items", "prefixItems"), "array"),
    **dict.fromkeys(("maxLength", "pattern"), "string"),
}


def _mapping(schema: Mapping[str, Json], keyword: str) -> Mapping[str, Json]:
    return _as_mapping(schema.get(keyword))


def _as_mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list(schema: Mapping[str, Json], keyword: str) -> list[Json]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _count(schema: Mapping[str, Json], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
