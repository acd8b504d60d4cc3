"""Coerce values to the types in a JSON Schema, without losing information."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.decode import decode_json
from adapter.core.json.strict import RepeatedValues, VerbatimFloat, VerbatimInt, decode_strict, encode_as_written
from adapter.tools.schema_refs import expand_schema

_TYPE_NAMES: dict[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", VerbatimInt: "integer", VerbatimFloat: "number",
    list: "array", dict: "object", type(None): "null",
}  # fmt: skip
_BARE_LIST = re.compile(r"\[\s*([\w./~@:+-]+(?:\s*,\s*[\w./~@:+-]+)*)\s*\]")
"""Matches a list of words or paths without quotes."""
_BEGINS_LIST = re.compile(r"[\]}].*[\"',]|[\"'][\[{]|[\"'][^\"'\n]*[\"']\s*,|<item>|<(\w+)>.*</\1>\s*<\1>", re.DOTALL)
"""Matches text that begins like a damaged JSON list or like its items, also in elements."""
_ITEMS = re.compile(r"(?:<item>[^<>]*+</item>\s*+)++")
_each_item = re.compile(r"<item>([^<>]*+)</item>")
_ENDS_IN_LIST = re.compile(r"\s\[\s*[\"'{].*[\"'}]\s*\]\Z", re.DOTALL)
"""Matches text that ends in a JSON list, after something else."""
_INTEGER = re.compile(r"[+-]?\d{1,400}(?:\.0+)?")
_BOOLEANS = {"true": True, "false": False}


def list_types(schema: Json) -> frozenset[str]:
    """Return the JSON types that ``schema`` allows, or an empty set if it does not restrict the type. References must
    already be resolved."""
    schema = expand_schema(schema)
    if not isinstance(schema, Mapping):
        return frozenset()
    types: frozenset[str] = frozenset()
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    for found in (
        frozenset(name for name in names if isinstance(name, str)),
        frozenset(map(get_type_name, _list_choices(schema))),
        _list_branch_types(schema, "anyOf"),
        _list_branch_types(schema, "oneOf"),
    ):
        types = _intersect_types(types, found) if types and found else types or found
    implied = "object" if "properties" in schema else "array" if "items" in schema else None
    return types or (frozenset({implied}) if implied else types)


def _list_choices(schema: Json) -> list[Json]:
    """Return the values that ``const`` or ``enum`` allows, or an empty list."""
    if not isinstance(schema, Mapping):
        return []
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list) else []


def _list_branch_types(schema: Mapping[str, Json], keyword: str) -> frozenset[str]:
    """Return the types that the branches allow, or an empty set if a branch allows any type."""
    branches = schema.get(keyword)
    found = [list_types(branch) for branch in branches if branch is not False] if isinstance(branches, list) else []
    return frozenset().union(*found) if all(found) else frozenset()


def _intersect_types(types: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Return the types in both sets, or ``types`` if the sets are disjoint."""
    integers = {"integer"} & (types | others) if "number" in types | others else frozenset()
    return (types & others) | integers if types & others or integers else types


def select_branch(schema: Json, name: str) -> Mapping[str, Json]:
    """Return the only branch of ``schema`` that accepts the type ``name``, or ``schema`` if there is not exactly
    one."""
    if not isinstance(schema, Mapping):
        return {}
    branches = [each for key in ("anyOf", "oneOf") for each in schema.get(key) or () if name in list_types(each)]
    return select_branch(branches[0], name) if len(branches) == 1 else schema


def has_schema_type(value: Json, schema: Json) -> bool:
    """Return whether ``value`` matches the types, choices, properties and items of ``schema``."""
    schema = expand_schema(schema)
    if not isinstance(schema, Mapping):
        return schema is not False
    types = list_types(schema)
    if types and not is_instance_of_types(value, types):
        return False
    if "const" in schema and not _is_same(value, schema["const"]):
        return False
    if isinstance(listed := schema.get("enum"), list) and not any(_is_same(value, each) for each in listed):
        return False
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches and not any(has_schema_type(value, branch) for branch in branches):
            return False
    if isinstance(value, list):
        return all(
            has_schema_type(item, inner)
            for item, inner in zip(value, list_item_schemas(schema, len(value)), strict=True)
        )
    if isinstance(value, dict):
        return value.keys() >= set(list_required(schema)) and all(
            has_schema_type(item, find_member_schema(schema, key)) for key, item in value.items()
        )
    return True


def list_required(schema: Mapping[str, Json]) -> list[str]:
    """Return the required properties. A flag like ``"required": true`` (JSON Schema before draft 4) counts as none."""
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []


def _is_same(value: Json, other: Json) -> bool:
    """Compare JSON values. Unlike in Python, ``True`` does not equal 1."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def find_member_schema(schema: Mapping[str, Json], key: str) -> Json:
    """Return the schema of ``key`` from ``properties``, ``patternProperties`` or ``additionalProperties``."""
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    if isinstance(patterns, Mapping) and patterns:
        from adapter.core.text.safe_regex import occurs  # imports regex, which few schemas need

        for pattern, inner in patterns.items():
            if occurs(pattern, key):
                return inner
    others = schema.get("additionalProperties")
    return others if isinstance(others, Mapping) else {}


def list_item_schemas(schema: Mapping[str, Json], count: int) -> list[Json]:
    """Return the schemas of the ``count`` items of a list."""
    first, rest = schema.get("prefixItems"), schema.get("items", {})
    if isinstance(rest, list):  # the older syntax for prefixItems
        first, rest = rest, {}
    first = first[:count] if isinstance(first, list) else []
    return [*first, *[rest] * (count - len(first))]


def get_type_name(value: Json) -> str:
    """Return the name of a value's JSON type: ``string``, ``integer``, ``array`` and so on."""
    return _TYPE_NAMES.get(type(value), "string")


def is_instance_of_types(value: Json, types: frozenset[str]) -> bool:
    """Return whether ``value`` has one of the JSON Schema ``types``. An integer is also a number."""
    name = get_type_name(value)
    return name in types or (name == "integer" and "number" in types)


def coerce_text(text: str, schema: Json, repairs: dict[str, None] | None = None) -> Json:
    """Convert an argument written as bare text, as in XML formats, to a type that ``schema`` allows. Repairs of JSON
    are added to ``repairs``.

    If the schema allows strings or any type, text is unchanged, except for ``null`` if null is allowed, a value of the
    enum, and JSON that is exactly a list or object for the schema. If it allows no strings, ``null`` also becomes null
    if that is the default. Text that cannot be converted is unchanged.
    """
    if not isinstance(schema, Mapping):
        return text
    types, bare = list_types(schema), text.strip()
    listed = schema.get("enum")
    if isinstance(listed, list) and bare not in listed:
        for value in listed:
            if not isinstance(value, str) and json.dumps(value) == bare:
                return value
    is_null_by_default = "string" not in types and schema.get("default", "") is None
    if bare in _NULL_WORDS and ("null" in types or is_null_by_default):
        return None
    if not types or "string" in types:
        return bare if isinstance(listed, list) and bare in listed else _decode_container(bare, types, schema, text)
    value, _ = coerce_to_types(bare, types, repairs)
    if value == [bare] and not _are_items(coerce_to_schema(value, schema)[0], schema):
        return text
    return value if is_instance_of_types(value, types) else text


_NULL_WORDS = ("null", "None")


def _decode_container(bare: str, types: frozenset[str], schema: Mapping[str, Json], text: str) -> Json:
    """Decode ``bare`` as a list or object that matches the schema, or return ``text``."""
    if (types and not types & {"array", "object"}) or bare[:1] not in ("{", "["):
        return text
    decoded = decode_strict(bare)
    is_whole = decoded is not None and decoded.end == len(bare)
    return decoded.value if decoded is not None and is_whole and has_schema_type(decoded.value, schema) else text


def coerce_to_schema(value: Json, schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Convert ``value`` to the types in ``schema`` if no information is lost. Return the value and the repairs. A value
    that matches the schema is unchanged."""
    schema = expand_schema(schema)
    if isinstance(value, RepeatedValues):
        if "array" not in list_types(schema):
            return value, ()
        value = [item for each in value for item in (each if isinstance(each, list) else [each])]
    if not isinstance(schema, Mapping):
        return value, ()
    accepts_any_text = schema.get("type") == "string" and _RESTRICTIONS.isdisjoint(schema)
    if (accepts_any_text and isinstance(value, str)) or has_schema_type(value, schema):
        return value, ()
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword) or ()
        tagged = [branch for branch in branches if _has_constants(value, expand_schema(branch))]
        if len(tagged) == 1:
            return coerce_to_schema(value, tagged[0])
        found = [coerce_to_schema(value, branch) for branch in branches]
        found = [(each, fixes) for each, fixes in found if has_schema_type(each, schema)]
        if found and all(_is_same(each, found[0][0]) for each, _ in found):
            return found[0]
    fixes: dict[str, None] = {}
    converted, fix = coerce_to_types(value, list_types(schema), fixes)
    fixes |= {fix: None} if fix else {}
    if isinstance(converted, str) and (choice := _match_choice(converted, schema)) is not None:
        converted, fixes["choice-spelling"] = choice, None
    items: list[tuple[Json, tuple[str, ...]]] = []
    if isinstance(converted, list):
        inner = list_item_schemas(schema, len(converted))
        items = [coerce_to_schema(item, each) for item, each in zip(converted, inner, strict=True)]
        converted = [item for item, _ in items] if any(more for _, more in items) else converted
        if converted == [value] and not _are_items(converted, schema):
            return value, ()
    elif isinstance(converted, dict):
        items = [coerce_to_schema(item, find_member_schema(schema, key)) for key, item in converted.items()]
        converted = dict(zip(converted, (item for item, _ in items), strict=True))
    return converted, tuple(dict.fromkeys([*fixes, *(name for _, more in items for name in more)]))


def _has_constants(value: Json, branch: Json) -> bool:
    """Return whether ``branch`` has constants, as in ``{"kind": "circle"}``, and ``value`` contradicts none of them."""
    properties = branch.get("properties") if isinstance(branch, Mapping) else None
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return False
    choices = {key: _list_choices(each) for key, each in properties.items()}
    constants = {key: listed[0] for key, listed in choices.items() if len(listed) == 1}
    return bool(constants) and all(value[key] == constant for key, constant in constants.items() if key in value)


def _are_items(items: list[Json], schema: Mapping[str, Json]) -> bool:
    """Return whether all ``items`` have types that ``schema``, the list's schema, allows."""
    types = map(list_types, list_item_schemas(schema, len(items)))
    return all(
        not admitted or is_instance_of_types(item, admitted) for item, admitted in zip(items, types, strict=True)
    )


_RESTRICTIONS = frozenset({"enum", "const", "anyOf", "oneOf"})


def _match_choice(text: str, schema: Mapping[str, Json]) -> str | None:
    """Return the only choice that equals ``text``, ignoring letter case and surrounding whitespace, or None."""
    bare = text.strip().casefold()
    same = [value for value in _list_choices(schema) if isinstance(value, str) and value.casefold() == bare]
    return same[0] if len(same) == 1 else None


def coerce_to_types(
    value: Json, types: frozenset[str], repairs: dict[str, None] | None = None
) -> tuple[Json, str | None]:
    """Convert ``value`` to one of ``types`` without loss. Return the value and the repair's code, or ``value`` and None
    if that is impossible or unnecessary. Repairs of JSON in a string are added to ``repairs``."""
    if not types or is_instance_of_types(value, types):
        return value, None
    if isinstance(value, str):
        return _convert_text(value, types, {} if repairs is None else repairs)
    if isinstance(value, float) and "integer" in types and value.is_integer():
        return int(value), "coerced-type"
    if isinstance(value, dict) and _is_echo(value, types):
        return value["value"], "echoed-schema"
    if "array" in types and not isinstance(value, list | dict) and value is not None:
        return [value], "coerced-type"
    if types - {"null"} == {"string"} and isinstance(value, int | float):
        return encode_as_written(value), "coerced-type"
    return value, None


def _is_echo(value: JsonObject, types: frozenset[str]) -> bool:
    """Return whether ``value`` is a copy of its schema with a value, as in ``{"type": "string", "value": "Paris"}``."""
    return "value" in value and isinstance(value.get("type"), str) and is_instance_of_types(value["value"], types)


def _convert_text(text: str, types: frozenset[str], repairs: dict[str, None]) -> tuple[Json, str | None]:
    bare = text.strip()
    if "null" in types and bare in _NULL_WORDS:
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
        if number - number == 0 and ("number" in types or number.is_integer()):  # neither infinite nor NaN
            return number if "number" in types else int(number), "coerced-type"
    if bare[:1] in ("{", "[") and types & {"object", "array"}:
        try:
            value = decode_json(bare)
        except FormatError:
            words = _BARE_LIST.fullmatch(bare) if "array" in types else None
            if words is not None:
                repairs["unquoted-string"] = None
                return re.split(r"\s*,\s*", words[1]), "json-in-string"
            return text, None
        rest = bare[value.end :]
        if not rest.strip("}] \t\r\n") and is_instance_of_types(value.value, types):
            repairs.update(dict.fromkeys([*value.fixes, *(["extra-bracket"] if rest else [])]))
            return value.value, "json-in-string"
        if rest and bare[0] == "[":
            return text, None
    if bare[:1] == '"' and types & {"object", "array"} and "string" not in types:
        decoded = decode_strict(bare)  # JSON in a JSON string
        if decoded is not None and decoded.end == len(bare) and str(decoded.value).lstrip()[:1] in ("{", "["):
            value, _ = _convert_text(str(decoded.value), types, repairs)
            if is_instance_of_types(value, types):
                return value, "json-in-string"
    if "array" in types and _ITEMS.fullmatch(bare):
        return list(_each_item.findall(bare)), "coerced-type"
    if "array" in types and bare and not _is_damaged_list(bare):
        return [text], "coerced-type"
    return text, None


def _is_damaged_list(text: str) -> bool:
    """Return whether ``text`` looks like a JSON list that lost a quote or bracket, rather than a single item."""
    is_part = _BEGINS_LIST.match(text) is not None or _ENDS_IN_LIST.search(text) is not None
    return is_part or text.count("[") != text.count("]")
