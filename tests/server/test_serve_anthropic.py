"""Anthropic's unmodified SDK with `adapter serve`, in front of a text-only server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from adapter.protocols.anthropic_request import convert_to_openai
from tests.scripted_server import CHAT, Reply, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_wrap import CALL, TOOLS, completion
from tests.serving import serving

FUNCTION = TOOLS[0]["function"]
OFFERED: list[Any] = [
    {"name": "read_file", "description": FUNCTION["description"], "input_schema": FUNCTION["parameters"]},
    {"type": "web_search_20250305", "name": "web_search"},
]
ASK: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Read a.py"}]}]
SECOND = CALL.replace("a.py", "b.py")


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedServer, str]]:
    with ScriptedServer() as upstream, serving(upstream.url, "--stream-arguments") as url:
        yield upstream, url


@pytest.fixture
def client(anthropic: Any, shared: tuple[ScriptedServer, str]) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=shared[1].removesuffix("/v1"), api_key="k", max_retries=0) as client:
        yield client


def says(text: str, stream: bool, reason: str = "stop") -> Reply:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    if not stream:
        return as_json(200, {**completion(text, reason), "usage": usage})
    return as_stream(*map(delta, text), delta(finish_reason=reason), {**delta(), "choices": [], "usage": usage})


def ask(client: Any, stream: bool, **fields: Any) -> Any:
    """Return the message, assembled by the SDK if streamed."""
    fields = {"model": "qwen3", "max_tokens": 99, "messages": ASK, "tools": OFFERED, **fields}
    if not stream:
        return client.messages.create(**fields)
    with client.messages.stream(**fields) as events:
        return events.get_final_message()


@streamed_and_whole
def test_reasoning_text_and_calls_become_blocks(client, upstream, stream):
    """In their order, with token counts."""
    upstream.on(CHAT, says(f"<think>Hm.</think>I look.\n{CALL}\n{SECOND}", stream))
    message = ask(client, stream)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (message.content[0].thinking, message.content[1].text) == ("Hm.", "I look.")
    assert [(block.name, block.input) for block in message.content[2:]] == [
        ("read_file", {"path": "a.py"}),
        ("read_file", {"path": "b.py"}),
    ]
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (5, 2)


@streamed_and_whole
@pytest.mark.parametrize(("reason", "expected"), [("stop", "end_turn"), ("length", "max_tokens")])
def test_text_answer_has_stop_reason(client, upstream, stream, reason, expected):
    upstream.on(CHAT, says("Done.", stream, reason))
    message = ask(client, stream)
    assert ([block.text for block in message.content], message.stop_reason) == (["Done."], expected)


def test_conversation_is_sent_as_plain_text(client, upstream):
    """System prompt, past calls, results and stop sequences; server-side tools are dropped."""
    upstream.on(CHAT, says("Empty.", False))
    history = [
        *ASK,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": ""},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "no such file", "is_error": True},
                {"type": "text", "text": "And now?"},
            ],
        },
    ]
    ask(client, False, messages=history, system=[{"type": "text", "text": "Be brief."}], stop_sequences=["END"])
    (body,) = upstream.bodies()
    system, *rest = body["messages"]
    assert system["content"].startswith("Be brief.\n\n# Tools")
    assert "web_search" not in system["content"]
    assert rest == [
        {"role": "user", "content": "Read a.py"},
        {"role": "assistant", "content": f"I look.\n{CALL}"},
        {"role": "user", "content": "<tool_response>\nError: no such file\n</tool_response>\n\nAnd now?"},
    ]
    assert (body["max_tokens"], body["stop"]) == (99, ["END", "<|im_end|>"])


@pytest.mark.parametrize(
    ("choice", "order"),
    [
        ({"type": "any"}, "Answer with a call to one of the tools."),
        ({"type": "tool", "name": "read_file"}, "Answer with a call to one of the tools."),
        ({"type": "auto", "disable_parallel_tool_use": True}, "Make one call only."),
    ],
)
def test_tool_choice_is_honored(client, upstream, choice, order):
    upstream.on(CHAT, says(CALL, False))
    assert ask(client, False, tool_choice=choice).stop_reason == "tool_use"
    assert upstream.bodies()[0]["messages"][-1]["content"] == f"Read a.py\n\n{order}"


@streamed_and_whole
def test_errors_have_anthropic_shape(anthropic, client, upstream, stream):
    upstream.on(CHAT, as_error(404, "no model 'qwen3'"))
    with pytest.raises(anthropic.NotFoundError, match="no model 'qwen3'") as caught:
        ask(client, stream)
    assert caught.value.body["error"]["type"] == "not_found_error"


def test_invalid_request_is_rejected(anthropic, client, upstream):
    with pytest.raises(anthropic.BadRequestError, match="unknown tool 'read_fil'"):
        ask(client, False, tool_choice={"type": "tool", "name": "read_fil"})
    with pytest.raises(anthropic.BadRequestError, match="must be auto, any, tool or none, got 'all'"):
        ask(client, False, tool_choice={"type": "all"})
    assert upstream.bodies() == []


@pytest.mark.parametrize(
    "system",
    [
        "x-anthropic-billing-header: cch=1;\nBe brief.",
        [{"type": "text", "text": "x-anthropic-billing-header: cch=1;\nBe brief."}],
        [{"type": "text", "text": "x-anthropic-billing-header: cch=1;"}, {"type": "text", "text": "Be brief."}],
    ],
    ids=["text", "block", "blocks"],
)
def test_billing_line_is_removed(system):
    """Claude Code changes it with each request."""
    body = {"model": "m", "max_tokens": 9, "system": system, "messages": [{"role": "user", "content": "Hi"}]}
    assert convert_to_openai(body)["messages"][0] == {"role": "system", "content": "Be brief."}
