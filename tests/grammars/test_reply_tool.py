"""Replies of a model that is constrained to calls: text for the client, in any chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.events import TextDelta, ToolCall
from adapter.core.turn import Turn
from adapter.grammars.reply_tool import REPLY, ReplyParser, add_reply_tool
from adapter.parsing.formats.hermes import encode_call
from adapter.tools.tool_set import ToolSet
from tests.effort import examples

TOOLS = ToolSet([{"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}])


def in_markers(text: str) -> str:
    return encode_call("reply", {"text": text})


def read(written: str, size: int | None = None, finish_reason: str = "stop") -> Turn:
    parser = ReplyParser(TOOLS, REPLY)
    pieces = [written[start : start + size] for start in range(0, len(written), size)] if size else [written]
    events = [event for piece in pieces for event in parser.feed(piece)]
    return Turn.from_events([*events, *parser.close(finish_reason)])


@examples(50)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60), st.integers(1, 9))
def test_reply_is_text_in_any_chunks(text, size):
    """Also a reply that mentions calls: nothing in it is run."""
    turn = read(in_markers(text), size)
    assert (turn.content, turn.calls, turn.invalid) == (text, (), ())
    assert "".join(event.raw for event in turn.events) == in_markers(text)


@pytest.mark.parametrize("text", [in_markers("x"), '{"name": "read_file", "arguments": {"path": "a"}}', '{"text": "a'])
def test_a_call_quoted_in_a_reply_is_text(text):
    turn = read(in_markers(text), 1)
    assert (turn.content, turn.calls) == (text, ())


def test_reply_is_streamed():
    parser = ReplyParser(TOOLS, REPLY)
    events = parser.feed(in_markers("All is well. " * 20)[:250])
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).startswith("All")


def test_reply_without_markers_is_accepted():
    """As servers with a JSON Schema make models write it."""
    assert read('{"name": "reply", "parameters": {"text": "Fine."}}').content == "Fine."


@pytest.mark.parametrize("size", [None, 1])
def test_truncated_reply_is_partial_text(size):
    turn = read(in_markers("All is well.")[:-25], size, "length")
    assert turn.content
    assert "All is well.".startswith(turn.content)
    assert not turn.calls
    assert not turn.invalid


def test_other_calls_stay_calls():
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
    (event,) = [event for event in read(call).events if isinstance(event, ToolCall)]
    assert (event.name, event.arguments) == ("read_file", {"path": "a"})


def test_the_name_of_a_tool_is_not_taken_twice():
    tools, reply = add_reply_tool(ToolSet([{"name": "Reply"}]))
    assert list(tools) == ["Reply", reply.name]
    assert reply.name != "reply"


@pytest.mark.parametrize("size", [None, 1])
def test_a_reply_that_begins_after_calls_only_ends_them(size):
    """A model cannot know the results before it has them."""
    call = encode_call("read_file", {"path": "a"})
    turn = read(f'{call}\n<tool_call>\n{{"name": "reply", "arguments": ', size)
    assert [each.name for each in turn.calls] == ["read_file"]
    assert not turn.invalid
    assert turn.content == ""
    assert read(f"{call}\n{in_markers('It says b.')}", size).content == ""
