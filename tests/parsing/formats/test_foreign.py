"""A model told to write one format writes another: its calls are read all the same, and nothing else is."""

from __future__ import annotations

import pytest

from adapter.core.events import ToolCallDelta
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import Parser, parse
from tests.parsing.checks import read
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("read_file(path, limit?: integer)")]
ARGUMENTS = {"path": "src/a.py", "limit": 3}


def written(format: str) -> str:
    return FORMATS[format].encode_calls([("read_file", ARGUMENTS)])


@pytest.mark.parametrize("told", FORMATS)
def test_calls_of_every_other_format_are_read(told):
    """The call comes out whole, and says that it is foreign where the markers are not the told format's own."""
    for other in FORMATS:
        turn = parse(written(other), TOOLS, told, "stop", generation_prompt="")
        assert [(call.name, call.arguments) for call in turn.calls] == [("read_file", ARGUMENTS)], other


@pytest.mark.parametrize("other", FORMATS)
def test_a_foreign_call_does_not_depend_on_splits(other):
    read(written(other), format="mistral" if other != "mistral" else "hermes", tools=TOOLS, text_may_follow=False)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("mistral", written("qwen3_coder")),
        ("llama3_json", written("hermes")),
        ("hermes", written("kimi_k2")),
        ("granite", written("glm45")),
    ],
)
def test_strict_reads_the_told_format_alone(told, text):
    assert not parse(text, TOOLS, told, "stop", generation_prompt="", policy="strict").calls


def test_of_a_foreign_call_that_may_be_given_back_no_arguments_are_handed_on():
    """Granite's reader makes nothing of this, nor does the other one in the end, so it is text."""
    parser = Parser("granite", TOOLS, stream_arguments=True)
    events = [event for char in "<tool_call><function=read_file>{" for event in parser.feed(char)] + parser.close(
        "stop"
    )
    assert not any(isinstance(event, ToolCallDelta) for event in events)
