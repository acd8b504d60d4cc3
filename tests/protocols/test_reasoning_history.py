"""Reasoning of earlier answers reaches chat templates, which show it between a call and its result.

As in https://github.com/sgl-project/sglang/pull/25876 and https://github.com/MetaFARS/codex-relay/pull/27.
"""

from __future__ import annotations

from typing import Any

import pytest

from adapter.protocols import anthropic_request, ollama
from adapter.protocols.openai_responses_items import convert_items

CALL = {"name": "read_file", "arguments": {"path": "a.py"}}
USER = {"role": "user", "content": "Read a.py"}


def from_anthropic() -> list[Any]:
    thinking = {"type": "thinking", "thinking": "One file.", "signature": ""}
    use = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.py"}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x = 1"}]}
    messages = [USER, {"role": "assistant", "content": [thinking, use]}, result]
    return list(anthropic_request.convert_to_openai({"messages": messages})["messages"])


def from_responses(reasoning: dict[str, Any]) -> list[Any]:
    call = {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path": "a.py"}'}
    result = {"type": "function_call_output", "call_id": "c1", "output": "x = 1"}
    return list(convert_items([USER, {"type": "reasoning", **reasoning}, call, result], []))


def from_ollama() -> list[Any]:
    answer = {"role": "assistant", "content": "", "thinking": "One file.", "tool_calls": [{"function": CALL}]}
    messages = [USER, answer, {"role": "tool", "tool_name": "read_file", "content": "x = 1"}]
    return list(ollama.convert_to_openai({"messages": messages})["messages"])


CONTENT = {"content": [{"type": "reasoning_text", "text": "One file."}], "summary": [{"text": "A file."}]}
SUMMARY = {"content": None, "summary": [{"type": "summary_text", "text": "One file."}]}
HISTORIES = {
    "messages": from_anthropic(),
    "responses": from_responses(CONTENT),
    "responses, summary": from_responses(SUMMARY),
    "ollama": from_ollama(),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_reasoning_is_a_field_of_the_turn(name):
    _, answer, result = HISTORIES[name]
    assert answer["reasoning_content"] == "One file."
    assert answer["tool_calls"][0]["function"]["name"] == "read_file"
    assert result["role"] == "tool"


def test_reasoning_before_a_later_call_belongs_to_the_same_turn():
    text = {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    first = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "A greeting."}]}
    second = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "One file."}]}
    call = {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"}
    _, turn = convert_items([USER, first, text, second, call], [])
    assert turn["reasoning_content"] == "A greeting.\nOne file."
    assert len(turn["tool_calls"]) == 1


def test_reasoning_without_an_answer_is_left_out():
    assert list(convert_items([{"type": "reasoning", **SUMMARY}, USER], [])) == [USER]
