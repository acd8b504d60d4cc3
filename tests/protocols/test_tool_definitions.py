"""The tool definitions of a conversation are validated once."""

from __future__ import annotations

import json
from typing import Any

from adapter.protocols.token_budgets import Budgets
from adapter.protocols.tool_definitions import parse_tool_set


def definitions(default: Any) -> list[dict[str, Any]]:
    properties = {"a": {"type": "string", "default": default}}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties, "required": ("a",)}}
    return [{"type": "function", "function": function}]


def test_equal_definitions_are_validated_once():
    assert parse_tool_set(definitions("é")) is parse_tool_set(definitions("é"))


def test_equal_numbers_of_different_types_remain_different():
    defaults = [parse_tool_set(definitions(each))["f"].parameters["properties"]["a"]["default"] for each in (1, True)]
    assert json.dumps(defaults) == "[1, true]"


def test_the_client_s_definitions_are_not_changed():
    given = definitions("x")
    assert parse_tool_set(given)["f"].required == ("a",)
    assert given == definitions("x")


def test_the_rest_of_a_prompt_counts_against_its_budget():
    messages = [{"role": "user", "content": f"{number} " + "word " * 100} for number in range(20)]
    budgets = Budgets(context=4_096)
    assert not budgets.fit(messages, "").summary
    assert budgets.fit(messages, "word " * 3_000).summary
