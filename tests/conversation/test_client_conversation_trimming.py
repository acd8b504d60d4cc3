"""A client's conversation that exceeds its budget is cut in steps, so that prompts keep their beginning."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.conversation.client_conversation_trimming import FittedMessages, count_tokens, fit_messages
from adapter.conversation.token_estimate import estimate_tokens

LINES = "\n".join(f"{number}: some line of a file" for number in range(60))
SYSTEM = {"role": "system", "content": "Be careful. " * 20}
TASK = {"role": "user", "content": "Fix the bug in every file, and keep the tests passing."}


def turn(number: int, result: Any = LINES, text: str | None = None) -> list[dict[str, Any]]:
    function = {"name": "read_file", "arguments": f'{{"path": "src/{number}.py"}}'}
    return [
        {
            "role": "assistant",
            "content": text,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def agent_requests(turns: int, **fields: Any) -> list[list[dict[str, Any]]]:
    """Return the messages of each request of an agent that reads one file per turn."""
    requests = [[SYSTEM, TASK]]
    for number in range(turns):
        requests.append([*requests[-1], *turn(number, **fields)])
    return requests


def fit_all(requests: list[list[dict[str, Any]]], limit: int) -> list[FittedMessages]:
    return [fit_messages(each, limit) for each in requests]


def test_a_conversation_within_the_budget_is_the_same_object():
    messages = agent_requests(3)[-1]
    fitted = fit_messages(messages, 50_000)
    assert fitted.messages is messages
    assert fitted.summary == ""


def test_an_agents_requests_stay_within_the_budget():
    """The system prompt, the task and the newest result are whole."""
    requests = agent_requests(60)
    for request, fitted in zip(requests, fit_all(requests, 4_000), strict=True):
        assert sum(map(count_tokens, fitted.messages)) <= 4_000
        assert fitted.messages[0] == SYSTEM
        assert fitted.messages[1]["content"].startswith(TASK["content"])
        assert fitted.messages[-1] == request[-1]


def test_requests_begin_with_the_one_before_except_at_a_step():
    fitted = fit_all(agent_requests(60), 4_000)
    kept = [later.messages[: len(one.messages)] == one.messages for one, later in pairwise(fitted)]
    assert 2 <= kept.count(False) <= len(kept) / 3


def test_shortened_results_come_before_summarized_turns():
    steps = [each for each in fit_all(agent_requests(60), 4_000) if each.summary]
    assert steps[0].summary.startswith("results=")
    assert "turns" not in steps[0].summary
    assert "turns=" in steps[-1].summary


def test_a_shortened_result_names_its_call():
    steps = [each for each in fit_all(agent_requests(20), 4_000) if each.summary]
    result = next(each for each in steps[0].messages if each["role"] == "tool")
    assert 'read_file({"path": "src/0.py"}) returned' in result["content"]
    assert result["content"].startswith("0: some line")
    assert result["content"].endswith("59: some line of a file")


def test_summarized_turns_are_named_after_the_users_message():
    last = fit_all(agent_requests(60, text="I look for the bug."), 4_000)[-1]
    note = last.messages[1]["content"]
    assert "earlier calls" in note
    assert '- read_file({"path": "src/' in note
    assert "I look for the bug." in note
    ids = {call["id"] for each in last.messages for call in each.get("tool_calls") or ()}
    assert {each["tool_call_id"] for each in last.messages if each["role"] == "tool"} == ids


def test_the_note_does_not_grow_without_bounds():
    last = fit_messages(agent_requests(1_000)[-1], 4_000)
    assert count_tokens(last.messages[1]) < 1_500


def test_a_huge_last_result_is_shortened_and_stays_so():
    requests = agent_requests(1, result=LINES * 40)
    requests.append([*requests[-1], *turn(7)])
    one, later = fit_all(requests[1:], 4_000)
    assert sum(map(count_tokens, one.messages)) <= 4_000
    assert later.messages[: len(one.messages)] == one.messages
    assert f"returned {len(LINES * 40)} characters" in one.messages[-1]["content"]


def test_a_chat_without_tools_keeps_the_last_messages():
    messages = [SYSTEM]
    for number in range(80):
        messages += [
            {"role": "user", "content": f"{number}? {LINES}"},
            {"role": "assistant", "content": f"{number}! {LINES}"},
        ]
    messages.append({"role": "user", "content": "And now?"})
    fitted = fit_messages(messages, 4_000)
    assert sum(map(count_tokens, fitted.messages)) <= 4_000
    assert fitted.messages[0] == SYSTEM
    assert fitted.messages[1]["content"].startswith("0? 0: some line")
    assert fitted.messages[-2:] == messages[-2:]
    assert "messages=" in fitted.summary


def test_old_images_are_left_out_and_named():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    requests = agent_requests(12, result=[{"type": "text", "text": "a screenshot"}, image])
    fitted = fit_messages(requests[-1], 6_000)
    first = next(each for each in fitted.messages if each["role"] == "tool")
    assert first["content"] == "a screenshot\n[image_url left out]"
    assert fitted.messages[-1]["content"][1] == image


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [None, 3, "text"],
        [{"role": "tool", "content": LINES * 99}],
        [{"role": "assistant", "tool_calls": 3, "content": 4}, {"role": "tool", "content": [LINES * 99, 7]}],
        [{"role": 5, "content": {"text": LINES * 99}}, {"content": LINES * 99}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": 1, "arguments": {"a": LINES * 99}}}, None]}],
    ],
)
def test_malformed_messages_are_left_to_the_translation(messages):
    fit_messages(messages, 100)


def test_ollamas_calls_without_ids_and_images_beside_the_text():
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "see", "arguments": {"n": 1}}}]}
    result = {"role": "tool", "tool_name": "see", "content": LINES, "images": ["AAAA"]}
    messages = [TASK] + [call, result] * 6
    fitted = fit_messages(messages, 5_000)
    shortened = next(each for each in fitted.messages if each["role"] == "tool")
    assert 'see({"n": 1}) returned' in shortened["content"]
    assert "images" not in shortened
    assert fitted.messages[-1] == result


ROLES = st.sampled_from(["user", "assistant", "call", "system"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(ROLES, st.integers(1, 4_000)), min_size=1, max_size=40), st.integers(300, 3_000))
def test_any_conversation_keeps_calls_with_results_and_its_ends(pieces, limit):
    messages: list[dict[str, Any]] = []
    for number, (role, size) in enumerate(pieces):
        text = ("word " * size)[:size]
        messages += turn(number, text) if role == "call" else [{"role": role, "content": text}]
    fitted = fit_messages(messages, limit)
    roles = [each["role"] for each in fitted.messages]
    for before, role in pairwise(["none", *roles]):
        assert role != "tool" or before in ("assistant", "tool")
    assert [each for each in messages if each["role"] == "system"] == [
        each for each in fitted.messages if each["role"] == "system"
    ]
    assert roles[-1] == messages[-1]["role"]
    assert fit_messages(messages, limit).messages == fitted.messages


def test_notes_after_a_long_message_take_linear_time():
    """The message was counted again for each summarized turn: 8 s for 1,000 turns."""
    task = {"role": "user", "content": "Fix the bug. " * 5_000}
    messages = [task, *(message for number in range(300) for message in turn(number))]
    with patch(f"{fit_messages.__module__}.estimate_tokens", wraps=estimate_tokens) as counted:
        assert "turns=" in fit_messages(messages, 30_000).summary
    assert sum(len(call.args[0]) for call in counted.call_args_list) < 10 * sum(map(len, map(str, messages)))


def test_long_messages_of_the_user_are_shortened_before_they_are_left_out():
    """The first and the last message stay whole."""
    long = {"role": "user", "content": "word " * 3_000}
    messages = [
        SYSTEM,
        TASK,
        {"role": "assistant", "content": "Yes."},
        long,
        {"role": "assistant", "content": "Yes."},
        TASK,
    ]
    fitted = fit_messages(messages, 2_000)
    assert [message["role"] for message in fitted.messages] == [message["role"] for message in messages]
    assert "[shortened: this message has 15000 characters]" in fitted.messages[3]["content"]
    assert fitted.messages[1] == fitted.messages[-1] == TASK
