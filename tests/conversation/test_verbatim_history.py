"""A model is shown its own answers byte for byte, for the prompt cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.conversation.verbatim_history import build_verbatim_text
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
def test_answer_is_shown_verbatim(text, shown):
    """Without reasoning, end tokens and text after its turn; nothing is corrected."""
    assert build_verbatim_text(parse(text).events) == shown


@pytest.mark.parametrize("name", FORMATS)
def test_encoded_calls_are_shown_byte_for_byte(name):
    """Two encoded calls survive a round trip, except for the end token."""
    text = FORMATS[name].encode_calls([("read_file", {"path": "a.py"}), ("list_directory", {"path": "."})])
    assert build_verbatim_text(parse(text, format=name, generation_prompt="").events) == text.removesuffix("<|eot|>")


@given(st.lists(st.sampled_from(["a", " ", "\n", "<think>", "</think>", CALL, "<tool_call>", "{", "<|im_end|>"])))
def test_verbatim_text_is_independent_of_chunks(pieces):
    """The result is the same for any chunks."""
    parser = Parser()
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.close("stop")
    assert build_verbatim_text(events) == build_verbatim_text(parse("".join(pieces), finish_reason="stop").events)
