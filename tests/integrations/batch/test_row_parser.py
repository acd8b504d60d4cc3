"""The columns of one row, and the errors of rows that cannot be parsed."""

from __future__ import annotations

import json

import pytest

from adapter.core.errors import UsageError
from adapter.integrations.batch.row_parser import COLUMNS, RowParser, RowSettings, build_unique_column_name, get_nested
from adapter.parsing.formats import FORMATS

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {
    "path": {"type": "string"}, "line": {"type": "integer"}}}}}]  # fmt: skip
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'


def columns(row, **settings):
    return RowParser(RowSettings(**settings)).build_columns(row)


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


def test_truncated_call_is_invalid():
    """The row's finish reason indicates it, under any column name."""
    cut = CALL.removesuffix("\n</tool_call>")
    assert columns({"text": cut})["tool_calls"]
    assert columns({"text": cut, "finish_reason": "length"})["tool_calls"] == []
    assert columns({"text": cut, "ended": "length"}, finish_reason="ended")["tool_calls"] == []


def test_the_prompt_may_have_opened_reasoning():
    """Then the answer begins inside it."""
    assert columns({"text": "Hm.", "p": "<think>\n"}, prompt="p")["reasoning"] == "Hm."
    assert columns({"text": "Hm."}, prompt="p")["content"] == "Hm."


@pytest.mark.parametrize("tools", [json.dumps(TOOLS), [{**TOOLS[0], "strict": None}]], ids=["text", "list"])
def test_row_may_have_its_own_tools(tools):
    """As JSON text, or as Parquet gives them, with nulls."""
    text = CALL.replace('"a.py"', '"a.py", "line": "3"')
    read = columns({"text": text, "tools": tools}, tools_column="tools")
    assert read["tool_calls"][0]["function"]["arguments"] == '{"path": "a.py", "line": 3}'


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"answer": "x"}, "column 'text' must be text, got nothing; the row has columns: answer"),
        ({"text": None}, "must be text, got nothing"),
        ({"text": 5}, "must be text, got 5"),
        ({"text": "x", "tools": "["}, "the tools are not valid JSON"),
        ({"text": "x", "tools": "5"}, "must be a JSON list"),
        ({"text": "x", "tools": [{"name": 5}]}, "a tool definition needs a name"),
        ({"text": "x", "tools": "[" * 100_000}, "nested too deeply"),
    ],
)
def test_unparsable_row_has_an_error(row, why):
    """And nothing else."""
    read = columns(row, tools_column="tools")
    assert why in read.pop("error")
    assert set(read.values()) == {None}


@pytest.mark.parametrize("settings", [{"format": "hermse"}, {"policy": "kind"}, {"tools": "{}"}])
def test_invalid_settings_are_rejected_before_any_row(settings):
    """The error lists the alternatives."""
    with pytest.raises(UsageError):
        RowParser(RowSettings(**settings))


def test_a_path_leads_into_a_row():
    """Keys and places in lists; a column of that very name comes first."""
    row = {"response": {"choices": [{"text": "a"}]}, "response.choices": "b"}
    assert get_nested(row, "response.choices.0.text") == "a"
    assert get_nested(row, "response.choices") == "b"
    assert get_nested(row, "response.choices.1.text") is None
    assert get_nested([], "a.b") is None


def test_conflicting_input_column_is_renamed():
    """The input's is kept under a name that is free."""
    assert build_unique_column_name("id", ["id"]) == "id"
    assert build_unique_column_name("content", ["content"]) == "input_content"
    assert build_unique_column_name("content", ["content", "input_content"]) == "input_input_content"


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_recognized(name):
    """A call written by a format has its name, or the name of a format with the same output."""
    call = ("read_file", {"path": "a.py"})
    text = FORMATS[name].encode_calls([call])
    found = columns({"text": text}, tools=json.dumps(TOOLS))["format"]
    told = columns({"text": text}, tools=json.dumps(TOOLS), format=name)["format"]
    assert told == name
    assert (
        found in (name, "unmarked", "")
        or FORMATS[found].encode_calls([("read_file", {"path": "a.py"})])[:12] == text[:12]
    )
