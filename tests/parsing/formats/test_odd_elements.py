"""Elements that no format has: empty ones, arguments in attributes, repeated closing tags.

They are parsed if their meaning is certain, and otherwise rejected with the reason; nothing else is called.
"""

from __future__ import annotations

import pytest

from adapter.core.events import JsonObject
from adapter.core.turn import Turn
from adapter.parsing.parser import parse
from tests.parsing.checks import read
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("run(cmd, dir?)")]
DSML, DSML_END, M3 = "<｜DSML｜", "</｜DSML｜", "]<]minimax[>["


def dsml(body: str) -> str:
    return f'{DSML}tool_calls>\n{DSML}invoke name="run">\n{body}\n{DSML_END}invoke>\n{DSML_END}tool_calls>'


def invoke(body: str) -> str:
    return f'<function_calls>\n<invoke name="run">\n{body}\n</invoke>\n</function_calls>'


def qwen(body: str) -> str:
    return f"<tool_call>\n<function=run>\n{body}\n</function>\n</tool_call>"


def glm(body: str) -> str:
    return f"<tool_call>run\n{body}\n</tool_call>"


NAMES = ("name", "tool", "tool_name")
"""Attributes that name the tool."""

WITH_VALUE = [
    dsml(f'{DSML}parameter name="cmd" string="ls" />'),
    dsml(f'{DSML}parameter name="cmd" value="ls" />'),
    dsml(f'{DSML}invoke name="cmd" string="ls" />'),
    f'{DSML}tool_calls>\n{DSML}invoke name="run" cmd="ls" />\n{DSML_END}tool_calls>',
    invoke('<parameter name="cmd" value="ls"/>'),
    invoke('<invoke name="cmd" value="ls"/>'),
    invoke('<invoke name="cmd">ls</invoke>'),
    invoke('<invoke name="run">\n<parameter name="cmd">ls</parameter>'),
    '<function_calls>\n<invoke name="run" cmd="ls"/>\n</function_calls>',
    '<function_calls>\n<invoke name="run" cmd="ls">\n</invoke>\n</function_calls>',
    qwen('<parameter=cmd value="ls"/>'),
    qwen("<parameter name=\"cmd\" value='ls' />"),
    *(f'<{tag} {name}="run" cmd="ls"/>' for tag in ("tool", "tool_call", "function_call", "call") for name in NAMES),
    *(f'<{tag} {name}="run" cmd="ls"></{tag}>' for tag in ("tool", "tool_call", "tool_use") for name in NAMES),
    '<function name="run" cmd="ls" />',
    '<invoke tool="run">\n<param name="cmd">ls</param>\n</invoke>',
]


@pytest.mark.parametrize("text", WITH_VALUE)
def test_argument_in_attribute_is_accepted(text):
    assert calls_in(text) == [("run", {"cmd": "ls"})]


@pytest.mark.parametrize("value", ['<object>\n<param name="dir">1</param>\n</object>', '<param name="cmd" value="1">'])
def test_param_element_in_a_parameter_is_data(value):
    assert calls_in(invoke(f'<parameter name="cmd">{value}</parameter>')) == [("run", {"cmd": value})]


def test_list_of_tools_as_elements_is_text():
    text = '<tool name="run" />\n<tool name="run" description="It runs." />'
    assert turn_of(text).content == text


EMPTY = [
    dsml(
        f'{DSML}parameter name="dir" string="true"/>\n{DSML}parameter name="cmd" string="true">ls{DSML_END}parameter>'
    ),
    invoke('<parameter name="dir"/>\n<parameter name="cmd">ls</parameter>'),
    invoke('<parameter name="cmd">ls</parameter>\n<parameter name="dir" />'),
    qwen("<parameter=dir/>\n<parameter=cmd>\nls\n</parameter>"),
    "<seed:tool_call>\n<function=run>\n<parameter=dir/>\n<parameter=cmd>ls</parameter>\n</function>\n</seed:tool_call>",
    "<run>\n<dir/>\n<cmd>ls</cmd>\n</run>",
    "<run>\n<cmd>ls</cmd>\n<dir />\n</run>",
    "<run>\n<cmd>ls</cmd>\n<dir/>\n</run>",
    glm("<arg_key>dir</arg_key>\n<arg_value/>\n<arg_key>cmd</arg_key>\n<arg_value>ls</arg_value>"),
    f'{M3}<tool_call>\n{M3}<invoke name="run">{M3}<dir/>{M3}<cmd>ls{M3}</cmd>{M3}</invoke>\n{M3}</tool_call>',
]


@pytest.mark.parametrize("text", EMPTY)
def test_empty_element_is_an_empty_argument(text):
    (call,) = calls_in(text)
    assert {"dir": "", **call[1]} == {"dir": "", "cmd": "ls"}


def test_empty_function_element_has_no_arguments():
    assert calls_in("<tool_call>\n<function=run/>\n</tool_call>") == [("run", {})]


TWICE = {
    "</｜DSML｜parameter>": dsml(
        f'{DSML}parameter name="cmd" string="true">ls{DSML_END}parameter>\n{DSML_END}parameter>\n'
        f'{DSML}parameter name="dir" string="true">/{DSML_END}parameter>'
    ),
    "</parameter>": invoke('<parameter name="cmd">ls</parameter>\n</parameter>\n<parameter name="dir">/</parameter>'),
    "</cmd>": "<run>\n<cmd>ls</cmd>\n</cmd>\n<dir>/</dir>\n</run>",
    "</arg_value>": glm("<arg_key>cmd</arg_key>\n<arg_value>ls</arg_value>\n</arg_value>"),
    "</parameter>  ": qwen("<parameter=cmd>\nls</parameter>\n</parameter>"),
    "</parameter> ": qwen("<parameter=cmd>\nls\n</parameter>\n</parameter>\n<parameter=dir>\n/\n</parameter>"),
}


@pytest.mark.parametrize("close", TWICE)
def test_value_closed_twice_is_an_error(close):
    """The value may end in the tag, so its end is ambiguous; the whole call is rejected with the reason."""
    turn = turn_of(TWICE[close])
    assert not turn.calls
    assert not turn.content
    (invalid,) = turn.invalid
    assert f"the value of 'cmd' in the call of 'run' contains {close.strip()}" in invalid.error


LOST = {
    "the second opening tag": invoke('<parameter name="cmd">ls</parameter>\n/</parameter>'),
    "a bracket of the second opening tag": invoke(
        '<parameter name="cmd">ls</parameter>\nparameter name="dir">/</parameter>'
    ),
    "an opening tag, which is doubled": invoke('<parameter name="cmd"><parameter name="cmd">ls</parameter>'),
    "a bracket of a value's tag": glm("<arg_key>cmd</arg_key>\n<arg_valuels</arg_value>"),
    "a key's opening tag": glm("<arg_key>cmd</arg_key><arg_value>ls</arg_value>dir</arg_key><arg_value>/</arg_value>"),
}


@pytest.mark.parametrize("lost", LOST)
def test_value_does_not_swallow_what_follows_a_lost_tag(lost):
    """The value may contain the tags, so the call is rejected."""
    turn = turn_of(LOST[lost])
    assert not turn.calls
    assert ["which may begin or end another" in invalid.error for invalid in turn.invalid] == [True]


def test_call_after_a_lost_end_is_parsed():
    """The next call ends the value, which is not passed on."""
    next_call = "<tool_call>run<arg_key>cmd</arg_key><arg_value>pwd</arg_value></tool_call>"
    turn = turn_of(f"<tool_call>run<arg_key>cmd</arg_key><arg_value>ls\n{next_call}")
    assert [(call.arguments, call.fixes) for call in turn.calls] == [({"cmd": "pwd"}, ())]
    assert ["which may begin or end another" in invalid.error for invalid in turn.invalid] == [True]


def test_closing_tag_without_its_first_bracket_ends_the_value():
    (call,) = calls_in(invoke('<parameter name="cmd">ls/parameter>\n<parameter name="dir">/</parameter>'))
    assert call == ("run", {"cmd": "ls", "dir": "/"})


CLOSES = ["</invoke", "/invoke>", "</tool_call>", "<|tool_call_end|>", "[/TOOL_CALLS]", "</s>", "<tool_call|>"]


@pytest.mark.parametrize("close", CLOSES)
def test_wrong_closing_tag_ends_only_its_own_call(close):
    elements = invoke(
        '<parameter name="cmd">ls</parameter>\n</invoke>\n<invoke name="run"><parameter name="cmd">pwd</parameter>'
    )
    pairs = (
        "<tool_call>run<arg_key>cmd</arg_key><arg_value>ls</arg_value></tool_call>"
        "<tool_call>run<arg_key>cmd</arg_key><arg_value>pwd</arg_value></tool_call>"
    )
    value = f'{DSML}parameter name="cmd" string="true">ls{DSML_END}parameter>'
    tagged = dsml(f'{value}\n{DSML_END}invoke>\n{DSML}invoke name="run">\n{value.replace("ls", "pwd")}')
    for text, own in ((elements, "</invoke>"), (pairs, "</tool_call>"), (tagged, f"{DSML_END}invoke>")):
        assert calls_in(text.replace(own, close, 1)) == [("run", {"cmd": "ls"}), ("run", {"cmd": "pwd"})]


DATA = {
    "<parameter=x>\n1\n</parameter>": qwen("<parameter=cmd>\n<parameter=x>\n1\n</parameter>\n</parameter>"),
    '<parameter name="x">1</parameter>\n': invoke(
        '<parameter name="cmd"><parameter name="x">1</parameter>\n</parameter>'
    ),
}


@pytest.mark.parametrize("value", DATA)
def test_closing_tag_in_value_is_data(value):
    assert calls_in(DATA[value]) == [("run", {"cmd": value})]


def test_two_attributes_instead_of_value_are_an_error():
    turn = turn_of(invoke('<parameter name="cmd" text="ls" value="rm"/>'))
    assert not turn.calls
    assert "'cmd' of 'run' has the attributes text, value" in turn.invalid[0].error


def test_call_inside_cut_value_is_rejected():
    """At every cut: the end of a call may be part of its value."""
    text = '<invoke name="run">\n<parameter name="cmd">ls\n</invoke>\n</minimax:tool_call></parameter>'
    for end in range(len(text)):
        assert not parse(text[:end], TOOLS, finish_reason="length").calls, text[:end]


@pytest.mark.parametrize("body", [">\n<cmd>ls</cmd>", "ls</cmd>", "ls\n</cmd >\n"])
def test_text_of_an_element_with_a_tag_of_its_parameter_is_no_value(body):
    turn = Turn.from_events(read(f"<run_it>{body}</run_it>", tools=[definition_of("run_it(cmd)")]))
    assert all("cmd" not in call.arguments["cmd"] for call in turn.calls)


def calls_in(text: str) -> list[tuple[str, JsonObject]]:
    turn = turn_of(text)
    assert not turn.invalid, turn.invalid
    return [(call.name, call.arguments) for call in turn.calls]


def turn_of(text: str) -> Turn:
    """Parse the text in every split."""
    return Turn.from_events(read(text, tools=TOOLS, text_may_follow=False))


def test_repeated_tags_do_not_nest():
    turn = parse(
        f"<tool_call>run\n{'<arg_key>' * 5_000}cmd</arg_key><arg_value>ls</arg_value></tool_call>", TOOLS, "glm45"
    )
    assert [(call.name, call.arguments) for call in turn.calls] == [("run", {"cmd": "ls"})]


@pytest.mark.parametrize("spaces", range(375, 395))
def test_harmony_header_at_its_limit_is_a_header(spaces):
    """The limit may lie within the marker that ends the header."""
    turn = parse(f'<|channel|>commentary{" " * spaces}to=run <|message|>{{"cmd": "ls"}}<|call|>', TOOLS, "harmony")
    assert [call.arguments for call in turn.calls] == (
        [{"cmd": "ls"}] if spaces <= 400 - len("commentaryto=run ") else []
    )


@pytest.mark.parametrize(
    "text",
    [
        """<function_call name="search" arguments='{"query": "roses"}'></function_call>""",
        """<tool_call name="search" arguments='{"query": "roses"}' />""",
        """<invoke name="search" input='{"query": "roses"}'></invoke>""",
    ],
)
def test_arguments_in_an_attribute_are_read(text):
    tools = [definition_of("search(query)")]
    (call,) = parse(text, tools, None, "stop").calls
    assert call.arguments == {"query": "roses"}
    assert "value-in-attribute" in call.fixes
    turn = parse(text.replace('roses"', "roses"), tools, None, "stop")
    assert not turn.calls
    assert turn.invalid or turn.rejected
