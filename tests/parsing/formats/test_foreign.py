"""Calls in another format than the expected one are parsed; nothing else of that format is."""

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


@pytest.mark.parametrize("expected_format", FORMATS)
def test_calls_of_other_formats_are_parsed(expected_format):
    """The call is complete, and marked as foreign unless the markers are the expected format's own."""
    for other in FORMATS:
        turn = parse(written(other), TOOLS, expected_format, "stop", generation_prompt="")
        assert [(call.name, call.arguments) for call in turn.calls] == [("read_file", ARGUMENTS)], other


@pytest.mark.parametrize("other", FORMATS)
def test_foreign_call_is_independent_of_splits(other):
    read(written(other), format="mistral" if other != "mistral" else "hermes", tools=TOOLS, text_may_follow=False)


@pytest.mark.parametrize(
    ("expected_format", "text"),
    [
        ("mistral", written("qwen3_coder")),
        ("llama3_json", written("hermes")),
        ("hermes", written("kimi_k2")),
        ("granite", written("glm45")),
    ],
)
def test_strict_policy_parses_only_expected_format(expected_format, text):
    assert not parse(text, TOOLS, expected_format, "stop", generation_prompt="", policy="strict").calls


def test_uncertain_foreign_call_streams_no_arguments():
    """Neither Granite's reader nor the fallback finds a call, so it is text."""
    parser = Parser("granite", TOOLS, stream_arguments=True)
    events = [event for char in "<tool_call><function=read_file>{" for event in parser.feed(char)] + parser.close(
        "stop"
    )
    assert not any(isinstance(event, ToolCallDelta) for event in events)
