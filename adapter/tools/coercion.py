"""What a JSON Schema says about one value: its types, and conversions that lose nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.decode import decode_json
from adapter.core.json.strict import decode_strict

_TYPE_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_INTEGER = re.compile(r"[+-]?\d{1,400}(?:\.0+)?")
_BOOLEANS = {"true": True, "false": False}


def schema_types(schema: Json) -> frozenset[str]:
    """The JSON types that ``schema``, in which nothing is left to follow, admits; empty when it does not say."""
    if not isinstance(schema, Mapping):
        return frozenset()
    types: frozenset[str] = frozenset()
    for said in (_declared(schema), _listed(schema), _of_branches(schema, "anyOf"), _of_branches(schema, "oneOf")):
        types = _of_both(types, said) if types and said else types or said
    implied = "object" if "properties" in schema else "array" if "items" in schema else None
    return types or (frozenset({implied}) if implied else types)


def _declared(schema: Mapping[str, Json]) -> frozenset[str]:
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return frozenset(name for name in names if isinstance(name, str))


def _listed(schema: Mapping[str, Json]) -> frozenset[str]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return frozenset(map(type_name, values)) if isinstance(values, list) else frozenset()


def _of_branches(schema: Mapping[str, Json], keyword: str) -> frozenset[str]:
    """Those of any of the branches; none when one of them may be anything."""
    branches = schema.get(keyword)
    found = [schema_types(branch) for branch in branches if branch is not False] if isinstance(branches, list) else []
    return frozenset().union(*found) if all(found) else frozenset()


def _of_both(types: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """What both admit; the first, where that is nothing: ``{"type": "string", "enum": [1, 2]}``."""
    integers = {"integer"} & (types | others) if "number" in types | others else frozenset()
    return (types & others) | integers if types & others or integers else types


def select_branch(schema: Json, name: str) -> Mapping[str, Json]:
    """The part of ``schema`` that says what a value of the type ``name`` holds: itself, or one of its branches."""
    if not isinstance(schema, Mapping):
        return {}
    branches = [each for key in ("anyOf", "oneOf") for each in schema.get(key) or () if name in schema_types(each)]
    return select_branch(branches[0], name) if len(branches) == 1 else schema


def has_schema_type(value: Json, schema: Json) -> bool:
    """Whether ``value`` is what ``schema`` asks for, as far as types, choices, properties and items say."""
    if not isinstance(schema, Mapping):
        return schema is not False
    types = schema_types(schema)
    if types and not is_instance_of_types(value, types):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    if isinstance(listed := schema.get("enum"), list) and not any(_same(value, each) for each in listed):
        return False
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches and not any(has_schema_type(value, branch) for branch in branches):
            return False
    if isinstance(value, list):
        return all(
            has_schema_type(item, inner) for item, inner in zip(value, _item_schemas(schema, len(value)), strict=True)
        )
    if isinstance(value, dict):
        inner = _member_schemas(schema)
        has_all = all(name in value for name in schema.get("required") or ())
        return has_all and all(has_schema_type(item, inner.get(key, {})) for key, item in value.items())
    return True


def _same(value: Json, other: Json) -> bool:
    """Whether both are the same JSON: ``True`` is not 1, as it is in Python."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _member_schemas(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    inner = schema.get("properties")
    return inner if isinstance(inner, Mapping) else {}


def _item_schemas(schema: Mapping[str, Json], count: int) -> list[Json]:
    first, rest = schema.get("prefixItems"), schema.get("items", {})
    if isinstance(rest, list):  # how tuples were written before prefixItems
        first, rest = rest, {}
    first = first[:count] if isinstance(first, list) else []
    return [*first, *[rest] * (count - len(first))]


def type_name(value: Json) -> str:
    """The JSON type of a value: ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``, ``null``."""
    return _TYPE_NAMES.get(type(value), "string")


def is_instance_of_types(value: Json, types: frozenset[str]) -> bool:
    """Whether ``value`` is of one of the types as JSON Schema counts them (an integer is a number too)."""
    name = type_name(value)
    return name in types or (name == "integer" and "number" in types)


def coerce_text(text: str, schema: Json) -> Json:
    """The value of a parameter that was written as bare text, as XML formats do.

    A parameter that may be a string stays the text as it is, except for ``null`` where that is allowed, for a
    choice, and for JSON that is exactly the list or object which it may be as well. Text that does not read as a
    declared type stays text. ``null`` for what is null by default, and no text, is null.
    """
    if not isinstance(schema, Mapping):
        return text
    types, bare = schema_types(schema), text.strip()
    listed = schema.get("enum")
    if isinstance(listed, list) and bare not in listed:
        for value in listed:
            if not isinstance(value, str) and json.dumps(value) == bare:
                return value
    is_null_by_default = "string" not in types and schema.get("default", "") is None
    if bare in _WORDS_FOR_NULL and ("null" in types or is_null_by_default):
        return None
    if not types:
        return text
    if "string" in types:
        return bare if isinstance(listed, list) and bare in listed else _container(bare, types, schema, text)
    value, _ = coerce_to_types(bare, types)
    if value == [bare] and not _are_items(coerce_to_schema(value, schema)[0], schema):
        return text
    return value if is_instance_of_types(value, types) else text


_WORDS_FOR_NULL = ("null", "None")


def _container(bare: str, types: frozenset[str], schema: Mapping[str, Json], text: str) -> Json:
    """The list or object that ``bare`` is by the schema; ``text`` when it is none."""
    if not types & {"array", "object"} or bare[:1] not in ("{", "["):
        return text
    found = decode_strict(bare)
    is_whole = found is not None and found.end == len(bare)
    return found.value if found is not None and is_whole and has_schema_type(found.value, schema) else text


def coerce_to_schema(value: Json, schema: Json) -> tuple[Json, tuple[str, ...]]:
    """``value`` as ``schema`` asks for it, and the names of the fixes; unchanged where that would lose something.

    A value that fits is never touched.
    """
    if isinstance(value, str) and isinstance(schema, dict) and _takes_any_text(schema):
        return value, ()
    if not isinstance(schema, Mapping) or has_schema_type(value, schema):
        return value, ()
    for keyword in ("anyOf", "oneOf"):
        found = [coerce_to_schema(value, branch) for branch in schema.get(keyword) or ()]
        found = [(each, fixes) for each, fixes in found if has_schema_type(each, schema)]
        if found and all(_same(each, found[0][0]) for each, _ in found):
            return found[0]
    converted, fix = coerce_to_types(value, schema_types(schema))
    fixes = dict.fromkeys([fix] if fix else [])
    if isinstance(converted, str) and (choice := _choice(converted, schema)) is not None:
        converted, fixes["choice-spelling"] = choice, None
    items: list[tuple[Json, tuple[str, ...]]] = []
    if isinstance(converted, list):
        inner = _item_schemas(schema, len(converted))
        items = [coerce_to_schema(item, each) for item, each in zip(converted, inner, strict=True)]
        converted = [item for item, _ in items] if any(more for _, more in items) else converted
        if converted == [value] and not _are_items(converted, schema):
            return value, ()
    elif isinstance(converted, dict):
        members = _member_schemas(schema)
        items = [coerce_to_schema(item, members.get(key, {})) for key, item in converted.items()]
        converted = dict(zip(converted, (item for item, _ in items), strict=True))
    return converted, tuple(dict.fromkeys([*fixes, *(name for _, more in items for name in more)]))


def _are_items(items: list[Json], schema: Mapping[str, Json]) -> bool:
    """Whether ``items`` are of the types that a list of ``schema`` may hold."""
    types = map(schema_types, _item_schemas(schema, len(items)))
    return all(
        not admitted or is_instance_of_types(item, admitted) for item, admitted in zip(items, types, strict=True)
    )


def _takes_any_text(schema: Mapping[str, Json]) -> bool:
    return schema.get("type") == "string" and _CHOOSING.isdisjoint(schema)


_CHOOSING = frozenset({"enum", "const", "anyOf", "oneOf"})


def _choice(text: str, schema: Mapping[str, Json]) -> str | None:
    """The one choice that ``text`` is in another letter case, or with white space around it."""
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(listed, list):
        return None
    bare = text.strip().casefold()
    same = [value for value in listed if isinstance(value, str) and value.casefold() == bare]
    return same[0] if len(same) == 1 else None


def coerce_to_types(value: Json, types: frozenset[str]) -> tuple[Json, str | None]:
    """``value`` as one of ``types``, and the name of the fix; unchanged when nothing fits without loss."""
    if not types or is_instance_of_types(value, types):
        return value, None
    if isinstance(value, str):
        return _convert_text(value, types)
    if isinstance(value, float) and "integer" in types and value.is_integer():
        return int(value), "coerced-type"
    if isinstance(value, dict) and _is_echo(value, types):
        return value["value"], "echoed-schema"
    if "array" in types and not isinstance(value, list | dict) and value is not None:
        return [value], "coerced-type"
    if types == {"string"} and isinstance(value, int | float):
        return json.dumps(value), "coerced-type"
    return value, None


def _is_echo(value: JsonObject, types: frozenset[str]) -> bool:
    """Small models copy the schema and add the value: ``{"type": "string", "value": "Paris"}``."""
    return "value" in value and isinstance(value.get("type"), str) and is_instance_of_types(value["value"], types)


def _convert_text(text: str, types: frozenset[str]) -> tuple[Json, str | None]:
    bare = text.strip()
    if "null" in types and bare in _WORDS_FOR_NULL:
        return None, "coerced-type"
    if "boolean" in types and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()], "coerced-type"
    if types & {"integer", "number"} and _INTEGER.fullmatch(bare):
        return int(bare.split(".")[0]), "coerced-type"
    if types & {"integer", "number"}:
        try:
            number = float(bare)
        except ValueError:
            number = float("nan")
        if number - number == 0 and ("number" in types or number.is_integer()):  # not infinite, not not-a-number
            return number if "number" in types else int(number), "coerced-type"
    if bare[:1] in ("{", "[") and types & {"object", "array"}:
        try:
            value = decode_json(bare, closed=False)
        except FormatError:
            return text, None
        if not bare[value.end :].strip("}] \t\r\n") and is_instance_of_types(value.value, types):
            return value.value, "json-in-string"
    if bare[:1] == '"' and types & {"object", "array"} and "string" not in types:
        found = decode_strict(bare)  # encoded twice: JSON in a JSON string
        if found is not None and found.end == len(bare) and str(found.value).lstrip()[:1] in ("{", "["):
            value, _ = _convert_text(str(found.value), types)
            if is_instance_of_types(value, types):
                return value, "json-in-string"
    if "array" in types and bare:
        return [text], "coerced-type"
    return text, None
