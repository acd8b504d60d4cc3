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


@pytest.mark.parametrize(("name", "expands"), [("multi_tool_use.parallel", True), ("save_workflow", False)])
def test_calls_in_a_call_of_a_group_are_parsed(name, expands):
    """Calls in the arguments of any other unknown tool are data, unless the tool's name is a word above other calls."""
    uses = [{"recipient_name": "functions.read_file", "parameters": {"path": path}} for path in ("a.py", "b.py")]
    parsed = set[str]()
    for format, entry in FORMATS.items():
        turn = parse(entry.encode_calls([(name, {"tool_uses": uses})]), TOOLS, format, "stop", generation_prompt="")
        calls = [call.arguments["path"] for call in turn.calls if call.name == "read_file"]
        assert calls == (["a.py", "b.py"] if calls else [])
        parsed |= {format} if calls else set()
    text = {"pythonic", "tool_elements", "react", "qwen_agent", "cwm"}  # calls of unknown tools are text
    assert parsed == (FORMATS.keys() - text if expands else {"tool_elements", "glm4_0414"})


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
