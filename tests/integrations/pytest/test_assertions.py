"""`assert_calls`: equality and the diff."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest
from openai.types.chat import ChatCompletion

from adapter import parse
from adapter.integrations.pytest import assert_calls


def message(*calls: tuple[str, Any], content: str | None = None) -> dict[str, Any]:
    made = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": content, "tool_calls": made or None}


def completion(*calls: tuple[str, Any], content: str | None = None) -> ChatCompletion:
    choice = {"index": 0, "finish_reason": "stop", "message": message(*calls, content=content)}
    fields = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return ChatCompletion.model_validate(fields)


READ = ("read_file", {"path": "a.py", "limit": 20})
TEXT = {"type": "text", "text": "I look."}
RESPONSE = {
    "object": "response",
    "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "name": "read_file", "arguments": '{"path": "a.py", "limit": 20}'},
        {"type": "custom_tool_call", "name": "patch", "input": "*** Begin"},
    ],
}


@pytest.mark.parametrize(
    "answer",
    [
        completion(READ),
        completion(READ).choices[0].message,
        completion(READ).choices[0].message.tool_calls,
        message(READ),
        {**message(), "function_call": message(READ)["tool_calls"][0]["function"]},
        {"role": "assistant", "content": [TEXT, {"type": "tool_use", "id": "c", "name": READ[0], "input": READ[1]}]},
        [READ],
        parse('<tool_call>{"name": "read_file", "arguments": {"path": "a.py", "limit": 20}}</tool_call>'),
    ],
    ids=["completion", "message", "calls", "dict", "legacy", "anthropic", "pairs", "turn"],
)
def test_every_kind_of_answer_is_accepted(answer):
    """Answers of any library, and calls by name or with arguments."""
    assert_calls(answer, [READ])
    assert_calls(answer, ["read_file"])
    assert_calls(answer, [("read_file", {"limit": ANY, "path": "a.py"})])
    assert_calls(answer, [("read_file", {"limit": 20})], partial=True)
    for other in ([], [READ, READ], ["read"], [("read_file", {"path": "a.py"})], [("read_file", {**READ[1], "x": 1})]):
        with pytest.raises(AssertionError, match="unexpected calls"):
            assert_calls(answer, other)


def test_a_response_has_calls_among_its_items():
    """Functions and custom tools, whose input is text."""
    assert_calls(RESPONSE, [READ, ("patch", "*** Begin")])
    with pytest.raises(AssertionError, match=r"the content is 'I look\.'"):
        assert_calls({**RESPONSE, "output": RESPONSE["output"][:1]}, ["read_file"])


def test_difference_omits_equal_values():
    """Values matched by `ANY`, additional arguments and their order are not shown."""
    answer = completion(("search", {"query": "x", "where": "a"}), READ)
    with pytest.raises(AssertionError) as caught:
        assert_calls(answer, [("search", {"where": ANY}), ("read_file", {"limit": 20, "path": "b.py"})], partial=True)
    assert str(caught.value) == "\n".join([
        "unexpected calls (- expected, + actual):",
        "  search(",
        '      where="a",',
        "  )",
        "  read_file(",
        '-     path="b.py",',
        '+     path="a.py",',
        "      limit=20,",
        "  )",
    ])  # fmt: skip


def test_calls_that_are_missing_and_too_many_are_shown():
    """With the content of the answer."""
    with pytest.raises(AssertionError, match=r"(?s)- search\(\.\.\.\)\n.*the content is 'I cannot\.'"):
        assert_calls(completion(content="I cannot."), ["search"])
    with pytest.raises(AssertionError, match=r"(?s)  search\(\)\n\+ search\(\)$"):
        assert_calls(completion(("search", {}), ("search", {})), ["search"])


def test_invalid_answers_raise_type_error():
    """They must not pass for an answer without calls."""
    with pytest.raises(TypeError, match="expected a completion"):
        assert_calls("read_file", ["read_file"])
    with pytest.raises(TypeError, match="expected a call"):
        assert_calls([3], ["read_file"])


def test_arguments_that_are_not_an_object_are_compared_verbatim():
    """A server that reads calls itself may hand on broken JSON."""
    broken = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": '}}]}
    with pytest.raises(AssertionError, match=r"\+ f\('\{\"a\": '\)"):
        assert_calls(broken, [("f", {"a": 1})])
