"""Lower JSON Schema to the shapes of `adapter.grammars.schema_ir`.

Servers support different subsets of JSON Schema: llama.cpp's converter and Ollama lack ``$ref`` or type lists, and fail
on unknown keywords. A schema is therefore lowered to a few shapes, which `adapter.grammars.gbnf` writes as GBNF or as
plain JSON Schema.

Unsupported constraints (``multipleOf``, ``uniqueItems``, ``not``, ``if``, nesting beyond `MAX_DEPTH`, ...) are
*widened*: the shape also allows values that violate them, because arguments are validated after decoding anyway.
Recursive references are followed `MAX_VISITS` times and then omitted.

*Choices* restrict a string parameter to certain values; see `adapter.grammars.schema_ir.Choices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Decimal

from adapter.core.events import Json, JsonObject
from adapter.grammars import schema_ir as ir
from adapter.grammars.number_ranges import MAX_NUMBER, PLACES
from adapter.tools.schema_refs import follow_ref, merge_all_of, resolve_pointer

MAX_DEPTH = 16
"""Maximum depth of nesting, references and alternatives. Deeper values are unconstrained."""
MAX_VISITS = 2
"""Maximum number of times that a recursive reference is followed inside itself."""
MAX_SCHEMAS = 2000
"""Maximum number of subschemas that are converted, because references can expand indefinitely."""
LONG_TEXTS = frozenset(
    {
        "content", "contents", "file_text", "file_content", "text", "body", "code", "source", "script", "message",
        "prompt", "patch", "patches", "diff", "input", "html", "markdown", "document", "old_text", "new_text",
        "old_string", "new_string", "old_str", "new_str", "search", "replace", "replacement", "command", "cmd",
        "query", "sql", "url"
    }
)  # fmt: skip
"""Names of parameters for long text. Other parameters have a lower limit, because a small model that begins a very long
text there will not stop."""


@dataclass(frozen=True, slots=True)
class LoweringOptions:
    """Limits on a lowered schema's strings and depth, and the allowed values of its parameters."""

    choices: ir.Choices = field(default_factory=dict)
    """Allowed values of string parameters."""
    max_string: int | None = None
    """Maximum length of strings, in characters; None keeps the schema's limit."""
    max_text: int | None = None
    """Maximum length of strings in the parameters in `LONG_TEXTS`, in characters; None keeps the schema's limit."""
    max_depth: int = MAX_DEPTH
    """Maximum nesting depth."""


@dataclass(frozen=True, slots=True)
class SchemaLowering:
    """Converts one tool's JSON Schema to a shape. ``schema`` can be any dict: neither its content nor its size causes
    an exception."""

    tool: str
    schema: JsonObject
    options: LoweringOptions
    _visited: list[None] = field(default_factory=list)
    _recursion_shape: ir.Shape = ir.NOTHING
    """The shape that replaces a recursive reference after `MAX_VISITS` visits."""

    def lower(self) -> ir.Shape:
        """Return the shape of the arguments object."""
        shape = self._reduce(self.schema, ())
        if not ir.is_satisfiable(shape):  # perhaps only because a required property is recursive
            shape = replace(self, _visited=[], _recursion_shape=ir.AnyShape())._reduce(self.schema, ())
        match shape:
            case ir.UnionShape(shapes) if objects := [
                item for item in shapes if isinstance(item, ir.ObjectShape | ir.MapShape)
            ]:
                return _build_union(objects)
            case ir.ObjectShape() | ir.MapShape() | ir.EnumShape():
                return shape
            case _:
                return ir.MapShape(ir.AnyShape()) if ir.is_satisfiable(shape) else ir.NOTHING

    def _reduce(self, schema: Json, path: tuple[str, ...]) -> ir.Shape:
        """Convert a subschema to a shape. ``path`` has the keywords, property names and references that lead to it, and
        limits depth and recursion."""
        self._visited.append(None)
        is_over_limit = len(path) >= self.options.max_depth or len(self._visited) > MAX_SCHEMAS
        if not isinstance(schema, Mapping) or is_over_limit:
            return ir.AnyShape()
        if isinstance(reference := schema.get("$ref"), str):
            if path.count(reference) >= MAX_VISITS:
                return self._recursion_shape
            return self._reduce(resolve_pointer(self.schema, reference), (*path, reference))
        if parts := _list(schema, "allOf"):
            return self._reduce(
                merge_all_of(schema, [follow_ref(self.schema, part) for part in parts]), (*path, "allOf")
            )
        if "const" in schema:
            return ir.EnumShape((schema["const"],))
        if values := _list(schema, "enum"):
            return ir.EnumShape(tuple(values))
        for keyword in ("anyOf", "oneOf"):
            if parts := _list(schema, keyword):
                rest = {key: value for key, value in schema.items() if key != keyword}
                if rest.keys() & _SHARED_KEYWORDS:
                    parts = [merge_all_of({}, [rest, follow_ref(self.schema, part)]) for part in parts]
                return _build_union([self._reduce(part, (*path, keyword)) for part in parts])
        kinds = schema.get("type", _infer_type(schema))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return _build_union([self._lower_type(kind, schema, path) for kind in kinds])

    def _lower_type(self, kind: Json, schema: Mapping[str, Json], path: tuple[str, ...]) -> ir.Shape:
        match kind:
            case "string":
                return self._lower_string(schema, is_text=_find_parameter(path) in LONG_TEXTS)
            case "integer" | "number":
                return _lower_number(schema, kind == "integer")
            case "boolean":
                return ir.Boolean()
            case "null":
                return ir.Null()
            case "array":
                item = self._reduce(schema.get("items", {}), (*path, "items"))
                fewest = _count(schema, "minItems") or 0
                most = _count(schema, "maxItems")
                if prefix := _list(schema, "prefixItems") or _list(schema, "items"):  # a list before draft 2020-12
                    shown = prefix[: ir.MAX_ITEMS if most is None else most]
                    first = [self._reduce(item, (*path, "items")) for item in shown]
                    return ir.TupleShape((*first, *[item] * (min(fewest, ir.MAX_ITEMS) - len(first))))
                most = max(fewest, ir.MAX_ITEMS if most is None else min(most, ir.MAX_ITEMS))
                return ir.ArrayShape(item, fewest, most if ir.is_satisfiable(item) else fewest)
            case "object":
                return self._lower_object(schema, path)
            case _:
                return ir.AnyShape()

    def _lower_string(self, schema: Mapping[str, Json], is_text: bool) -> ir.StringShape:
        shortest = _count(schema, "minLength") or 0
        limit = self.options.max_text if is_text else self.options.max_string
        bounds = [bound for bound in (_count(schema, "maxLength"), limit) if bound is not None]
        longest = min(bounds, default=None)
        longest = longest if longest is None else max(longest, shortest)
        pattern = schema.get("pattern")
        return ir.StringShape(shortest, longest, pattern if isinstance(pattern, str) else None)

    def _lower_object(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> ir.Shape:
        declared = schema.get("properties")
        required = [name for name in _list(schema, "required") if isinstance(name, str)]
        # Empty properties allow no property, unless additionalProperties does.
        none_declared = isinstance(declared, Mapping) and not declared and not required
        additional = schema.get("additionalProperties", not none_declared)
        declared = declared if isinstance(declared, Mapping) else {}
        if additional is not False:
            declared = {**declared, **{name: additional for name in required if name not in declared}}
        if not declared:
            other = ir.NOTHING if additional is False else self._reduce(additional, (*path, "additionalProperties"))
            return ir.MapShape(other) if ir.is_satisfiable(other) else ir.ObjectShape(())
        inside = (*path, "properties")
        lowered = [self._lower_property(name, inner, name in required, inside) for name, inner in declared.items()]
        properties = [item for item in lowered if item.required or ir.is_satisfiable(item.shape)]
        return ir.ObjectShape(tuple(sorted(properties, key=lambda item: not item.required)))

    def _lower_property(self, name: str, schema: Json, required: bool, path: tuple[str, ...]) -> ir.Property:
        shape = self._reduce(schema, (*path[:-1], name))
        if not required and isinstance(shape, ir.UnionShape):
            # An optional parameter is omitted instead of set to null.
            shape = _build_union([item for item in shape.shapes if item != ir.Null()])
        allowed = self.options.choices.get((self.tool, name), self.options.choices.get(name))
        return ir.Property(
            name, shape if allowed is None else _restrict(shape, tuple(dict.fromkeys(allowed))), required
        )


def _find_parameter(path: tuple[str, ...]) -> str | None:
    """Return the name of the innermost property on ``path``, or None. For ``path``, see `SchemaLowering._reduce`."""
    return next((step for step in reversed(path) if step not in _KEYWORDS and not step.startswith("#")), None)


_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "items", "additionalProperties"})
_SHARED_KEYWORDS = frozenset({"type", "properties", "required", "items", "additionalProperties", "allOf"})
"""Keywords next to ``anyOf`` or ``oneOf`` that also apply to each alternative."""


def _lower_number(schema: Mapping[str, Json], integer: bool) -> ir.NumberShape:
    """Return a number shape with inclusive bounds. Contradictory or too large bounds are ignored."""
    step = Decimal(1) if integer else Decimal(1).scaleb(-PLACES)
    lows, highs = list[Decimal](), list[Decimal]()
    if (bound := _parse_decimal(schema, "minimum")) is not None:
        lows.append(-(-bound / step).to_integral_value(ROUND_FLOOR) * step)
    if (bound := _parse_decimal(schema, "exclusiveMinimum")) is not None:
        lows.append((bound / step).to_integral_value(ROUND_FLOOR) * step + step)
    if (bound := _parse_decimal(schema, "maximum")) is not None:
        highs.append((bound / step).to_integral_value(ROUND_FLOOR) * step)
    if (bound := _parse_decimal(schema, "exclusiveMaximum")) is not None:
        highs.append(-(-bound / step).to_integral_value(ROUND_FLOOR) * step - step)
    lowest, highest = max(lows, default=None), min(highs, default=None)
    if lowest is not None and highest is not None and lowest > highest:
        return ir.NumberShape(integer)
    return ir.NumberShape(integer, lowest, highest)


def _parse_decimal(schema: Mapping[str, Json], keyword: str) -> Decimal | None:
    value = schema.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        return None
    return Decimal(str(value))


def _restrict(shape: ir.Shape, allowed: tuple[str, ...]) -> ir.Shape:
    match shape:
        case ir.StringShape() | ir.AnyShape():
            return ir.EnumShape(allowed)
        case ir.EnumShape(values):
            return ir.EnumShape(tuple(value for value in values if value in allowed))
        case ir.ArrayShape(item):
            restricted = _restrict(item, allowed)
            return replace(shape, item=restricted, max_items=shape.max_items if ir.is_satisfiable(restricted) else 0)
        case ir.TupleShape(items):
            return ir.TupleShape(tuple(_restrict(item, allowed) for item in items))
        case ir.UnionShape(shapes):
            return _build_union([_restrict(item, allowed) for item in shapes])
        case _:
            return shape


def _build_union(shapes: Sequence[ir.Shape]) -> ir.Shape:
    """Return a flat union without duplicate or unsatisfiable shapes."""
    flat: list[ir.Shape] = []
    for shape in shapes:
        flat.extend(shape.shapes if isinstance(shape, ir.UnionShape) else [shape])
    if ir.AnyShape() in flat:
        return ir.AnyShape()
    distinct = tuple(
        shape for index, shape in enumerate(flat) if ir.is_satisfiable(shape) and shape not in flat[:index]
    )
    return distinct[0] if len(distinct) == 1 else ir.UnionShape(distinct)


def _infer_type(schema: Mapping[str, Json]) -> str | None:
    return next((kind for keyword, kind in _IMPLIED.items() if keyword in schema), None)


_IMPLIED = {
    **dict.fromkeys(("properties", "additionalProperties", "required"), "object"),
    **dict.fromkeys(("items", "prefixItems"), "array"),
    **dict.fromkeys(("maxLength", "pattern"), "string"),
}


def _list(schema: Mapping[str, Json], keyword: str) -> list[Json]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _count(schema: Mapping[str, Json], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
