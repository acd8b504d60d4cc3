"""A marker that a sentence names is an answer's text, in every format; one that opens a broken call is answered."""

from __future__ import annotations

import pytest

from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from tests.parsing.checks import read
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
"""Markers of a turn's own header, which is no text wherever it stands."""


def markers(format: str) -> list[str]:
    return [opener.marker for opener in FORMATS[format].openers if opener.marker not in TURN_TOKENS]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("told", [True, False], ids=["told", "detected"])
def test_a_marker_in_a_sentence_is_text(format, told):
    """Nothing is called, nothing answered as an error, and not a character is lost."""
    for marker in markers(format):
        for sentence in SENTENCES:
            text = sentence.replace("{}", marker).replace("{{", "{").replace("}}", "}")
            turn = parse(text, TOOLS, format if told else None, "stop", generation_prompt="")
            assert (turn.calls, turn.invalid, turn.content) == ((), (), text)


@pytest.mark.parametrize("told", ["hermes", "llama3_json", "mistral", "harmony", "deepseek_v31"])
def test_a_marker_of_another_format_in_a_sentence_is_text(told):
    for other in FORMATS:
        for marker in markers(other):
            text = f"In {other} the marker {marker} opens a call, as its card says."
            turn = parse(text, TOOLS, told, "stop", generation_prompt="")
            assert (turn.calls, turn.invalid, turn.content) == ((), (), text)


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
def test_a_broken_call_after_a_sentence_is_answered(format, text):
    """What names a tool, begins arguments or is glued to the sentence was meant."""
    for told in (format, None):
        events = read(text, format=told, tools=TOOLS, text_may_follow=False)
        assert [type(event).__name__ for event in events][-1] == "InvalidToolCall"
