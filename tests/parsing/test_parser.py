"""The public API: `Parser` and `parse`."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import pytest

import adapter
from adapter.core.errors import UsageError
from adapter.core.events import ContentReclassified, RejectedCall, TextDelta, ToolCall, ToolCallProgress
from adapter.core.repair_codes import REPAIRS
from adapter.core.turn import merge_deltas
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import Parser, parse
from adapter.parsing.segmenter import MAX_PIECE
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.parsing.formats.soup import TOOLS

CALL = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'


def test_parse_returns_turn_with_content_reasoning_and_calls():
    turn = parse(f"<think>\nHm.\n</think>\n\nNow:\n{CALL}", TOOLS, "hermes")
    assert (turn.reasoning, turn.content) == ("Hm.", "Now:")
    assert [(call.name, call.arguments) for call in turn.calls] == [("get_time", {})]


def test_feed_returns_call_when_it_closes():
    parser = Parser("hermes", TOOLS)
    events = [event for char in CALL for event in parser.feed(char)]
    assert [type(event) for event in merge_deltas(events)] == [ToolCall]
    assert any(isinstance(event, ToolCallProgress) for event in events)
    assert parser.close("stop") == []


def test_feed_returns_plain_text_immediately():
    """Text that cannot become a marker is not buffered."""
    assert Parser("hermes").feed("Hello") == [TextDelta("Hello", "Hello")]


def test_parser_accepts_every_form_of_tools():
    """Definitions, tools and a ToolSet give the same result."""
    for tools in (TOOLS, ToolSet(TOOLS), [Tool.from_definition(tool) for tool in TOOLS]):
        assert parse(CALL.replace("get_time", "GetTime"), tools).calls[0].name == "get_time"
    assert parse(CALL.replace("get_time", "GetTime")).calls[0].name == "GetTime"


@pytest.mark.parametrize(
    ("prompt", "reasoning"),
    [
        ("<|im_start|>assistant\n<think>\n", "Hm."),
        ("<think>\nold\n</think>\n<|im_start|>assistant\n", ""),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_generation_prompt_may_open_reasoning(prompt, reasoning):
    """Text after an opener in the prompt is reasoning, although the output has no marker at all."""
    assert parse("Hm.", None, "hermes", "length", generation_prompt=prompt).reasoning == reasoning


def test_unopened_reasoning_is_reclassified_when_it_closes():
    """Without the prompt the text is content until the closing marker; then it was reasoning."""
    turn = parse("Hm.\n</think>\n\nYes.", None, "hermes")
    assert (turn.reasoning, turn.content) == ("Hm.", "Yes.")
    assert any(isinstance(event, ContentReclassified) for event in turn.events)


@pytest.mark.parametrize("format", [name for name, entry in FORMATS.items() if entry.starts_in_reasoning])
def test_assumed_reasoning_is_content_if_never_closed(format):
    """Without a known prompt, a format's default does not outlast an answer without reasoning."""
    assert parse("Hello.", None, format).content == "Hello."
    assert parse("Hello.", None, format, "length").reasoning == "Hello."
    closing = next(iter(FORMATS[format].reasoning.values()))
    turn = parse(f"Hm.\n{closing}\n\nHello.", None, format)
    assert (turn.reasoning, turn.content) == ("Hm.", "Hello.")


def test_call_ids_are_unique_and_repeatable():
    """The same turn gives the same ids; another turn, or another position in it, gives others."""
    twice = CALL + "\n" + CALL
    ids = [call.id for call in parse(twice, TOOLS, "hermes", turn="1").calls]
    assert ids == [call.id for call in parse(twice, TOOLS, "hermes", turn="1").calls]
    assert len({*ids, *(call.id for call in parse(twice, TOOLS, "hermes", turn="2").calls)}) == 4
    assert all(re.fullmatch(r"call_[0-9A-Za-z]{24}", id) for id in ids)


def test_call_ids_differ_between_reasoning_and_answer():
    """A call that ends unclosed reasoning does not share an id with an earlier call."""
    turn = parse(f"{CALL}\n<think>\nHm.\n{CALL}", TOOLS, "hermes")
    assert len({call.id for call in turn.calls}) == len(turn.calls) == 2


def test_call_drafted_in_reasoning_reports_no_progress():
    """Neither as the previous call's progress nor as its own."""
    parser = Parser("hermes", TOOLS)
    for char in CALL:
        parser.feed(char)
    events = [event for char in f"<think>\nMaybe {CALL}?\n</think>" for event in parser.feed(char)]
    assert not any(isinstance(event, ToolCallProgress) for event in events)
    assert any(isinstance(event, RejectedCall) for event in events)


def test_format_of_wrong_type_raises_usage_error():
    with pytest.raises(UsageError, match="expected the name of a format, got 5"):
        Parser(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "near"), [("hermess", "hermes"), ("bogus", ""), ("", ""), ("qwen3_codr", "qwen3_coder"), ("gpt", "gpt")]
)
def test_unknown_format_error_names_nearest_formats(name, near):
    """It names a few, and the page that lists all."""
    with pytest.raises(
        UsageError, match=re.escape(f"unknown format {name!r}; the nearest of {len(FORMATS)}")
    ) as raised:
        Parser(name)
    named = re.search(r"the nearest of \d+ are ([\w, .-]+?)( \(|\. docs)", str(raised.value))
    assert named is not None
    assert len(named[1].split(", ")) == 5
    assert near in named[1]
    assert len(str(raised.value)) < 240


def test_every_repair_code_is_used():
    modules = Path(adapter.__file__).parent.rglob("*.py")
    code = "".join(path.read_text(encoding="utf-8") for path in modules if path.name != "fixes.py")
    assert [name for name in REPAIRS if f'"{name}"' not in code] == []


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "longcat"])
def test_missing_closing_marker_is_accepted_unless_cut(name):
    """A complete body without its closing marker is a call, unless the server stopped for length."""
    text = FORMATS[name].encode_calls([("get_weather", {"city": "Oslo"})]).rstrip()
    text = text[: text.rindex("</")].rstrip()
    assert len(parse(text, TOOLS, name, "stop", generation_prompt="").calls) == 1
    assert parse(text, TOOLS, name, "length", generation_prompt="").calls == ()


def test_bare_json_call_needs_no_closing_marker():
    """Llama's calls end with their last bracket, for any finish reason."""
    text = FORMATS["llama3_json"].encode_calls([("get_time", {})])
    assert len(parse(text, TOOLS, "llama3_json", "length").calls) == 1


@pytest.mark.parametrize("name", [*FORMATS, None])
def test_call_longer_than_max_piece_is_one_call(name, monkeypatch):
    """Without an expected format, at the real size."""
    size = MAX_PIECE if name is None else 4_000
    monkeypatch.setattr("adapter.parsing.segmenter.MAX_PIECE", size)
    content = 'print("</tool_call>")\n\t# {"a": [1]}\n' * (size // 11)
    text = FORMATS[name or "hermes"].encode_calls([("write_file", {"path": "a.py", "content": content})])
    assert len(text) > 2 * size
    whole = parse(text, TOOLS, name)
    assert [(call.arguments, call.fixes) for call in whole.calls] == [({"path": "a.py", "content": content}, ())]
    parser = Parser(name, TOOLS)
    step = size * 3 // 8
    events = [event for at in range(0, len(text), step) for event in parser.feed(text[at : at + step])]
    assert merge_deltas([*events, *parser.close("stop")]) == whole.events


def test_lone_surrogate_is_replaced_only_in_its_call():
    """Calls that share one JSON value also share its text."""
    turn = parse(
        '<tool_calls>[{"name": "a", "arguments": {"x": "\ud800"}}, {"name": "b", "arguments": {}}]</tool_calls>'
    )
    assert [(call.arguments, call.fixes) for call in turn.calls] == [({"x": "\ufffd"}, ("lone-surrogate",)), ({}, ())]


def test_many_tool_sets_and_fences_do_not_grow_memory():
    """A server sees any number of tool sets: a compiled pattern of all markers for each would be 2 MB."""
    parse("text", TOOLS)
    tracemalloc.start()
    try:
        for number in range(20):
            parse(f"Look:\n```{'`' * number}text\n<tool_call>\n", [{"name": f"tool_{number}"}])
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 20 * 100_000, grown


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (None, "message.content or ''"),
        (b"<tool_call>", "decode it first"),
        ({"content": "Hi"}, "choices[0].message.content"),
    ],
)
def test_input_of_wrong_type_raises_usage_error(value, advice):
    """The error names the type and the right field, for complete and streamed text."""
    for read in (parse, Parser().feed):
        with pytest.raises(UsageError, match=re.escape(advice)) as raised:
            read(value)
        assert f"got {value!r}" in str(raised.value)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<function_calls>", "</function_calls>"),
        ("<minimax:tool_call>", "</minimax:tool_call>"),
        ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
        ("<seed:tool_call>", "</seed:tool_call>"),
        ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ],
)
@pytest.mark.parametrize("format", [None, "hermes", "anthropic", "qwen3_coder"])
@pytest.mark.parametrize("call", [CALL, "<tool_call>\n<function=get_time>\n</function>\n</tool_call>"])
def test_call_in_the_section_of_another_family_is_read(opening, closing, format, call):
    """The section is markup, whole and in pieces."""
    text = f"I look.\n{opening}\n{call}\n{closing}\nDone."
    parser = Parser(format, TOOLS)
    pieces = [*(event for char in text for event in parser.feed(char)), *parser.close("stop")]
    whole = parse(text, TOOLS, format, finish_reason="stop")
    assert [each.name for each in whole.calls] == ["get_time"]
    assert whole.content.split() == ["I", "look.", "Done."]
    assert [each.name for each in pieces if isinstance(each, ToolCall)] == ["get_time"]
    assert "".join(each.text for each in pieces if isinstance(each, TextDelta)).split() == ["I", "look.", "Done."]
