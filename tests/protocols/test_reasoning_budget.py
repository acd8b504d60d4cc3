"""Reasoning ends at its budget or when it loops, and the model continues with its answer."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.parsing.formats import get_format
from adapter.protocols.answer_translation import StreamedExchange
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.reasoning_budget import ReasoningWatch, ends_in_loop, find_closing_words, find_requested_budget
from adapter.protocols.template_prompt import CONTINUED, iter_prompt_steps
from adapter.protocols.token_budgets import Budgets
from adapter.protocols.translation_options import TranslationOptions
from tests.scripted_server import as_stream, delta
from tests.server.test_wrap import ASK, CALL, TOOLS

WORDS = "I could read it. Or not. "
NUMBERED = "".join(f"Step {number}: I think about it. " for number in range(400))


def begin(budget: int | None, kind: str | None = None, **fields: Any) -> StreamedExchange:
    options = TranslationOptions(budgets=Budgets(reasoning=budget), kind=kind)
    body = {"model": "qwen3", "messages": ASK, "tools": TOOLS, "stream": True, **fields}
    return StreamedExchange(translate_chat_request(body, options), 0)


def feed(exchange: StreamedExchange, *texts: str, field: str = "content") -> str:
    written = b""
    for text in texts:
        if not exchange.is_done:
            written += exchange.feed(as_stream(delta(**{field: text}), done=False).body)
    return written.decode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, 800),
        ({"reasoning_effort": "low"}, 200),
        ({"reasoning_effort": "high"}, 800),
        ({"reasoning_effort": "none"}, 0),
        ({"thinking_budget_tokens": 50}, 50),
        ({"thinking_token_budget": 5_000}, 800),
        ({"thinking": {"type": "enabled", "budget_tokens": 60}}, 60),
        ({"reasoning": {"max_tokens": 70}}, 70),
        ({"reasoning": {"effort": "low"}}, 200),
        ({"thinking_budget": 80}, 80),
        ({"reasoning_budget": 90}, 90),
        ({"reasoning": "no", "thinking": [], "thinking_budget_tokens": True}, 800),
    ],
)
def test_a_client_lowers_the_budget_in_any_way(body, expected):
    assert find_requested_budget(body, 800) == expected


def test_without_a_budget_only_the_clients_number_counts():
    assert find_requested_budget({"reasoning_effort": "low"}, None) is None
    assert find_requested_budget({"reasoning_budget_tokens": 9}, None) == 9


@pytest.mark.parametrize("size", [1, 7, 400])
@pytest.mark.parametrize("unit", ["Wait. ", "Let me think again about the file.\n", "x", "ä"])
def test_loops_are_noticed(unit, size):
    text = "So the user wants a file. " + unit * 3_000
    watch = ReasoningWatch(None)
    found = [watch.add(text[index : index + size]) for index in range(0, 4_000, size)]
    assert "loop" in found


def test_a_list_of_similar_steps_is_not_a_loop():
    watch = ReasoningWatch(None)
    assert not any(watch.add(NUMBERED[index : index + 9]) for index in range(0, len(NUMBERED), 9))
    assert not ends_in_loop("- [ ] one\n" * 20)


@pytest.mark.parametrize(
    ("format", "begun", "end"),
    [
        ("hermes", "<think>\nSo", "</think>\n\n"),
        ("seed_oss", "<seed:think>So", "\n</seed:think>\n\n"),
        ("mistral", "[THINK]So", "\n[/THINK]\n\n"),
        ("harmony", "<|channel|>analysis<|message|>So", "<|end|><|start|>assistant"),
        ("seed_oss", "So", "\n</seed:think>\n\n"),
    ],
)
def test_each_family_closes_in_its_own_words(format, begun, end):
    assert str(find_closing_words(get_format(format), begun)).endswith(end)


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
def test_reasoning_over_the_budget_is_closed_and_the_call_follows(field):
    """Also if the server separates reasoning. The client gets one answer."""
    exchange = begin(20, max_tokens=500)
    opening = ["<think>\n"] if field == "content" else []
    written = feed(exchange, *opening, *[WORDS] * 9, field=field)
    assert exchange.is_done
    body = exchange.build_next_body()
    assert body is not None
    *_, last = body["messages"]
    assert last["role"] == "assistant"
    assert last["content"].startswith("<think>\nI could read it.")
    assert last["content"].endswith("</think>\n\n")
    assert 400 < body["max_tokens"] < 500
    written += feed(exchange, "I look.", *CALL)
    written += exchange.feed(as_stream(delta(finish_reason="stop")).body).decode()
    written += exchange.close().decode()
    assert exchange.build_next_body() is None
    assert '"content":"I look."' in written
    assert '"name":"read_file"' in written
    assert '"reasoning":"budget"' in written
    assert "</think>" not in written
    assert "limited time" not in written


def test_a_loop_is_closed_without_a_budget():
    exchange = begin(None)
    feed(exchange, "<think>\n", *["Wait, let me check. "] * 500)
    assert exchange.build_next_body() is not None


def test_reasoning_within_the_budget_is_left_alone():
    exchange = begin(2_000)
    written = feed(exchange, "<think>\n", *[WORDS] * 9, "</think>", *CALL)
    assert exchange.build_next_body() is None
    assert '"name":"read_file"' in written


def test_it_is_closed_once():
    """A model that continues to reason is not stopped again."""
    exchange = begin(5)
    feed(exchange, "<think>\n", *[WORDS] * 9)
    assert exchange.build_next_body() is not None
    feed(exchange, "<think>\n", *[WORDS] * 9, "</think>", *CALL)
    assert exchange.build_next_body() is None


def test_llama_cpp_gets_its_own_field_and_time_to_obey():
    exchange = begin(20, "llama.cpp")
    assert exchange.request.body["reasoning_budget_tokens"] == 20
    feed(exchange, "<think>\n", WORDS * 4)
    assert not exchange.is_done
    feed(exchange, WORDS * 4)
    body = exchange.build_next_body()
    assert body is not None
    steps = iter_prompt_steps("/v1/chat/completions", body)
    assert next(steps).path == "/apply-template"  # type: ignore[union-attr]
    with pytest.raises(StopIteration) as stop:
        steps.send({"prompt": "user: x\nassistant: "})
    assert stop.value.value.path == "/completion"
    assert stop.value.value.body["prompt"] == f"user: x\nassistant: {body[CONTINUED]}"
    assert CONTINUED not in stop.value.value.body


def test_a_budget_of_zero_turns_reasoning_off():
    assert begin(0).request.body["chat_template_kwargs"] == {"enable_thinking": False}
