"""The public face: `Parser` and `parse`."""

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
from adapter.tools.tool import Tool, ToolSet
from tests.parsing.formats.soup import TOOLS

CALL = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'


def test_a_whole_answer_is_a_turn():
    """Content, reasoning and calls of one answer stand apart."""
    turn = parse(f"<think>\nHm.\n</think>\n\nNow:\n{CALL}", TOOLS, "hermes")
    assert (turn.reasoning, turn.content) == ("Hm.", "Now:")
    assert [(call.name, call.arguments) for call in turn.calls] == [("get_time", {})]


def test_a_call_comes_the_moment_it_is_closed():
    """A call is not kept until the end of the stream."""
    parser = Parser("hermes", TOOLS)
    events = [event for char in CALL for event in parser.feed(char)]
    assert [type(event) for event in merge_deltas(events)] == [ToolCall]
    assert any(isinstance(event, ToolCallProgress) for event in events)
    assert parser.close("stop") == []


def test_text_is_shown_at_once():
    """Text that cannot become a marker does not wait."""
    assert Parser("hermes").feed("Hello") == [TextDelta("Hello", "Hello")]


def test_tools_may_be_given_in_every_form():
    """Definitions, tools and a ToolSet are the same to the parser."""
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
def test_the_generation_prompt_may_have_opened_reasoning(prompt, reasoning):
    """Text after an opener in the prompt is reasoning, although the output has no marker at all."""
    assert parse("Hm.", None, "hermes", "length", generation_prompt=prompt).reasoning == reasoning


def test_reasoning_that_was_opened_elsewhere_is_told_when_it_closes():
    """Without the prompt the text is content until the closer comes; then it was reasoning."""
    turn = parse("Hm.\n</think>\n\nYes.", None, "hermes")
    assert (turn.reasoning, turn.content) == ("Hm.", "Yes.")
    assert any(isinstance(event, ContentReclassified) for event in turn.events)


@pytest.mark.parametrize("format", [name for name, entry in FORMATS.items() if entry.starts_in_reasoning])
def test_an_answer_without_reasoning_is_not_lost(format):
    """Where the prompt is not known, a format's habit of reasoning first does not outlast an answer without it."""
    assert parse("Hello.", None, format).content == "Hello."
    assert parse("Hello.", None, format, "length").reasoning == "Hello."
    closing = next(iter(FORMATS[format].reasoning.values()))
    turn = parse(f"Hm.\n{closing}\n\nHello.", None, format)
    assert (turn.reasoning, turn.content) == ("Hm.", "Hello.")


def test_ids_are_of_their_own_and_repeatable():
    """The same turn gives the same ids; another turn, or another place in it, gives others."""
    twice = CALL + "\n" + CALL
    ids = [call.id for call in parse(twice, TOOLS, "hermes", turn="1").calls]
    assert ids == [call.id for call in parse(twice, TOOLS, "hermes", turn="1").calls]
    assert len({*ids, *(call.id for call in parse(twice, TOOLS, "hermes", turn="2").calls)}) == 4
    assert all(re.fullmatch(r"call_[0-9A-Za-z]{24}", id) for id in ids)


def test_ids_differ_between_reasoning_and_answer():
    """A call that ends unclosed reasoning does not share an id with one before it."""
    turn = parse(f"{CALL}\n<think>\nHm.\n{CALL}", TOOLS, "hermes")
    assert len({call.id for call in turn.calls}) == len(turn.calls) == 2


def test_a_draft_in_reasoning_makes_no_progress():
    """What is drafted after a real call is told neither as that call's progress nor as its own."""
    parser = Parser("hermes", TOOLS)
    for char in CALL:
        parser.feed(char)
    events = [event for char in f"<think>\nMaybe {CALL}?\n</think>" for event in parser.feed(char)]
    assert not any(isinstance(event, ToolCallProgress) for event in events)
    assert any(isinstance(event, RejectedCall) for event in events)


def test_a_format_is_a_name():
    """Not a number, nor None where a prompt needs one."""
    with pytest.raises(UsageError, match="a format is given by its name, got 5"):
        Parser(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "near"), [("hermess", "hermes"), ("bogus", ""), ("", ""), ("qwen3_codr", "qwen3_coder"), ("gpt", "gpt")]
)
def test_an_unknown_format_is_the_developers_mistake(name, near):
    """The message names the nearest, a handful of them, and where all are."""
    with pytest.raises(UsageError, match=re.escape(f"unknown format {name!r}; of {len(FORMATS)}")) as raised:
        Parser(name)
    named = re.search(r"the nearest are ([\w, .-]+?)( \(|\. docs)", str(raised.value))
    assert named is not None
    assert len(named[1].split(", ")) == 5
    assert near in named[1]
    assert len(str(raised.value)) < 240


def test_every_fix_is_used():
    """A name in the table that no code gives is a promise nobody keeps."""
    modules = Path(adapter.__file__).parent.rglob("*.py")
    code = "".join(path.read_text(encoding="utf-8") for path in modules if path.name != "fixes.py")
    assert [name for name in REPAIRS if f'"{name}"' not in code] == []


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "longcat"])
def test_the_closing_marker_is_forgiven_only_without_a_cut(name):
    """A complete body without its closing marker is a call, unless the server stopped for length."""
    text = FORMATS[name].encode_calls([("get_weather", {"city": "Oslo"})]).rstrip()
    text = text[: text.rindex("</")].rstrip()
    assert len(parse(text, TOOLS, name, "stop", generation_prompt="").calls) == 1
    assert parse(text, TOOLS, name, "length", generation_prompt="").calls == ()


def test_bare_json_needs_no_closing_marker():
    """Llama's calls end with their last bracket: complete is complete, whatever the server says."""
    text = FORMATS["llama3_json"].encode_calls([("get_time", {})])
    assert len(parse(text, TOOLS, "llama3_json", "length").calls) == 1


@pytest.mark.parametrize("name", [*FORMATS, None])
def test_a_long_file_is_one_call(name):
    """A text longer than what is taken at once is read as any other."""
    content = 'print("</tool_call>")\n\t# {"a": [1]}\n' * 12_000
    text = FORMATS[name or "hermes"].encode_calls([("write_file", {"path": "a.py", "content": content})])
    assert len(text) > 2 * MAX_PIECE
    whole = parse(text, TOOLS, name)
    assert [(call.arguments, call.fixes) for call in whole.calls] == [({"path": "a.py", "content": content}, ())]
    parser = Parser(name, TOOLS)
    events = [event for at in range(0, len(text), 50_001) for event in parser.feed(text[at : at + 50_001])]
    assert merge_deltas([*events, *parser.close("stop")]) == whole.events


def test_half_a_surrogate_pair_is_replaced_in_whichever_call_has_it():
    """Calls that share one JSON value share its text, too."""
    turn = parse(
        '<tool_calls>[{"name": "a", "arguments": {"x": "\ud800"}}, {"name": "b", "arguments": {}}]</tool_calls>'
    )
    assert [(call.arguments, call.fixes) for call in turn.calls] == [({"x": "\ufffd"}, ("lone-surrogate",)), ({}, ())]


def test_tool_sets_and_quotations_that_come_and_go_leave_nothing():
    """A server meets any number of tool sets: patterns of all markers for each, or for each fence, would be 2 MB."""
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
    ("given", "said"),
    [
        (None, "message.content or ''"),
        (b"<tool_call>", "decode it first"),
        ({"content": "Hi"}, "choices[0].message.content"),
    ],
)
def test_what_is_no_text_is_the_developers_mistake(given, said):
    """It says what came and what to pass; whole and in pieces."""
    for read in (parse, Parser().feed):
        with pytest.raises(UsageError, match=re.escape(said)) as raised:
            read(given)
        assert f"got {type(given).__name__} {given!r}"[:60] in str(raised.value)
