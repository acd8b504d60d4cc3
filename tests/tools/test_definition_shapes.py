"""Definitions of tools in the shapes of other APIs, protocols and data sets."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core.errors import UsageError
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet

SCHEMA = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["town"],
}
CAPITALS = {"type": "OBJECT", "properties": {"town": {"type": "STRING"}, "days": {"type": "INTEGER"}}}
NAMED = {"name": "forecast", "description": "d"}
SHAPES: dict[str, Any] = {
    "OpenAI": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}],
    "OpenAI's Responses": [{"type": "function", **NAMED, "parameters": SCHEMA, "strict": True}],
    "one definition": {"type": "function", "function": {**NAMED, "parameters": SCHEMA}},
    "functions": {"functions": [{**NAMED, "parameters": SCHEMA}]},
    "by name": {"forecast": {"description": "d", "parameters": SCHEMA}},
    "Anthropic": [{**NAMED, "input_schema": SCHEMA}],
    "MCP": [{**NAMED, "inputSchema": SCHEMA}],
    "MCP's list": {"tools": [{**NAMED, "inputSchema": SCHEMA}]},
    "MCP's response": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{**NAMED, "inputSchema": SCHEMA}]}},
    "Gemini": [{"functionDeclarations": [{**NAMED, "parameters": CAPITALS}]}],
    "Gemini's Python": [{"function_declarations": [{**NAMED, "parameters": CAPITALS}]}],
    "Bedrock": {"tools": [{"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}}]},
    "Cohere": [
        {**NAMED, "parameter_definitions": {"town": {"type": "str", "required": True}, "days": {"type": "int"}}}
    ],
    "xLAM": [{**NAMED, "parameters": {"town": {"type": "str"}, "days": {"type": "int, optional", "default": 1}}}],
    "properties": [{**NAMED, "parameters": SCHEMA["properties"]}],
    "smolagents": [{**NAMED, "inputs": {"town": {"type": "string"}, "days": {"type": "integer", "nullable": True}}}],
    "the Berkeley leaderboard": [{**NAMED, "parameters": {**SCHEMA, "type": "dict"}}],
}


@pytest.mark.parametrize("definitions", SHAPES.values(), ids=SHAPES)
def test_shape_declares_the_parameters(definitions):
    """The text of the call gets the declared type."""
    (tool,) = ToolSet(definitions).values()
    assert (tool.name, tool.description, tool.parameters["type"]) == ("forecast", "d", "object")
    turn = parse(
        '<tool_call>\n{"name": "forecast", "arguments": {"town": "Graz", "days": "2"}}\n</tool_call>', definitions
    )
    assert [call.arguments for call in turn.calls] == [{"town": "Graz", "days": 2}]


def test_required_properties_are_declared():
    (tool,) = ToolSet(SHAPES["Cohere"]).values()
    assert tool.required == ("town",)


@pytest.mark.parametrize("definitions", [7, ["forecast"], [{"description": "d"}], [{**NAMED, "parameters": "{}"}]])
def test_other_values_are_rejected(definitions):
    with pytest.raises(UsageError):
        ToolSet(definitions)


def test_parameter_with_the_name_of_a_wrapper_is_kept():
    (tool,) = ToolSet([{**NAMED, "parameters": {"json": {"type": "str"}, "days": {"type": "int"}}}]).values()
    assert tool.properties == {"json": {"type": "string"}, "days": {"type": "integer"}}


def test_only_types_are_renamed():
    """Not the values of a parameter, and not a word that is no type."""
    town = {"type": "STRING", "default": {"type": "INT"}, "items": {"type": "Town"}}
    (tool,) = ToolSet([{**NAMED, "parameters": {"type": "object", "properties": {"town": town}}}]).values()
    assert tool.properties == {"town": {**town, "type": "string"}}
