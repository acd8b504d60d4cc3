"""Markers of every format inside the values of every format: the call has the value that was written.

The values are written as a model writes them: unescaped if the format has no escapes.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parser import parse
from tests.effort import EFFORT
from tests.parsing.formats.soup import FILE_FORMATS
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("write_file(path, content)"), definition_of("bash(command)")]
TAGS = [definition_of("tag(path, tags: string[], count?: integer)")]
VALUES = ("{}", "x {} y", "a\n{}\nb", "{}b", "a{}", "a\n{}\n", "a\n{}\nb\n", "\n{}\nb\n")
WORDS = (
    *("<parameter=x>", "</parameter>", "<function=foo>", "</function>", "<arg_key>", "</arg_key>", "<arg_value>"),
    *("</arg_value>", "</content>", "<content>", "</invoke>", '<invoke name="bash">', '<parameter name="content">'),
    *("</bash>", "<bash>", "```", "<think>", "</think>", "[/TOOL_CALLS]", "[ARGS]", '<|"|>', "<tool_call|>"),
)
INLINE = ("tool_elements", "seed_oss", "mimo")
"""Formats whose values stand on the line of their tags: a line break at a value's beginning puts it on lines of its
own there, as Qwen writes, and is not the value's."""

SAMPLE = 3 * EFFORT
"""A sample of other formats' markers, because all would take minutes."""


def own_markers(format: str) -> list[str]:
    entry = FORMATS[format]
    reasoning = [*entry.reasoning, *entry.reasoning.values()]
    parts = (
        entry.stray_closers,
        entry.end_tokens,
        entry.special_tokens,
        entry.stop_sequences,
        entry.channel_markers,
        entry.other_role_markers,
    )
    return [
        *(opener.marker for opener in entry.openers),
        *(marker for part in parts for marker in part),
        *entry.result_markers,
        *reasoning,
    ]


MARKERS = sorted({*WORDS, *(marker for format in FORMATS for marker in own_markers(format))} - {""})


@cache
def encoded(format: str, value: str) -> str:
    return FORMATS[format].encode_calls([("write_file", {"content": value, "path": "n.md"})])


def written(format: str, value: str) -> str:
    """Return a call of ``write_file`` with ``value`` as ``content``."""
    encode = FORMATS[format].encode_calls
    sample, whole = encoded(format, 'p"q\nr'), encoded(format, "@VALUE@")
    if 'p\\"q\\nr' in sample:
        return whole.replace("@VALUE@", json.dumps(value, ensure_ascii=False)[1:-1])
    return whole.replace("@VALUE@", value) if 'p"q\nr' in sample else encode([("write_file", {"content": value})])


@pytest.mark.parametrize("format", FORMATS)
def test_markers_in_values_are_data(format):
    """No value is changed, and no call is added to it or to the next one."""
    chance, own = random.Random(format), {*own_markers(format)}
    markers = {*own, *WORDS, *chance.sample(MARKERS, min(SAMPLE, len(MARKERS)))} - {""}
    second = FORMATS[format].encode_calls([("bash", {"command": "ls"})])
    for number, marker in enumerate(sorted(markers)):
        every = 1 if EFFORT > 1 else 2 if marker in own else 4
        shapes = VALUES[number % every :: every]  # other markers and formats have the others
        for value in (shape.replace("{}", marker) for shape in shapes):
            if format in INLINE and value.startswith("\n"):
                continue
            text = f"{written(format, value)}\n{second}"
            turn = parse(text, TOOLS, format, "stop", generation_prompt="")
            calls = [(call.name, call.arguments) for call in turn.calls]
            expected = [("write_file", {"content": value, "path": "n.md"}), ("bash", {"command": "ls"})]
            assert calls == expected or (turn.invalid and len(calls) < len(expected)), text


@pytest.mark.parametrize("format", FORMATS)
def test_opening_marker_alone_in_a_value_is_data(format):
    """A file about tool calls has lines with a marker that no parameter follows. Such a line begins no call."""
    markers = sorted({opener.marker for opener in FORMATS[format].openers} - {""})
    second = FORMATS[format].encode_calls([("bash", {"command": "ls"})])
    for marker in random.Random(format).sample(markers, min(SAMPLE, len(markers))):
        for value in (f"use\n{marker} tag", f"a\n{marker}\nb", f'a\n{marker} {{"x": 1}}\nb', f"<p>{marker}"):
            turn = parse(f"{written(format, value)}\n{second}", TOOLS, format, "stop", generation_prompt="")
            calls = [(call.name, call.arguments) for call in turn.calls]
            assert calls == [("write_file", {"content": value, "path": "n.md"}), ("bash", {"command": "ls"})]


@pytest.mark.parametrize("format", [*FORMATS, *FILE_FORMATS])
def test_calls_in_a_value_are_not_run(format):
    """Neither the first nor a later one, on lines of their own or not."""
    encode = get_format(format).encode_calls
    if 'p "q" r' not in encode([("write_file", {"content": 'p "q" r'})]):
        return  # escaped
    commands = [("bash", {"command": "ls"}), ("bash", {"command": "pwd"})]
    calls = encode(commands)
    for inner in (calls, "".join(encode([call]) for call in commands), f"See:\n{calls}\nDone.", f"{calls}\n{calls}"):
        for keys in ("path", "content"), ("content", "path"):
            text = encode([("write_file", {key: "n.md" if key == "path" else "@VALUE@" for key in keys})])
            turn = parse(text.replace("@VALUE@", inner), TOOLS, format, "stop", generation_prompt="")
            found = [call.arguments["content"].strip() for call in turn.calls if call.name == "write_file"]
            assert [call.name for call in turn.calls] == ["write_file"] * len(found)
            assert found == [inner.strip()] or turn.invalid


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "unclosed"])
def test_end_of_a_call_in_a_value_does_not_cut_the_value(format, is_closed):
    """The value is whole, or the call is refused, also if the value's own closing tag is missing."""
    head, _, tail = FORMATS[format].encode_calls([("bash", {"command": "@VALUE@"})]).partition("@VALUE@")
    starts = [match.start() for match in re.finditer(r"\n?(?:\]<\]minimax\[>\[|<\|close\|>)?<(?!\|sep)", tail)]
    for end in (tail[start:] for start in starts[1:] if head.rstrip()[-1] == ">"):
        for shape in ("a {} b", "a {}\nb", "a\n{}\nb"):
            value = shape.replace("{}", end.strip())
            text = head + value + (tail if is_closed else "\n" + end.strip())
            for expected_format in (format, None):
                turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
                commands = [call.arguments["command"].strip() for call in turn.calls]
                assert commands == [value] or (turn.invalid and not turn.calls), (text, commands)


REPEATED = {
    "qwen3_coder": "<tool_call>\n<function=tag>\n<parameter=path>\na\n</parameter>\n<parameter=tags>\nx\n</parameter>\n"
    "<parameter=tags>\ny\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>tag\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>tags</arg_key>\n"
    "<arg_value>x</arg_value>\n<arg_key>tags</arg_key>\n<arg_value>y</arg_value>\n</tool_call>",
    "anthropic": '<function_calls>\n<invoke name="tag">\n<parameter name="path">a</parameter>\n'
    '<parameter name="tags">x</parameter>\n<parameter name="tags">y</parameter>\n</invoke>\n</function_calls>',
    "tool_elements": "<tag>\n<path>a</path>\n<tags>x</tags>\n<tags>y</tags>\n</tag>",
    "deepseek_v32": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="tag">\n'
    '<｜DSML｜parameter name="path" string="true">a</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="tags" string="true">x</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="tags" string="true">y</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
}


@pytest.mark.parametrize("format", REPEATED)
@pytest.mark.parametrize("has_expected_format", [True, False], ids=["expected", "detected"])
def test_repeated_list_argument_is_collected(format, has_expected_format):
    """The repair is reported; the arguments fit the schema."""
    (call,) = parse(REPEATED[format], TAGS, format if has_expected_format else None, "stop", generation_prompt="").calls
    assert call.arguments == {"path": "a", "tags": ["x", "y"]}
    assert "repeated-argument" in call.fixes
    Draft202012Validator(TAGS[0]["function"]["parameters"]).validate(call.arguments)


REPEATED_KEYS = REPEATED | {
    "hermes": '<tool_call>{"name": "tag", "arguments": {"path": "a", "tags": "x", "tags": "y"}}</tool_call>',
    "mistral": '[TOOL_CALLS]tag[ARGS]{"path": "a", "tags": ["x"], "tags": ["y"]}',
    "pythonic": '[tag(path="a", tags="x", tags="y")]',
    "gemma4": '<|tool_call>call:tag{path:<|"|>a<|"|>,tags:<|"|>x<|"|>,tags:<|"|>y<|"|>}<tool_call|>',
}


@pytest.mark.parametrize("format", ["hermes", "mistral", "pythonic", "gemma4"])
def test_repeated_key_of_a_list_is_collected(format):
    (call,) = parse(REPEATED_KEYS[format], TAGS, format, "stop", generation_prompt="").calls
    assert call.arguments == {"path": "a", "tags": ["x", "y"]}
    assert "repeated-argument" in call.fixes


@pytest.mark.parametrize("format", [format for format in REPEATED_KEYS if format != "tool_elements"])
@pytest.mark.parametrize("tools", [TAGS, ()], ids=["tools", "no tools"])
def test_repeated_argument_with_other_values_is_refused(format, tools):
    """The call does not show which value is right. In an element of Cline's form the same element is data."""
    text = REPEATED_KEYS[format].replace("tags", "path").replace('["x"]', '"x"').replace('["y"]', '"y"')
    turn = parse(text, tools, format, "stop", generation_prompt="")
    assert not turn.calls
    assert '"x" and "y"' in turn.invalid[0].error
    (call,) = parse(re.sub('[xy](?=[<"\n])', "a", text), tools, format, "stop", generation_prompt="").calls
    assert call.arguments == {"path": "a"}


WRAPPED = {
    "qwen3_coder": "<tool_call>\n<function=tag>\n<parameter={}>\n{}\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>tag\n<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    "anthropic": '<function_calls>\n<invoke name="tag">\n<parameter name="{}">{}</parameter>\n</invoke>\n'
    "</function_calls>",
}


@pytest.mark.parametrize("format", WRAPPED)
@pytest.mark.parametrize("key", ["arguments", "input", "properties", "parameters"])
def test_wrapper_around_arguments_is_removed(format, key):
    """Only if the tool has no parameter of that name and the JSON names its parameters."""
    arguments = {"path": "a", "tags": ["x"], "count": 2}
    (call,) = parse(WRAPPED[format].format(key, json.dumps(arguments)), TAGS, format, "stop").calls
    assert call.arguments == arguments
    (call,) = parse(WRAPPED[format].format(key, '{"colour": "red"}'), TAGS, format, "stop").calls
    assert call.arguments == {key: '{"colour": "red"}'}
    own = [definition_of(f"tag({key})")]
    (call,) = parse(WRAPPED[format].format(key, json.dumps(arguments)), own, format, "stop").calls
    assert call.arguments == {key: json.dumps(arguments)}


@pytest.mark.parametrize("format", FORMATS)
def test_parameter_without_a_type_takes_lists_and_objects(format):
    """Such a parameter accepts any value (anthropics/claude-code#82652, ml-explore/mlx-lm#1907). A file's content is
    text even so."""
    parameters = {"type": "object", "properties": {"value": {"description": "any"}, "content": {}}, "required": []}
    tools = [{"name": "set", "parameters": parameters}]
    for arguments in ({"value": {"a": [1]}, "content": '{"a": 1}'}, {"value": ["x", 1], "content": "[1]"}):
        turn = parse(get_format(format).encode_calls([("set", arguments)]), format=format, tools=tools)
        assert [call.arguments for call in turn.calls] == [arguments]
