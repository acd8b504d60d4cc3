"""What a model is shown of its own answers is what it wrote: else the server's cache ends there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.conversation.verbatim_history import verbatim_text
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import Parser, parse

CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
    '{"path": "a.py"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"I look.\n\n{CALL}\n", f"I look.\n\n{CALL}\n"),
        ("<tool_call>{'name': 'ReadFile', 'arguments': {'file': 'a',}}</tool_call>",) * 2,
        (f"<think>\nsecret\n</think>\n\n{CALL}", CALL),
        (f"<think>\n\n</think>\n\n{CALL}", CALL),
        (f"secret</think>{CALL}", CALL),
        ("<think>\nHello.", "Hello."),
        (f"So:\n<tool_response>\n{CALL}\n</tool_response>\nis it.",) * 2,
        (f"{CALL}\n<tool_response>\ninvented\n</tool_response>\n", f"{CALL}\n"),
        (f"{KIMI}<|im_end|>", KIMI),
        ("<tool_call>\n{oops\n</tool_call>",) * 2,
        ("Hello.",) * 2,
        ("",) * 2,
    ],
    ids=[
        "spaces",
        "repaired",
        "reasoning",
        "no-thoughts",
        "no-opening",
        "an-answer-after-all",
        "echo",
        "invented-result",
        "end",
        "broken",
        "text",
        "none",
    ],
)
def test_an_answer_is_shown_as_it_was_written(text, shown):
    """All but reasoning, end tokens and what the model said as somebody else; nothing is put right."""
    assert verbatim_text(parse(text).events) == shown


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_format_encodes_is_kept_to_the_byte(name):
    """Two calls in the format's own words, read and shown again, are the same text but for the token that ends it."""
    text = FORMATS[name].encode_calls([("read_file", {"path": "a.py"}), ("list_directory", {"path": "."})])
    assert verbatim_text(parse(text, format=name, generation_prompt="").events) == text.removesuffix("<|eot|>")


@given(st.lists(st.sampled_from(["a", " ", "\n", "<think>", "</think>", CALL, "<tool_call>", "{", "<|im_end|>"])))
def test_splits_do_not_matter(pieces):
    """A text fed piece by piece is shown as when it came whole."""
    parser = Parser()
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.close("stop")
    assert verbatim_text(events) == verbatim_text(parse("".join(pieces), finish_reason="stop").events)
