"""What a JSON Schema is put together of: ``$ref``, ``allOf``, and OpenAPI's ``nullable``.

Whatever reads a schema (types, prompts, grammars) finds its way here, so that all follow the same.
Only references into the schema itself are followed; others name nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject

SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
"""Keywords that hold schemas: by name, in a list, and one."""

MAX_STEPS = 16
"""References that lead from one to the next."""
MAX_SCHEMAS = 2000
"""That one schema is resolved to: references can make a short one grow without end."""
MAX_LEVELS = 32
"""Of schemas in schemas; what is deeper may be anything."""


def resolve_pointer(root: Mapping[str, Json], reference: str) -> Json:
    """What ``#/a/b`` points at in ``root``; ``{}`` (anything) where it points nowhere."""
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
    """``schema`` with what it refers to put in its place; what stands beside the reference counts more."""
    for _ in range(MAX_STEPS):
        if not isinstance(schema, Mapping) or not isinstance(reference := schema.get("$ref"), str):
            break
        found = resolve_pointer(root, reference)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = merge_all_of({}, [found, beside])
    return schema


def merge_all_of(schema: Mapping[str, Json], parts: Sequence[Json]) -> JsonObject:
    """``parts`` and ``schema`` without its ``allOf`` as one schema that all must hold to.

    Properties and requirements add up, types, choices and properties of one name narrow each other; of anything
    else the last one stays.
    """
    whole: JsonObject = {}
    rest = {key: value for key, value in schema.items() if key != "allOf"}
    for part in [*parts, rest]:
        if isinstance(part, Mapping):
            whole = {**whole, **part, **_both(whole, part)}
    return whole


def _both(first: Mapping[str, Json], second: Mapping[str, Json]) -> JsonObject:
    """The keywords of two schemas that both have, and that stand for both together."""
    found: JsonObject = {}
    for key in first.keys() & second.keys():
        one, other = first[key], second[key]
        match key:
            case "properties" if isinstance(one, Mapping) and isinstance(other, Mapping):
                same = {name: merge_all_of({}, [one[name], other[name]]) for name in one.keys() & other.keys()}
                found[key] = {**one, **other, **same}
            case "required" if isinstance(one, list) and isinstance(other, list):
                found[key] = [*one, *(name for name in other if name not in one)]
            case "enum" if isinstance(one, list) and isinstance(other, list):
                found[key] = [value for value in other if value in one] or other
            case "type":
                found[key] = _narrower(one, other)
    return found


def _narrower(one: Json, other: Json) -> Json:
    """The types of both; an integer is a number too."""
    ones, others = (value if isinstance(value, list) else [value] for value in (one, other))
    both = [name for name in others if name in ones or (name == "integer" and "number" in ones)]
    both += [name for name in ones if name == "integer" and "number" in others and name not in both]
    return both[0] if len(both) == 1 else both or other


def dereference(schema: Mapping[str, Json]) -> JsonObject:
    """``schema`` with nothing left to follow: references replaced, ``allOf`` merged, ``nullable`` a type.

    What refers to itself ends as ``{}``, and so does what is too deep or too much.
    """
    return _Resolution(schema).resolve(schema, ())


def resolve_references(schema: Mapping[str, Json]) -> JsonObject:
    """``schema`` with its references replaced, and nothing lost: also what `resolved` would merge."""
    return _Resolution(schema, merges=False).resolve(schema, ())


@dataclass(slots=True)
class _Resolution:
    root: Mapping[str, Json]
    merges: bool = True
    _count: int = 0

    def resolve(self, schema: Json, path: tuple[str, ...]) -> JsonObject:
        """``path``: a step a level, those by reference by what they refer to."""
        self._count += 1
        if not isinstance(schema, Mapping) or len(path) > MAX_LEVELS or self._count > MAX_SCHEMAS:
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            if reference in path:
                return {}
            found = self.resolve(resolve_pointer(self.root, reference), (*path, reference))
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return merge_all_of({}, [found, self.resolve(beside, path)]) if beside else found
        made = {key: self._within(key, value, path) for key, value in schema.items() if key not in _DEFINITIONS}
        if self.merges and isinstance(parts := made.get("allOf"), list):
            made = merge_all_of(made, parts)
        if self.merges and made.get("nullable") is True and isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
        return made

    def _within(self, key: str, value: Json, path: tuple[str, ...]) -> Json:
        """The value of a keyword, the schemas in it resolved."""
        deeper = (*path, key)
        if key in SCHEMAS_BY_NAME and isinstance(value, Mapping):
            return {name: self.resolve(each, deeper) for name, each in value.items()}
        if isinstance(value, list) and (key in SCHEMAS or key == "items"):
            return [self.resolve(each, deeper) for each in value]
        return self.resolve(value, deeper) if key in SCHEMA and isinstance(value, Mapping) else value


_DEFINITIONS = ("$defs", "definitions")
