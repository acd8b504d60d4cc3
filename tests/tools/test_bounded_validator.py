"""Untrusted schemas: arguments are validated according to the specification, within limits."""

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from adapter.core.events import ToolCall
from adapter.tools.bounded_validator import build_bounded_validator, find_violations
from adapter.tools.call_validation import is_valid, validate_call
from adapter.tools.function_tools import tool
from adapter.tools.schema_violation_messages import find_schema_errors, select_allowed_arguments
from adapter.tools.tool_set import ToolSet
from tests.loopback import LoopbackServer, QuietHandler
from tests.processor_time import processor_limit

EXPONENTIAL = [
    "^(x+x+)+y$",
    "(x|x)*y",
    "(x+)+$y",
    "^((x+)*)*!$",
    "(x*)*\\1y",
    "^(?=(x+x+)+y).*",
    "^(?:(?:x|xx)+){1,30}y",
]
SLOW: dict[str, Callable[[str], dict[str, Any]]] = {
    "pattern": lambda pattern: {"properties": {"a": {"type": "string", "pattern": pattern}}},
    "patternProperties": lambda pattern: {"patternProperties": {pattern: {"type": "string"}}},
    "nothing else": lambda pattern: {"patternProperties": {pattern: {}}, "additionalProperties": False},
    "in a branch": lambda pattern: {"properties": {"a": {"anyOf": [{"pattern": pattern}, {"type": "integer"}]}}},
    "unevaluated": lambda pattern: {"patternProperties": {pattern: {}}, "unevaluatedProperties": False},
}


@pytest.mark.parametrize("keyword", SLOW)
def test_patterns_are_searched_within_limits(keyword):
    """An argument of 25 characters took ten seconds, and each additional character doubled that."""
    with processor_limit(10):
        for pattern in EXPONENTIAL:
            built = tool(
                {"name": "f", "description": "d", "parameters": {"type": "object", **SLOW[keyword](pattern)}}, dict
            )
            for arguments in ({"a": "x" * 25}, {"x" * 25: "v"}):
                find_schema_errors(built, arguments)
                validate_call("f", arguments, ToolSet([built]))


REFERENCES = {
    "any": lambda target: {"anyOf": [target, target]},
    "all": lambda target: {"allOf": [target, target]},
    "one": lambda target: {"oneOf": [target, target]},
    "not": lambda target: {"not": {"anyOf": [target, target]}},
    "dynamic": lambda target: {"anyOf": [{"$dynamicRef": target["$ref"]}] * 2},
}


@pytest.mark.parametrize("keyword", REFERENCES)
def test_references_are_followed_within_limits(keyword):
    """A schema of 2 KB took longer than a day: each of its parts refers twice to the next."""
    parts = {f"p{each}": REFERENCES[keyword]({"$ref": f"#/$defs/p{each + 1}"}) for each in range(40)}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/p0"}},
        "$defs": {**parts, "p40": {"type": "null"}},
    }
    built = tool({"name": "f", "description": "d", "parameters": schema}, dict)
    with processor_limit(20):
        for arguments in ({"a": "x"}, {"a": None}):
            find_schema_errors(built, arguments)
            select_allowed_arguments(built, arguments)
            is_valid(ToolCall("id", "f", arguments, "", ()), ToolSet([built]))
            validate_call("f", arguments, ToolSet([built]))


@pytest.mark.parametrize("keyword", REFERENCES)
def test_arguments_with_too_many_references_are_invalid_for_all(monkeypatch, keyword):
    """A violation that was not reached in time may be there, so every check refuses the call with the same reason."""
    monkeypatch.setattr("adapter.tools.bounded_validator.MAX_REFERENCES", 1_000)
    parts = {f"p{each}": REFERENCES[keyword]({"$ref": f"#/$defs/p{each + 1}"}) for each in range(40)}
    schema = {"properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": {**parts, "p40": {"const": 1}}}
    built = tool({"name": "f", "description": "d", "parameters": schema}, dict)
    arguments = {"a": "x"}
    (problem,) = find_schema_errors(built, arguments)
    assert "cannot be checked" in problem
    assert "more than 1,000 references" in problem
    assert not is_valid(ToolCall("id", "f", arguments, "", ()), ToolSet([built]))
    assert problem in {error.message for error in find_violations(build_bounded_validator(schema), arguments)}


def test_no_reference_is_fetched():
    """Not by any keyword, from this machine or another."""
    asked = []

    class Page(QuietHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with LoopbackServer(Page) as server:
        for schema in (
            {"$ref": f"{server.url}/a"},
            {"$dynamicRef": f"{server.url}/b#x"},
            {"$id": f"{server.url}/c/", "$ref": "d"},
            {"$schema": f"{server.url}/e"},
            {"items": {"$ref": "file:///etc/hostname"}},
        ):
            built = tool({"name": "f", "description": "d", "parameters": {"properties": {"a": schema}}}, dict)
            assert find_schema_errors(built, {"a": ["x"]}) == ()
            assert is_valid(ToolCall("id", "f", {"a": ["x"]}, "", ()), ToolSet([built]))
    assert asked == []


def test_value_that_is_compared_too_long_is_invalid():
    """It may be what the pattern is there to refuse."""
    slow = EXPONENTIAL[-1]
    for schema, value in (
        ({"pattern": slow}, "x" * 40),
        ({"patternProperties": {slow: {}}}, {"x" * 40: 1}),
        ({"anyOf": [{"pattern": slow}, {"type": "null"}]}, "x" * 40),
    ):
        assert len(find_violations(build_bounded_validator(schema), value)) == 1
    assert not find_violations(build_bounded_validator({"patternProperties": {slow: {}}}), {"xxy": 1})


def test_items_are_compared_in_linear_time():
    validator = build_bounded_validator({"type": "array", "uniqueItems": True})
    with processor_limit(10):
        assert validator.is_valid([{"a": number} for number in range(50_000)])
        assert not validator.is_valid([{"a": 1}, {"b": 2}, {"a": 1}])


SAME = [
    ({"pattern": "^a+$"}, ["aa", "b", 5]),
    ({"patternProperties": {"^x": {"type": "integer"}}}, [{"x": 1}, {"x": "1"}, {"y": "1"}, []]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}, {"b": 1}, {"b": 1, "c": 2}, 5]),
    ({"patternProperties": {"^x": {}}, "additionalProperties": {"type": "string"}}, [{"x": 1, "y": "s"}, {"y": 1}]),
    ({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, ["a", "b", "c"]),
    ({"uniqueItems": True}, [[1, 2], [1, 1], [[1], [1]], [True, 1], ["1", 1]]),
    ({"uniqueItems": False}, [[1, 1]]),
]


@pytest.mark.parametrize(("schema", "values"), SAME)
def test_other_schemas_are_checked_as_ever(schema, values):
    for value in values:
        expected, found = (
            [(list(error.absolute_path), error.validator) for error in validator.iter_errors(value)]
            for validator in (Draft202012Validator(schema), build_bounded_validator(schema))
        )
        assert found == expected, value


@pytest.mark.parametrize("pattern", ["(", "[", "*", "x{2,1}", "(?P<a>x)(?P<a>y)", "a" * 2_000])
def test_invalid_patterns_forbid_nothing(pattern):
    built = tool(
        {"name": "f", "description": "d", "parameters": {"properties": {"a": {"type": "string", "pattern": pattern}}}},
        dict,
    )
    assert find_schema_errors(built, {"a": "x"}) == ()
    assert validate_call("f", {"a": "x"}, ToolSet([built])).arguments == {"a": "x"}
