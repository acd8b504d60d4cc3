"""Errors in a call's arguments, and the nearest valid call."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core.errors import ToolError
from adapter.core.events import JsonObject
from adapter.tools.call_validation import validate_call
from adapter.tools.example_calls import build_example_call
from adapter.tools.schema_violation_messages import find_schema_errors
from adapter.tools.tool import Tool
from adapter.tools.tool_set import MAX_LISTED, ToolSet

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["km", "mi"]},
        "places": {"type": "array", "items": {"type": "object", "properties": {"x": {}}, "required": ["x"]}},
    },
    "required": ["path", "unit"],
    "additionalProperties": False,
}
TOOL = Tool("walk", parameters=SCHEMA)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": "a", "unit": "km"}, ()),
        ({"unit": "km"}, ("'path' is missing (string)",)),
        ({"path": "a", "unit": "m"}, ('\'unit\' is "m": expected one of "km", "mi"',)),
        ({"path": 5, "unit": "km"}, ("'path' is 5: expected string",)),
        ({"path": "a", "unit": "km", "lines": 3}, ("there is no argument 'lines' (did you mean 'line'?)",)),
        ({"path": "a", "unit": "km", "places": [{}]}, ("'x' is missing in 'places.0' (any value)",)),
        ({"path": "a", "unit": "km", "line": 0}, ()),  # a bound is for the tool to judge
    ],
)
def test_each_problem_is_one_short_sentence(arguments, told):
    assert find_schema_errors(TOOL, arguments) == told


def test_a_schema_that_is_none_finds_nothing():
    assert (
        find_schema_errors(
            Tool("x", parameters={"type": "object", "properties": {"a": {"type": "nonsense"}}}), {"a": 1}
        )
        == ()
    )


def test_example_call_has_the_valid_arguments_and_the_values_of_the_schema():
    """An invented value would be copied."""
    written = {"path": "b", "unit": "mi", "line": "x", "more": 1}
    assert build_example_call(TOOL, written) == {"path": "b", "unit": "mi"}
    incomplete: list[JsonObject] = [{}, {"path": 7}, {"unit": "km"}, {"path": "b", "unit": "m"}]
    assert [build_example_call(TOOL, each) for each in incomplete] == [None] * 4
    nested = {**SCHEMA, "required": ["places"]}
    assert build_example_call(Tool("walk", parameters=nested)) is None


def test_a_wrong_call_is_answered_with_a_right_one():
    """Or with the parameters, if a value is unknown."""
    ride = Tool("ride", parameters={**SCHEMA, "properties": {**SCHEMA["properties"], "unit": {"const": "km"}}})
    with pytest.raises(ToolError, match=r"'unit' is missing .* Example: \{\"path\": \"a\", \"unit\": \"km\"\}"):
        validate_call("ride", {"path": "a"}, ToolSet([ride]))
    with pytest.raises(ToolError, match=r"'path' is missing .* Its parameters: path, "):
        validate_call("walk", {"unit": "km"}, ToolSet([TOOL]))


def test_explain_unknown_lists_nearest_tools_first():
    """Eighty names would hide the right one."""
    tools = ToolSet(Tool(f"tool_{number}_x") for number in range(80))
    said = tools.explain_unknown("tool_77_y")
    assert "and 40 more (did you mean 'tool_77_x'" in said
    assert said.count("tool_") <= MAX_LISTED + 5
