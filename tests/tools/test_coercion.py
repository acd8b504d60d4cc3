"""Schemas: the types of a value, and conversions without loss."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.repair_codes import REPAIRS
from adapter.tools.coercion import coerce_text, coerce_to_types, get_type_name, is_instance_of_types, list_types
from adapter.tools.schema_refs import resolve_references
from tests.parsing.formats.soup import soup, values

TYPES = ["string", "integer", "number", "boolean", "array", "object", "null"]


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, {"string", "array"}),
        ({"oneOf": [{"const": 1}, {"type": "null"}]}, {"integer", "null"}),
        ({"anyOf": [{"type": "string"}, {}]}, set()),
        ({"enum": ["a", 1, None]}, {"string", "integer", "null"}),
        ({"const": True}, {"boolean"}),
        ({"properties": {}}, {"object"}),
        ({"items": {}}, {"array"}),
        ({}, set()),
        ({"description": "anything"}, set()),
    ],
)
def test_types_of_a_schema(schema, types):
    """Return no types if the schema permits all."""
    assert list_types(schema) == types


@pytest.mark.parametrize(
    ("value", "types", "converted", "fix"),
    [
        ("5", "integer", 5, "coerced-type"),
        (" -5 ", "integer", -5, "coerced-type"),
        ("5.0", "integer", 5, "coerced-type"),
        (5.0, "integer", 5, "coerced-type"),
        ("1.5", "number", 1.5, "coerced-type"),
        ("5", "number", 5, "coerced-type"),
        ("true", "boolean", True, "coerced-type"),
        ("False", "boolean", False, "coerced-type"),
        (75001, "string", "75001", "coerced-type"),
        (True, "string", "true", "coerced-type"),
        ("a", "array", ["a"], "coerced-type"),
        (1, "array", [1], "coerced-type"),
        ('["a", "b"]', "array", ["a", "b"], "json-in-string"),
        ("{'a': 1}", "object", {"a": 1}, "json-in-string"),
        ("[/data/a, b.txt]", "array", ["/data/a", "b.txt"], "json-in-string"),
        ({"type": "string", "value": "Paris"}, "string", "Paris", "echoed-schema"),
    ],
)
def test_coerce_to_schema_converts_without_loss(value, types, converted, fix):
    """Another spelling of the declared type is converted, and reported."""
    found, name = coerce_to_types(value, frozenset({types}))
    assert (found, type(found), name) == (converted, type(converted), fix)
    assert name in REPAIRS


@pytest.mark.parametrize(
    ("value", "types"),
    [
        ("1.5", "integer"),
        (1.5, "integer"),
        ("five", "integer"),
        ("", "integer"),
        ("1e999", "number"),
        ("nan", "number"),
        ("inf", "number"),
        ("9" * 1000, "integer"),
        ("yes", "boolean"),
        (1, "boolean"),
        (0, "boolean"),
        ("a", "object"),
        ('{"a": ', "object"),
        ({"a": 1}, "string"),
        (["a"], "string"),
        ({"a": 1}, "array"),
        (None, "string"),
        (None, "array"),
        ("", "array"),
        ('oops ["a", "b"]', "array"),
        ({"type": "string", "value": 5}, "string"),
        ({"value": "Paris"}, "string"),
        ('{"a": 1}', "string"),
        ("5", "string"),
        ("true", "string"),
    ],
)
def test_coerce_to_schema_keeps_values_that_would_lose_information(value, types):
    """They stay unchanged, for validation to accept or refuse."""
    assert coerce_to_types(value, frozenset({types})) == (value, None)


@given(values, st.frozensets(st.sampled_from(TYPES), max_size=3))
def test_a_value_of_the_type_is_never_touched(value, types):
    """Valid values are not changed, and changed values are valid."""
    converted, fix = coerce_to_types(value, types)
    if not types or is_instance_of_types(value, types):
        assert converted is value
        assert fix is None
    elif fix is not None:
        assert is_instance_of_types(converted, types)
    json.dumps(converted, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("42", {"type": "integer"}, 42),
        ("42", {"type": "string"}, "42"),
        ("42", None, "42"),
        ("42", {}, "42"),
        ("true", {}, "true"),
        ('{"a": 1}', {}, {"a": 1}),
        (" [1, 2]\n", {"description": "any value"}, [1, 2]),
        ("{a}", {}, "{a}"),
        ('{"a": 1}', None, '{"a": 1}'),
        ("True", {"type": "boolean"}, True),
        ("{'a': 1}", {"type": "object"}, {"a": 1}),
        ('["a"]', {"type": "array"}, ["a"]),
        ('{"a": 1}', {"type": "string"}, '{"a": 1}'),
        ("null", {"type": ["string", "null"]}, None),
        ("null", {"type": "string"}, "null"),
        ("12", {"type": ["integer", "string"]}, "12"),
        (" 12 ", {"type": "integer"}, 12),
        ("twelve", {"type": "integer"}, "twelve"),
        (" padded ", {"type": "string"}, " padded "),
        ("3", {"enum": ["a", 3]}, 3),
        ("null", {"enum": ["a", None]}, None),
        ("3", {"enum": ["3", 3]}, "3"),
        ("a", {"enum": ["a", 3]}, "a"),
    ],
)
def test_bare_text_gets_its_declared_type(text, schema, value):
    """A parameter written without quotes gets its schema's type; a string stays exactly the text."""
    found = coerce_text(text, schema)
    assert (found, type(found)) == (value, type(value))


@given(soup, st.sampled_from([None, *TYPES]))
def test_bare_text_never_raises(text, name):
    found = coerce_text(text, {"type": name} if name else None)
    if name is None or name == "string":
        assert found == text


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "boolean"), (1, "integer"), (1.0, "number"), ("", "string"), ([], "array"), ({}, "object")],
)
def test_type_names(value, name):
    """A boolean is not an integer, but an integer is a number."""
    assert get_type_name(value) == name
    assert is_instance_of_types(value, frozenset({name}))
    assert is_instance_of_types(1, frozenset({"number"}))
    assert not is_instance_of_types(True, frozenset({"integer", "number"}))


def test_references_are_replaced():
    """By their local targets. A recursive reference ends as "anything"."""
    schema = {
        "$defs": {
            "Patch": {"type": "object", "properties": {"old": {"type": "string"}}},
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}},
        },
        "properties": {
            "patch": {"$ref": "#/$defs/Patch", "description": "one"},
            "node": {"$ref": "#/$defs/Node"},
            "lost": {"$ref": "#/$defs/Missing"},
        },
    }
    assert resolve_references(schema) == {
        "properties": {
            "patch": {"type": "object", "properties": {"old": {"type": "string"}}, "description": "one"},
            "node": {"type": "object", "properties": {"next": {}}},
            "lost": {},
        }
    }
