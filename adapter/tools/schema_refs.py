"""Resolve ``$ref``, ``allOf`` and OpenAPI's ``nullable`` in a JSON Schema.

Coercion, prompts and grammars all use this module, so that they interpret a schema in the same way. Only references
within the schema are resolved. An external reference counts as an empty schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from adapter.core.events import Json, JsonObject

SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
"""Keywords whose value is a schema. In `SCHEMAS_BY_NAME`, the value maps names to schemas; in `SCHEMAS`, it is a list
of schemas."""

_SHAPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(SCHEMAS_BY_NAME, Mapping),
    **dict.fromkeys((*SCHEMAS, "enum", "required"), list),
    **dict.fromkeys(("minimum", "maximum"), (int, float)),
    "type": (str, list),
    "items": (Mapping, list, bool),
}
"""The types of keywords' values. `dereference` drops a keyword whose value has another type, because the schema of a
client or MCP server may be invalid."""

MAX_STEPS = 16
"""Maximum number of references in a chain."""
MAX_SCHEMAS = 2000
"""Maximum number of subschemas in a resolved schema, and of subschemas that its recursive references add. Without these
limits, references could make a short schema grow indefinitely."""
MAX_LEVELS = 32
"""Maximum nesting depth of subschemas and of recursive references. Deeper subschemas become ``{}``, which allows any
value."""


class RecursiveSchema(dict[str, Json]):
    """An empty schema that replaces a reference to an enclosing schema. `expand_schema` returns the enclosing
    schema."""

    def __init__(self, resolution: _Resolution, reference: str) -> None:
        super().__init__()
        self._resolution, self._reference = resolution, reference

    @cached_property
    def target(self) -> JsonObject:
        return self._resolution.expand(self._reference)


def expand_schema(schema: Json) -> Json:
    """Return the schema that a `RecursiveSchema` refers to, or any other schema unchanged."""
    return schema.target if isinstance(schema, RecursiveSchema) else schema


def resolve_pointer(root: Mapping[str, Json], reference: str) -> Json:
    """Return the value at the JSON pointer ``#/a/b`` in ``root``, or ``{}``, which allows any value."""
    node: Json = root
    if not reference.startswith("#"):
        return {}
    for step in reference.removeprefix("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, Mapping) and step in node:
            node = node[step]
        else:
            return {}
    return node


def follow_ref(root: Mapping[str, Json], schema: Json) -> Json:
    """Replace the reference in ``schema`` with its target. Keywords next to it take precedence."""
    for _ in range(MAX_STEPS):
        if not isinstance(schema, Mapping) or not isinstance(reference := schema.get("$ref"), str):
            break
        target = resolve_pointer(root, reference)
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        schema = merge_all_of({}, [target, siblings])
    return schema


def merge_all_of(schema: Mapping[str, Json], parts: Sequence[Json]) -> JsonObject:
    """Merge ``parts`` and the keywords of ``schema`` other than ``allOf`` into one schema that requires all of them.

    Properties and required names are combined. Types, choices and properties with the same name are narrowed. For other
    keywords, the last value is used.
    """
    whole: JsonObject = {}
    rest = {key: value for key, value in schema.items() if key != "allOf"}
    for part in [*parts, rest]:
        if isinstance(part, Mapping):
            whole = {**whole, **part, **_combine_keywords(whole, part)}
    return whole


def _combine_keywords(first: Mapping[str, Json], second: Mapping[str, Json]) -> JsonObject:
    """Return the merged values of the keywords that both schemas have and that can be combined."""
    combined: JsonObject = {}
    for key in first.keys() & second.keys():
        left, right = first[key], second[key]
        match key:
            case "properties" if isinstance(left, Mapping) and isinstance(right, Mapping):
                same = {name: merge_all_of({}, [left[name], right[name]]) for name in left.keys() & right.keys()}
                combined[key] = {**left, **right, **same}
            case "required" if isinstance(left, list) and isinstance(right, list):
                combined[key] = [*left, *(name for name in right if name not in left)]
            case "enum" if isinstance(left, list) and isinstance(right, list):
                combined[key] = [value for value in right if value in left] or right
            case "type":
                combined[key] = _intersect_types(left, right)
    return combined


def _intersect_types(left: Json, right: Json) -> Json:
    """Return the types in both ``type`` values. An integer is also a number."""
    left_types, right_types = (value if isinstance(value, list) else [value] for value in (left, right))
    both = [name for name in right_types if name in left_types or (name == "integer" and "number" in left_types)]
    both += [name for name in left_types if name == "integer" and "number" in right_types and name not in both]
    return both[0] if len(both) == 1 else both or right


def dereference(schema: Mapping[str, Json]) -> JsonObject:
    """Resolve ``schema`` completely: replace references, merge ``allOf``, and convert ``nullable`` to a type. A
    recursive reference becomes a `RecursiveSchema`, and a subschema beyond the limits becomes ``{}``."""
    return _Resolution(schema).resolve(schema, ())


def resolve_references(schema: Mapping[str, Json]) -> JsonObject:
    """Replace the references in ``schema`` with their targets, but do not merge ``allOf``."""
    return _Resolution(schema, merges=False).resolve(schema, ())


@dataclass(slots=True)
class _Resolution:
    """Resolves the references in one schema, and counts the result's subschemas to enforce the limits."""

    root: Mapping[str, Json]
    merges: bool = True
    expanded: list[int] = field(default_factory=list)
    """Number of subschemas added by each recursive reference resolved so far."""
    level: int = 0
    """Number of recursive references between the whole schema and this part."""
    _count: int = 0

    def expand(self, reference: str) -> JsonObject:
        """Resolve the target of a recursive reference."""
        if self.level >= MAX_LEVELS or sum(self.expanded) > MAX_SCHEMAS:
            return {}
        inner = _Resolution(self.root, expanded=self.expanded, level=self.level + 1)
        target = inner.resolve({"$ref": reference}, ())
        self.expanded.append(inner._count)
        return target

    def resolve(self, schema: Json, path: tuple[str, ...]) -> JsonObject:
        """Resolve a subschema. ``path``: the keywords and references that lead to it."""
        self._count += 1
        if not isinstance(schema, Mapping) or len(path) > MAX_LEVELS or self._count > MAX_SCHEMAS:
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            if reference in path:
                return RecursiveSchema(self, reference)
            found = self.resolve(resolve_pointer(self.root, reference), (*path, reference))
            siblings = {key: value for key, value in schema.items() if key != "$ref"}
            return merge_all_of({}, [found, self.resolve(siblings, path)]) if siblings else found
        resolved = {
            key: self._resolve_keyword(key, value, path)
            for key, value in schema.items()
            if key not in _DEFINITIONS and isinstance(value, _SHAPES.get(key, object))
        }
        if self.merges and (parts := resolved.get("allOf")) is not None:
            resolved = merge_all_of(resolved, parts)
        if self.merges and resolved.get("nullable") is True and isinstance(resolved.get("type"), str):
            resolved["type"] = [resolved["type"], "null"]
        return resolved

    def _resolve_keyword(self, key: str, value: Json, path: tuple[str, ...]) -> Json:
        deeper = (*path, key)
        if key in SCHEMAS_BY_NAME and isinstance(value, Mapping):
            return {name: self.resolve(each, deeper) for name, each in value.items()}
        if isinstance(value, list) and (key in SCHEMAS or key == "items"):
            return [self.resolve(each, deeper) for each in value]
        return self.resolve(value, deeper) if key in SCHEMA and isinstance(value, Mapping) else value


_DEFINITIONS = ("$defs", "definitions")
