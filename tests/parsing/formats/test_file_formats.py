"""Calls in the formats that only a file describes: keys and values between any texts."""

from __future__ import annotations

import pytest

from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from tests.parsing.formats.soup import FILE_FORMATS, TOOLS
from tests.processor_time import processor_limit

CLOSE = "<</call>>"


def parse_lines(text: str, finish_reason: str | None = "stop"):
    turn = parse(text, TOOLS, "bracketed_lines", finish_reason, generation_prompt="")
    return [(call.name, call.arguments, call.fixes) for call in turn.calls], [call.error for call in turn.invalid]


@pytest.mark.parametrize("finish_reason", ["length", None])
def test_call_without_its_end_is_cut(finish_reason):
    calls, errors = parse_lines("<<call bash>>\ncommand: [[rm -r build]]\n", finish_reason)
    assert (calls, len(errors), "cut off" in errors[0]) == ([], 1, True)


def test_call_without_a_required_argument_and_its_end_is_cut():
    calls, errors = parse_lines("<<call read_file>>\n")
    assert (calls, len(errors), "cut off" in errors[0]) == ([], 1, True)


def test_call_in_a_value_is_not_run():
    """Neither if the value around it is intact, nor if the call's end is damaged."""
    inner = f"see:\n<<call get_time>>\n{CLOSE}\nand more"
    text = f"<<call bash>>\ncommand: [[{inner}]]\n{CLOSE}"
    assert parse_lines(text) == ([("bash", {"command": inner}, ())], [])
    calls, errors = parse_lines(text.replace("]]", "]"))
    assert (calls, len(errors)) == ([], 1)


def test_arguments_may_be_one_json_object():
    calls, _ = parse_lines('<<call bash>>\n{"command": "a]]\\nb: [[c"}\n<</call>>')
    assert calls == [("bash", {"command": "a]]\nb: [[c"}, ())]


@pytest.mark.parametrize("value", ["{name}", "{key}", "a]]", "[a", "<<call bash>>", CLOSE * 30])
@pytest.mark.parametrize("format", FILE_FORMATS)
def test_value_with_the_formats_own_texts_is_parsed_back(format, value):
    turn = parse(get_format(format).encode_calls([("bash", {"command": value})]), TOOLS, format, "stop")
    assert [(call.arguments, call.fixes) for call in turn.calls] == [({"command": value}, ())]


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_texts_match_in_any_letter_case(format):
    text = get_format(format).encode_calls([("read_file", {"path": "a.py", "limit": 3})]).upper()
    for word in ("READ_FILE", "PATH", "LIMIT", "A.PY"):
        text = text.replace(word, word.lower())
    turn = parse(text, TOOLS, format, "stop")
    assert [call.arguments for call in turn.calls] == [{"path": "a.py", "limit": 3}]


def test_closing_text_may_be_cut():
    assert parse_lines(f"<<call get_time>>\n{CLOSE[:-2]}", "stop") == ([("get_time", {}, ("missing-close-tag",))], [])


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("bracketed_lines", "<<call bash>>\n" * 100_000 + CLOSE),
        ("plain_lines", "[[use bash]]\ncommand: " + " " * 10_000 + "#\n[[end]]"),
    ],
)
def test_time_for_a_body_is_linear(format, text):
    with processor_limit(5):
        parse(text, TOOLS, format)


def test_error_names_only_texts_that_the_format_has():
    _, errors = parse_lines(f"<<call bash>>\ncommand = ls\n{CLOSE}")
    assert errors == ["the call of bash cannot be read: expected a key and ': [[', got 'command = ls'"]
