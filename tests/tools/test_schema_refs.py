"""Schemas with references, allOf and null, as pydantic and MCP write them: values get their types."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adapter.core.errors import ToolError
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.prompting.intent.candidate_values import find_candidates
from adapter.prompting.system_prompt import system_prompt
from adapter.protocols.tool_definitions import parse_tool_set
from adapter.tools.call_normalization import normalize_call
from adapter.tools.call_validation import validate_call
from adapter.tools.coercion import coerce_text, coerce_to_schema, has_schema_type, list_types
from adapter.tools.schema_refs import MAX_SCHEMAS, dereference, resolve_pointer, resolve_references
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.parsing.formats.soup import values
from tests.processor_time import processor_limit

DEFS = {
    "Level": {"type": "integer"},
    "Kind": {"enum": ["Read", "write"], "type": "string"},
    "Point": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "kind": {"$ref": "#/$defs/Kind"}},
        "required": ["x"],
    },
    "Alias": {"$ref": "#/$defs/Level"},
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "x": {"type": "integer"}}},
}
PARAMETERS: dict[str, Any] = {
    "level": {"$ref": "#/$defs/Level"},
    "alias": {"$ref": "#/$defs/Alias", "description": "by two steps"},
    "maybe_level": {"anyOf": [{"$ref": "#/$defs/Level"}, {"type": "null"}], "default": None},
    "point": {"$ref": "#/$defs/Point"},
    "maybe_point": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
    "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
    "all": {"allOf": [{"$ref": "#/$defs/Point"}, {"properties": {"y": {"type": "boolean"}}}], "description": "both"},
    "one_of_all": {"allOf": [{"$ref": "#/$defs/Level"}], "default": 3},
    "kind": {"$ref": "#/$defs/Kind"},
    "node": {"$ref": "#/$defs/Node"},
    "either": {"oneOf": [{"$ref": "#/$defs/Level"}, {"type": "boolean"}]},
    "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "texts": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "place": {"$ref": "#/properties/point"},
}
TOOL = {
    "name": "draw",
    "parameters": {"type": "object", "properties": PARAMETERS, "required": ["level"], "$defs": DEFS},
}
VALUES: dict[str, Any] = {
    "level": 3,
    "alias": 4,
    "maybe_level": None,
    "point": {"x": 1, "kind": "Read"},
    "maybe_point": {"x": 2},
    "points": [{"x": 1}, {"x": 2, "kind": "write"}],
    "all": {"x": 1, "y": True},
    "one_of_all": 7,
    "kind": "write",
    "node": {"next": {"x": 3}},
    "either": False,
    "text": "a",
    "texts": "b",
    "place": {"x": 0},
}
VALIDATOR = Draft202012Validator(TOOL["parameters"])


ITSELF = {"$ref": "#/$defs/p"}
LIST = {"type": "array", "items": ITSELF}
TWICE: list[dict[str, Any]] = [
    {"anyOf": [LIST, LIST, {"type": "null"}]},
    {"oneOf": [LIST, LIST]},
    {"anyOf": [ITSELF, ITSELF]},
    {"anyOf": [LIST, {"allOf": [ITSELF, ITSELF]}]},
    {"type": "array", "prefixItems": [ITSELF], "items": {"anyOf": [ITSELF, ITSELF]}},
]


@pytest.mark.parametrize("recursive", TWICE)
def test_schema_that_contains_itself_twice_costs_little(recursive):
    """The references of a deep value doubled at each level."""
    schema = dereference({"properties": {"a": ITSELF}, "$defs": {"p": recursive}})["properties"]["a"]
    deep: Any = "5"
    for _ in range(60):
        deep = [deep]
    with processor_limit(10):
        has_schema_type(deep, schema)
        coerce_to_schema(deep, schema)
        coerce_text(json.dumps(deep), schema)


@pytest.mark.parametrize("name", FORMATS)
def test_referenced_parameters_come_back_as_they_were(name):
    """In every format, and with null where it is permitted."""
    VALIDATOR.validate(VALUES)
    for given_values in (VALUES, {**VALUES, "maybe_level": 5, "maybe_point": None, "text": None, "texts": ["x"]}):
        (call,) = parse(FORMATS[name].encode_calls([("draw", given_values)]), [TOOL], name).calls
        assert call.arguments == given_values


WRITTEN = [
    # parameter, as it is written without JSON's quotes, what it is
    ("level", " 3 ", 3),
    ("level", "three", "three"),
    ("alias", "4", 4),
    ("maybe_level", "null", None),
    ("maybe_level", "None", None),
    ("maybe_level", "12", 12),
    ("point", '{"x": 1}', {"x": 1}),
    ("point", "{'x': '1', 'kind': 'READ'}", {"x": 1, "kind": "Read"}),
    ("maybe_point", "null", None),
    ("points", '[{"x": 1}, {"x": "2"}]', [{"x": 1}, {"x": 2}]),
    ("points", '{"x": 1}', [{"x": 1}]),
    ("all", '{"x": "1", "y": "True"}', {"x": 1, "y": True}),
    ("one_of_all", "7", 7),
    ("kind", "write", "write"),
    ("kind", "WRITE", "write"),
    ("kind", "erase", "erase"),
    ("node", '{"next": {"x": 3}}', {"next": {"x": 3}}),
    ("either", "true", True),
    ("either", "5", 5),
    ("text", "null", None),
    ("text", "5", "5"),
    ("text", '["a"]', '["a"]'),
    ("texts", "a", "a"),
    ("texts", '["a", "b"]', ["a", "b"]),
    ("texts", "[1, 2]", "[1, 2]"),
    ("texts", "[a]", "[a]"),
    ("texts", "5", "5"),
]
"""The types of bare text for declared references, choices, null and several types."""


@pytest.mark.parametrize(("name", "text", "value"), WRITTEN)
def test_bare_text_has_the_type_behind_the_reference(name, text, value):
    """Text that fits no type stays text, for validation to refuse or accept."""
    definition = Tool.from_definition(TOOL)
    found = coerce_text(text, definition.properties[name])
    found, _ = coerce_to_schema(found, definition.properties[name])
    assert (found, type(found)) == (value, type(value))
    if value != text:
        VALIDATOR.validate({"level": 1, name: value})
    body = f"<tool_call>\n<function=draw>\n<parameter={name}>\n{text}\n</parameter>\n</function>\n</tool_call>"
    (call,) = parse(body, [TOOL], "qwen3_coder").calls
    assert call.arguments == {name: value}


CONVERTED = [
    ("level", "3", 3, ("coerced-type",)),
    ("maybe_level", "null", None, ("coerced-type",)),
    ("kind", "READ", "Read", ("choice-spelling",)),
    ("kind", " read ", "Read", ("choice-spelling",)),
    ("point", {"x": "1", "kind": "WRITE"}, {"x": 1, "kind": "write"}, ("coerced-type", "choice-spelling")),
    ("points", {"x": 1}, {"x": 1}, ()),
    ("points", '[{"x": "1"}]', [{"x": 1}], ("json-in-string", "coerced-type")),
    ("texts", [1], ["1"], ("coerced-type",)),
    ("text", 5, "5", ("coerced-type",)),
    ("either", "true", True, ("coerced-type",)),
]


@pytest.mark.parametrize(("name", "value", "wanted", "fixes"), CONVERTED)
def test_json_values_are_converted_where_nothing_is_lost(name, value, wanted, fixes):
    """Also inside lists and objects."""
    found = coerce_to_schema(value, Tool.from_definition(TOOL).properties[name])
    assert found == (wanted, fixes)


NODE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "label": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
        }
    },
}
OPEN = {
    "type": "object",
    "properties": {"pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}},
    "patternProperties": {"^n_": {"type": "integer"}},
    "additionalProperties": {"type": "boolean"},
}
SHAPES = {
    "type": "object",
    "properties": {
        "shape": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "a"}, "size": {"type": "integer"}, "x": {"type": "null"}},
                },
                {"type": "object", "properties": {"kind": {"const": "b"}, "size": {"type": "string"}}},
            ]
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        (
            NODE,
            {"size": "1", "children": [{"size": "2", "children": [{"size": "3", "label": 4.50}]}]},
            {"size": 1, "children": [{"size": 2, "children": [{"size": 3, "label": "4.5"}]}]},
        ),
        (OPEN, {"pair": ["1", 2], "n_a": "3", "other": "true"}, {"pair": [1, "2"], "n_a": 3, "other": True}),
        (SHAPES, {"shape": {"kind": "a", "size": "5", "x": "-"}}, {"shape": {"kind": "a", "size": 5, "x": "-"}}),
        (SHAPES, {"shape": {"kind": "b", "size": 5}}, {"shape": {"kind": "b", "size": "5"}}),
    ],
)
def test_values_at_every_depth_are_converted(schema, given, wanted):
    """Through recursive references, patterns, additional properties, tuples and discriminated unions."""
    tools = ToolSet([{"type": "function", "function": {"name": "draw", "parameters": schema}}])
    assert normalize_call("draw", given, tools)[1] == wanted


def test_request_may_define_a_recursive_model():
    tools = parse_tool_set([{"type": "function", "function": {"name": "draw", "parameters": NODE}}])
    assert [*tools["draw"].parameters["properties"]] == ["size", "label", "children"]


SCHEMAS = st.recursive(
    st.one_of(
        st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]).map(
            lambda name: {"type": name}
        ),
        st.sampled_from([{}, {"enum": ["a", "B"]}, {"enum": [1, None]}, {"const": "a"}, {"type": ["string", "null"]}]),
        st.sampled_from(sorted(DEFS)).map(lambda name: {"$ref": f"#/$defs/{name}"}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
        inner.map(lambda item: {"type": "array", "items": item}),
        inner.map(lambda member: {"type": "object", "properties": {"a": member}, "required": ["a"]}),
    ),
    max_leaves=5,
)
SPELLINGS = st.one_of(
    values,
    values.map(lambda value: json.dumps(value)),
    st.sampled_from(["null", "5", "1.0", "true", "A", "b", '["a"]', '{"a": "5"}', "{'a': null}", ["5"], {"a": "5"}]),
)


def has_whole_float(value):
    """Return whether a value has a float without a fraction, which JSON Schema accepts as an integer."""
    match value:
        case float():
            return value.is_integer()
        case list():
            return any(map(has_whole_float, value))
        case dict():
            return any(map(has_whole_float, value.values()))
    return False


@given(SCHEMAS, SPELLINGS)
def test_coercion_keeps_valid_values_and_never_worsens_invalid_ones(schema, value):
    """According to jsonschema, for any schema with references, and any value without such floats."""
    assume(not has_whole_float(value))
    whole = {"$defs": DEFS, **schema}
    validator, flat = Draft202012Validator(whole), dereference(whole)
    found, fixes = coerce_to_schema(value, flat)
    if validator.is_valid(value):
        assert (found, fixes) == (value, ())
        assert has_schema_type(value, flat)
    if not fixes:
        assert found is value or found == value


@given(SCHEMAS, values)
def test_a_value_of_some_type_is_read_from_its_bare_spelling(schema, value):
    """As JSON if it is not a string. The result is valid unless it may also be a string."""
    whole = {"$defs": DEFS, **schema}
    flat = dereference(whole)
    types = list_types(flat)
    if isinstance(value, str) or not types or "string" in types or not Draft202012Validator(whole).is_valid(value):
        return
    assert Draft202012Validator(whole).is_valid(coerce_text(json.dumps(value), flat))


def test_references_that_lead_nowhere_or_round_may_be_anything():
    """They end without restricting the value."""
    schema = {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {
            "round": {"$ref": "#/$defs/a"},
            "lost": {"$ref": "#/$defs/none"},
            "far": {"$ref": "other.json#/x"},
            "whole": {"$ref": "#"},
            "$ref": {"type": "string"},
            "definitions": {"type": "integer"},
        },
    }
    properties = dereference(schema)["properties"]
    assert [properties[name] for name in ("round", "lost", "far")] == [{}, {}, {}]
    assert properties["whole"]["properties"]["whole"] == {}
    assert (properties["$ref"], properties["definitions"]) == ({"type": "string"}, {"type": "integer"})
    assert resolve_pointer(schema, "#/properties/$ref") == {"type": "string"}


def test_a_short_schema_does_not_grow_without_end():
    """Ten references to ten references, and so on, are followed to a limit."""
    definitions = {
        f"d{level}": {"properties": {f"p{each}": {"$ref": f"#/$defs/d{level + 1}"} for each in range(10)}}
        for level in range(10)
    }
    schema = {"$defs": definitions, "$ref": "#/$defs/d0"}
    for made in (dereference(schema), resolve_references(schema)):
        assert json.dumps(made).count('"p') < 2 * MAX_SCHEMAS


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([{"type": "number"}, {"type": "integer"}], {"integer"}),
        ([{"type": ["string", "null"]}, {"type": "string"}], {"string"}),
        ([{"type": "object"}, {"properties": {"a": {}}}], {"object"}),
        ([{"enum": ["a", 1]}, {"enum": [1, 2]}], {"integer"}),
        ([{"type": "string"}, {"description": "a path"}], {"string"}),
        ([{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "integer"]}], {"string"}),
    ],
)
def test_parts_that_all_hold_narrow_each_other(parts, wanted):
    """The types of an ``allOf`` are the types that each part permits."""
    assert list_types(dereference({"allOf": parts})) == wanted


def test_nullable_is_a_type():
    """In OpenAPI's notation."""
    assert list_types(dereference({"type": "integer", "nullable": True})) == {"integer", "null"}


def test_prompts_show_the_fields_of_references():
    """A tool's signature shows the fields of its objects, wherever they are defined."""
    prompt = system_prompt(format="hermes", tools=[TOOL])
    assert 'point?: {x: integer, kind?: "Read"|"write"}' in prompt
    assert "$ref" not in prompt


@pytest.mark.parametrize(
    "keyword", ["properties", "patternProperties", "anyOf", "oneOf", "allOf", "prefixItems", "items"]
)
def test_keywords_with_wrong_values_are_ignored(keyword):
    """Clients and MCP servers also send invalid schemas, which must not break prompts or calls."""
    arguments = {"size": [5], "sizes": {"a": "5"}}
    for wrong in (None, True, 5, "x", [5], {"a": 5}, {}):
        inner = {keyword: wrong, "enum": 5, "required": 5, "type": 5, "minimum": "x", "maximum": {}}
        tool = {
            "name": "draw",
            "parameters": {"properties": {"size": inner, "sizes": {"items": inner}}, keyword: wrong},
        }
        tools = ToolSet([tool])
        system_prompt(tools=[tool])
        for name in tools["draw"].properties:
            assert find_candidates("draw 5 and 6", tools["draw"], name) is not None
        for format in ("hermes", "qwen3_coder", "pythonic"):
            assert parse(FORMATS[format].encode_calls([("draw", arguments)]), format=format, tools=[tool]) is not None
        with contextlib.suppress(ToolError):
            validate_call("draw", arguments, tools)
