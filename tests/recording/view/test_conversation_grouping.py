"""Conversations and questions of exchanges, and the phases of an exchange."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core.events import JsonObject
from adapter.recording.view.conversation_grouping import MAX_PROMPTS, Conversations, find_question
from adapter.recording.view.view_page_data import build_exchanges_view, build_timeline
from tests.recording.view.test_view_page_data import CALL, READ, exchange


def user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "Done."}


def test_longer_prompt_continues_a_conversation():
    conversations = Conversations()
    prompts = [
        [SYSTEM, user("a")],
        [SYSTEM, user("b")],
        [SYSTEM, user("a"), ANSWER, user("more")],
        [SYSTEM, user("b"), ANSWER, {"role": "tool", "content": "1"}],
        [SYSTEM, user("a"), ANSWER, user("more"), ANSWER, user("still more")],
        [SYSTEM, user("a"), ANSWER, user("another way")],
    ]
    assert [conversations.assign(number, each) for number, each in enumerate(prompts, 1)] == [1, 2, 1, 2, 1, 1]


def test_equal_prompt_is_another_conversation_unless_it_is_a_retry():
    conversations = Conversations()
    assert conversations.assign(1, [SYSTEM, user("a")]) == 1
    assert conversations.assign(2, [SYSTEM, user("a")]) == 2
    assert conversations.assign(3, [SYSTEM, user("a")], is_retry=True) == 2
    assert conversations.assign(4, []) == 4


def test_recorded_id_of_a_conversation_counts():
    conversations = Conversations()
    assert [conversations.assign(number, [user(str(number))], id="x") for number in (1, 2)] == [1, 1]


def test_number_of_remembered_prompts_is_limited():
    conversations = Conversations()
    for number in range(1, MAX_PROMPTS + 2):
        conversations.assign(number, [user(str(number))])
    assert conversations.assign(0, [user("2"), ANSWER]) == 2
    assert conversations.assign(0, [user("1"), ANSWER]) == 0


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([SYSTEM, user("a"), ANSWER, user("b"), {"role": "tool", "content": "1"}], "b"),
        ([user("a"), {"role": "user", "content": [{"type": "image_url"}, {"text": "And this?"}]}], "And this?"),
        ([SYSTEM], ""),
        ([{"role": "user", "content": None}], ""),
        ([{"role": ["user"], "content": 1}], ""),
    ],
)  # fmt: skip
def test_question_is_the_last_user_message(messages, question):
    assert find_question(messages) == question


def test_page_groups_exchanges_by_conversation():
    second = exchange(sent={"messages": [SYSTEM, user("Read a.py"), ANSWER, user("Now b.py")]})
    shown = build_exchanges_view([exchange(), exchange(said="Other"), second], "f").data["exchanges"]
    assert [each["conversation"] for each in shown] == [1, 2, 1]
    assert [each["question"] for each in shown] == ["Read a.py", "Other", "Now b.py"]


def phases(**times: Any) -> list[tuple[str, float, float]]:
    return [(each["name"], each["start_s"], each["end_s"]) for each in build_timeline(exchange(**times), ["read_file"])]


def test_timeline_has_a_phase_for_each_recorded_time():
    assert phases(first_s=0.5, reasoning_s=1.0, calls_s=(1.5,), duration_s=2.0) == [
        ("until the first part", 0.0, 0.5), ("reasoning", 0.5, 1.0), ("call read_file", 1.0, 1.5),
        ("until the end", 1.5, 2.0),
    ]  # fmt: skip
    assert phases(first_s=0.5, calls_s=(0.5, 0.7), duration_s=0.7)[1:] == [("call 1", 0.5, 0.5), ("call 2", 0.5, 0.7)]
    assert phases() == phases(first_s=1.0) == []


def test_timeline_is_limited_and_in_order():
    """Whatever a file contains."""
    found = phases(first_s=3.0, reasoning_s=-1.0, calls_s=(9.0,) * 1000, duration_s=2.0)
    assert len(found) == 23
    assert found[-1] == ("980 more calls", 2.0, 2.0)
    assert all(0 <= start <= end <= 2 for _, start, end in found)


def test_page_has_the_timeline():
    took = exchange(CALL, calls=(READ,), first_s=0.5, calls_s=(1.5,), duration_s=2.0)
    (shown,) = build_exchanges_view([took], "f").data["exchanges"]
    assert [each["name"] for each in shown["timeline"]] == ["until the first part", "call read_file", "until the end"]
