"""What one row's columns are, and why a row could not be read."""

from __future__ import annotations

import json

import pytest

from adapter.core.errors import UsageError
from adapter.integrations.batch.row_parser import COLUMNS, RowParser, RowSettings, get_nested, unique_column_name
from adapter.parsing.formats import FORMATS

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {
    "path": {"type": "string"}, "line": {"type": "integer"}}}}}]  # fmt: skip
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'


def columns(row, **settings):
    return RowParser(RowSettings(**settings)).columns(row)


def test_an_answer_has_all_columns():
    """Answer, reasoning, calls in OpenAI's shape, fixes, invalid calls and the format."""
    broken = CALL.replace('"a.py"', '"a.py",').replace("read_file", "ReadFile")
    read = columns({"text": f"<think>Hm.</think>Here.\n{broken}"}, tools=json.dumps(TOOLS))
    (call,) = read["tool_calls"]
    assert list(read) == list(COLUMNS)
    assert (read["content"], read["reasoning"], read["format"], read["error"]) == ("Here.", "Hm.", "hermes", None)
    assert (call["type"], call["function"]) == ("function", {"name": "read_file", "arguments": '{"path": "a.py"}'})
    assert read["fixes"] == ["trailing-comma", "tool-name"]
    assert columns({"text": '<tool_call>\n{"name": 5}\n</tool_call>'})["invalid"][0]["raw"].startswith("<tool_call>")


def test_a_call_that_was_cut_is_none():
    """The row's own finish reason says so, under whichever name it has."""
    cut = CALL.removesuffix("\n</tool_call>")
    assert columns({"text": cut})["tool_calls"]
    assert columns({"text": cut, "finish_reason": "length"})["tool_calls"] == []
    assert columns({"text": cut, "ended": "length"}, finish_reason="ended")["tool_calls"] == []


def test_the_prompt_may_have_opened_reasoning():
    """Then the answer begins inside it."""
    assert columns({"text": "Hm.", "p": "<think>\n"}, prompt="p")["reasoning"] == "Hm."
    assert columns({"text": "Hm."}, prompt="p")["content"] == "Hm."


@pytest.mark.parametrize("tools", [json.dumps(TOOLS), [{**TOOLS[0], "strict": None}]], ids=["text", "list"])
def test_a_row_brings_its_own_tools(tools):
    """As JSON text, or as Parquet gives them, with nulls."""
    text = CALL.replace('"a.py"', '"a.py", "line": "3"')
    read = columns({"text": text, "tools": tools}, tools_column="tools")
    assert read["tool_calls"][0]["function"]["arguments"] == '{"path": "a.py", "line": 3}'


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"answer": "x"}, "column 'text' holds nothing, no text; the row has answer"),
        ({"text": None}, "holds nothing"),
        ({"text": 5}, "holds 5, no text"),
        ({"text": "x", "tools": "["}, "the tools are no JSON"),
        ({"text": "x", "tools": "5"}, "must be a JSON list"),
        ({"text": "x", "tools": [{"name": 5}]}, "a tool definition needs a name"),
        ({"text": "x", "tools": "[" * 100_000}, "nested too deeply"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(row, why):
    """And nothing else."""
    read = columns(row, tools_column="tools")
    assert why in read.pop("error")
    assert set(read.values()) == {None}


@pytest.mark.parametrize("settings", [{"format": "hermse"}, {"policy": "kind"}, {"tools": "{}"}])
def test_wrong_settings_are_refused_before_any_row(settings):
    """With what there is instead."""
    with pytest.raises(UsageError):
        RowParser(RowSettings(**settings))


def test_a_path_leads_into_a_row():
    """Keys and places in lists; a column of that very name comes first."""
    row = {"response": {"choices": [{"text": "a"}]}, "response.choices": "b"}
    assert get_nested(row, "response.choices.0.text") == "a"
    assert get_nested(row, "response.choices") == "b"
    assert get_nested(row, "response.choices.1.text") is None
    assert get_nested([], "a.b") is None


def test_a_column_of_ours_makes_way():
    """The input's is kept under a name that is free."""
    assert unique_column_name("id", ["id"]) == "id"
    assert unique_column_name("content", ["content"]) == "input_content"
    assert unique_column_name("content", ["content", "input_content"]) == "input_input_content"


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_recognised(name):
    """Of a call as the format itself writes it, by that format's name, or another's that writes the same."""
    call = ("read_file", {"path": "a.py"})
    text = FORMATS[name].encode_calls([call])
    found = columns({"text": text}, tools=json.dumps(TOOLS))["format"]
    told = columns({"text": text}, tools=json.dumps(TOOLS), format=name)["format"]
    assert told == name
    assert (
        found in (name, "unmarked", "")
        or FORMATS[found].encode_calls([("read_file", {"path": "a.py"})])[:12] == text[:12]
    )
