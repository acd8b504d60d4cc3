"""A marker mentioned in a sentence is text, in every format; one that opens a broken call is an error."""

from __future__ import annotations

import pytest

from adapter.core.events import TextDelta, ToolCallDelta
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parser import Parser, parse
from tests.parsing.checks import read
from tests.parsing.formats.soup import FILE_FORMATS
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("read_file(path, limit?: integer)")]
SENTENCES = (
    "The marker {} opens a call, as its card says.",
    "Put the call in {}.",
    "It ends with the call in {}. Nothing else.",
    "A model writes {}NAME(ARGS) there, or {}{{...}} for short.",
    "The marker is {}",
    "Compare {} and {} with each other; both open a call.",
    "First line.\nThe second names {} in passing.\n\nThird.",
    'It means {}: a call. {{"a": 1}} is JSON.',
)
TURN_TOKENS = ("<|message_model|>",)
"""Markers of a turn's own header, which is never text."""


ALL = (*FORMATS, *FILE_FORMATS)


def markers(format: str) -> list[str]:
    return [opener.marker for opener in get_format(format).openers if opener.marker not in TURN_TOKENS]


def expected_formats(format: str) -> tuple[str | None, ...]:
    """Return the formats with which a text in ``format`` is parsed. A format from a file is not detected."""
    return (format, None) if format in FORMATS else (format,)


@pytest.mark.parametrize("format", ALL)
def test_marker_in_sentence_is_text(format):
    """No call, no error, and no lost character."""
    for marker in markers(format):
        for sentence in SENTENCES:
            text = sentence.replace("{}", marker).replace("{{", "{").replace("}}", "}")
            for expected_format in expected_formats(format):
                turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
                assert (turn.calls, turn.invalid, turn.content) == ((), (), text)


@pytest.mark.parametrize("expected_format", ["hermes", "llama3_json", "mistral", "harmony", "deepseek_v31"])
def test_foreign_marker_in_sentence_is_text(expected_format):
    for other in FORMATS:
        for marker in markers(other):
            text = f"In {other} the marker {marker} opens a call, as its card says."
            turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
            assert (turn.calls, turn.invalid, turn.content) == ((), (), text)


QUOTATIONS = (
    'The call "{}" is an example.',
    "He wrote “{}” in the log.",
    "| step | {} |",
)


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_complete_call_in_quotation_is_text(format, quotation):
    """In quotation marks or in a table."""
    call = get_format(format).encode_calls([("read_file", {"path": "a.py"})]).replace("\n", " ").strip()
    for expected_format in expected_formats(format):
        turn = parse(quotation.replace("{}", call), TOOLS, expected_format, "stop", generation_prompt="")
        assert turn.invalid == ()
        assert turn.calls == ()


@pytest.mark.parametrize("format", ALL)
def test_quoted_call_of_several_lines_keeps_its_closing_tags(format):
    """They begin a line, as closing tags that a model wrote once too often do."""
    text = f'Write "{get_format(format).encode_calls([("read_file", {"path": "a.py"})]).strip()}" to read it.'
    for expected_format in expected_formats(format):
        content = parse(text, TOOLS, expected_format, "stop", generation_prompt="").content
        assert content.count("</") == text.count("</")


OWN_MESSAGE = ("harmony", "muse_glimmer", "functionary_v2", "hyperclovax")
"""Formats whose calls begin with the header of a further message, which no sentence contains."""


@pytest.mark.parametrize("format", sorted({*ALL} - {*OWN_MESSAGE}))
@pytest.mark.parametrize("sentence", ["I could write {} there, for example.", "He asks for {}. Then more."])
def test_call_of_unknown_tool_in_sentence_is_text(format, sentence):
    """With a reason. At the end of a line it is an error, which tells the model about the name."""
    call = get_format(format).encode_calls([("get_frogs", {"n": 1})]).strip()
    for text in (sentence.replace("{}", call), sentence.replace("{}", call.replace("\n", " "))):
        for expected_format in expected_formats(format):
            turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
            assert (turn.calls, turn.invalid, turn.content) == ((), (), text)
            assert turn.rejected or not any(marker in text for marker in markers(format))


@pytest.mark.parametrize("format", sorted({*ALL} - {*OWN_MESSAGE}))
@pytest.mark.parametrize("sentence", ["The tool is called in {} when a user asks.", "He asks for {}. Then more."])
def test_call_without_arguments_in_sentence_is_text(format, sentence):
    """With a reason, also if the session has the tool: the call is little more than its name."""
    call = get_format(format).encode_calls([("list_rooms", {})]).strip().replace("\n", " ")
    text = sentence.replace("{}", call)
    for expected_format in expected_formats(format):
        turn = parse(text, [definition_of("list_rooms()")], expected_format, "stop", generation_prompt="")
        assert (turn.calls, turn.invalid, turn.content) == ((), (), text)
        assert turn.rejected or not any(marker in text for marker in markers(format))


@pytest.mark.parametrize("format", sorted({*FORMATS} - {*OWN_MESSAGE}))
@pytest.mark.parametrize("sentence", ["I must not send {}, so I stop.", "I could write {} there, but I ask first."])
def test_call_within_sentence_is_text(format, sentence):
    """With a reason. Its arguments are not streamed, either."""
    call = get_format(format).encode_calls([("read_file", {"path": "a.py"})]).strip().replace("\n", " ")
    text = sentence.replace("{}", call)
    for expected_format in expected_formats(format):
        turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
        assert (turn.calls, turn.invalid, turn.content) == ((), (), text)
        assert turn.rejected or not any(marker in text for marker in markers(format))
        parser = Parser(expected_format, TOOLS, generation_prompt="", stream_arguments=True)
        events = [event for character in text for event in parser.feed(character)]
        assert not any(isinstance(event, ToolCallDelta) for event in events)


@pytest.mark.parametrize("text", ["I look. {} so far", "I look {} They are here.", "I look {}", "I look {}\nand read."])
def test_call_without_arguments_after_text_is_a_call(text):
    """At the end of a line, or between two sentences."""
    call = '<tool_call>{"name": "list_rooms", "arguments": {}}</tool_call>'
    tools = [definition_of("list_rooms()")]
    events = read(text.replace("{}", call), format="hermes", tools=tools, text_may_follow=False)
    assert "ToolCall" in [type(event).__name__ for event in events]


@pytest.mark.parametrize(
    "text",
    [
        'I search for "foo" {}',
        'I search for "foo"{}',
        "I look: {} Then I write.",
        "I look. {} so far",
        "I look {}",
        "I look {}\nand read.",
    ],
)
def test_call_after_quotation_or_sentence_is_a_call(text):
    call = '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>'
    events = read(text.replace("{}", call), format="hermes", tools=TOOLS, text_may_follow=False)
    assert "ToolCall" in [type(event).__name__ for event in events]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", 'I will read it. <tool_call>{"name": "read_file", "arguments": {"path" - }}</tool_call>'),
        ("mistral", 'I will read it. [TOOL_CALLS]read_file[ARGS]{"path": }'),
        ("glm45", "I will read it. <tool_call>read_file<arg_key>path</arg_key><arg_value>a.p"),
        ("kimi_k2", "I will read it. <|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{path"),
        ("mistral", "I will read it.[TOOL_CALLS]"),
    ],
)
def test_broken_call_after_sentence_is_an_error(format, text):
    """If it names a tool, begins arguments or is glued to the sentence."""
    for expected_format in expected_formats(format):
        events = read(text, format=expected_format, tools=TOOLS, text_may_follow=False)
        assert [type(event).__name__ for event in events][-1] == "InvalidToolCall"


@pytest.mark.parametrize(
    "text",
    [
        "The element is <arguments>x</arguments>",
        "<config>\n<parameter>a</parameter>\n<function>\nf\n</function>\n</config>",
        '<parameter name="x">a</parameter>',
        "<invoke>a</invoke>",
    ],
)
def test_closing_tag_of_an_element_in_the_answer_is_content(text):
    """Only one without an opening tag is left over from a call."""
    assert "".join(event.text for event in read(text) if isinstance(event, TextDelta)) == text
