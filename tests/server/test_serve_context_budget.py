"""`adapter serve --context-budget` and `wrap`: long conversations fit into the model's context in every protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest

import adapter
from adapter.conversation.client_conversation_trimming import count_tokens
from adapter.core.errors import UsageError
from tests.conversation.test_client_conversation_trimming import LINES, SYSTEM, TASK, agent_requests
from tests.http_requests import send
from tests.scripted_server import CHAT, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected
from tests.server.test_wrap import CALL, TOOLS, completion
from tests.serving import serving

BUDGET = 8_000
TURNS = 40
TOOL = TOOLS[0]["function"]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[ScriptedServer, str]]:
    with ScriptedServer() as upstream, serving(upstream.url, "--context-budget", str(BUDGET)) as url:
        yield upstream, url.removesuffix("/v1")


def post(url: str, path: str, body: Any) -> tuple[Any, str]:
    """Return the headers and the body of an answer."""
    status, headers, text = send(url, path, body)
    assert status == 200, text
    return headers, text


def as_anthropic(messages: list[Any]) -> dict[str, Any]:
    converted: list[Any] = []
    for message in messages[1:]:
        if message["role"] == "user":
            converted.append(message)
        elif message["role"] == "assistant":
            calls = [
                {"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
                 "input": json.loads(call["function"]["arguments"])}
                for call in message["tool_calls"]
            ]  # fmt: skip
            converted.append({"role": "assistant", "content": calls})
        else:
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            converted.append({"role": "user", "content": [result]})
    tool = {"name": TOOL["name"], "description": "Read a file.", "input_schema": TOOL["parameters"]}
    system = messages[0]["content"]
    return {"model": "qwen3", "max_tokens": 500, "system": system, "messages": converted, "tools": [tool]}


def as_responses(messages: list[Any]) -> dict[str, Any]:
    items: list[Any] = []
    for message in messages[1:]:
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            items.append({"type": "function_call_output", "call_id": call_id, "output": message["content"]})
        elif message["role"] == "assistant":
            items += [
                {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message["tool_calls"]
            ]
        else:
            items.append(message)
    tools = [{"type": "function", **TOOL}]
    return {"model": "qwen3", "instructions": messages[0]["content"], "input": items, "tools": tools, "store": False}


def as_ollama(messages: list[Any]) -> dict[str, Any]:
    converted = []
    for message in messages:
        if message["role"] == "assistant":
            calls = [
                {"function": {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}}
                for call in message["tool_calls"]
            ]
            message = {"role": "assistant", "content": "", "tool_calls": calls}
        elif message["role"] == "tool":
            message = {"role": "tool", "tool_name": "read_file", "content": message["content"]}
        converted.append(message)
    return {"model": "qwen3", "messages": converted, "tools": TOOLS, "stream": False}


def as_chat(messages: list[Any]) -> dict[str, Any]:
    return {"model": "qwen3", "messages": messages, "tools": TOOLS}


PROTOCOLS = {
    "chat": (CHAT, as_chat),
    "messages": ("/v1/messages", as_anthropic),
    "responses": ("/v1/responses", as_responses),
    "ollama": ("/api/chat", as_ollama),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_long_conversations_fit_and_keep_their_beginning(served, protocol):
    """The prompt stays within the budget and changes its beginning only in rare steps; the header counts the cuts.

    The cuts are the same in all protocols, so only one sends all requests of the agent.
    """
    upstream, url = served
    upstream.replies[CHAT].clear()
    upstream.on(CHAT, as_json(200, completion(CALL)))
    first = len(upstream.bodies())
    path, convert = PROTOCOLS[protocol]
    requests = agent_requests(TURNS)
    if protocol != "chat":
        requests = [requests[0], *requests[-4:]]
    headers = [post(url, path, convert(each))[0].get("adapter-shortened", "") for each in requests]
    prompts = [body["messages"] for body in upstream.bodies()[first:]]
    assert len(prompts) == len(requests)
    assert headers[0] == ""
    assert headers[-1].startswith("results=")
    assert "turns=" in headers[-1]
    for prompt in prompts:
        assert sum(map(count_tokens, prompt)) <= BUDGET * 3 / 4
        assert prompt[0]["content"].startswith(SYSTEM["content"].strip())
        assert "read_file" in prompt[0]["content"]
        assert TASK["content"] in prompt[1]["content"]
    assert LINES in prompts[-1][-1]["content"]
    if protocol == "chat":
        kept = [later[: len(one)] == one for one, later in pairwise(prompts)]
        assert 1 <= kept.count(False) <= TURNS / 4


def test_a_stream_has_the_header_from_the_start(served):
    upstream, url = served
    upstream.replies[CHAT].clear()
    upstream.on(CHAT, as_stream(*map(delta, CALL), delta(finish_reason="stop")))
    headers, text = post(url, CHAT, {**as_chat(agent_requests(TURNS)[-1]), "stream": True})
    assert headers["adapter-shortened"].startswith("results=")
    assert '"read_file"' in text


def test_a_chat_without_tools_is_shortened_too(served):
    upstream, url = served
    upstream.replies[CHAT].clear()
    upstream.on(CHAT, as_json(200, completion("Yes.")))
    chat = [SYSTEM]
    for number in range(40):
        chat += [{"role": "user", "content": f"{number} {LINES}"}, {"role": "assistant", "content": LINES}]
    body = {"model": "m", "messages": [*chat, TASK], "seed": 7}
    headers, text = post(url, CHAT, body)
    assert headers["adapter-shortened"].startswith("messages=")
    assert json.loads(text)["choices"][0]["message"]["content"] == "Yes."
    sent = upstream.bodies()[-1]
    assert sum(map(count_tokens, sent["messages"])) <= BUDGET
    assert (sent["seed"], sent["messages"][-1]) == (7, TASK)
    short = {"model": "m", "messages": [SYSTEM, TASK]}
    assert "adapter-shortened" not in post(url, CHAT, short)[0]
    assert upstream.bodies()[-1] == short


def test_the_budget_may_be_the_context_size_of_the_server():
    """llama.cpp reports it; a server that does not is sent everything."""
    props = {
        "default_generation_settings": {"n_ctx": BUDGET},
        "chat_template": "{{ messages }}",
        "model_path": "q.gguf",
    }
    for known in (True, False):
        with ScriptedServer() as upstream:
            if known:
                upstream.on("/props", as_json(200, props, server="llama.cpp"))
            upstream.on(CHAT, as_json(200, completion("Yes.")))
            with serving(upstream.url, "--context-budget", "auto", "--prompt", "words") as url:
                headers, _ = post(url, CHAT, as_chat(agent_requests(TURNS)[-1]))
            assert ("adapter-shortened" in headers) is known


def test_a_model_has_a_budget_of_its_own(tmp_path: Path):
    file = tmp_path / "serve.toml"
    file.write_text(f'context-budget = "50000"\n[models.small]\ncontext-budget = {BUDGET}\n', encoding="utf-8")
    messages = agent_requests(TURNS)[-1]
    with ScriptedServer() as upstream:
        upstream.on(CHAT, as_json(200, completion("Yes.")))
        with serving(upstream.url, "--config", str(file)) as url:
            for model, is_short in (("small", True), ("large", False)):
                headers, _ = post(url, CHAT, {**as_chat(messages), "model": model})
                assert ("adapter-shortened" in headers) is is_short


@pytest.mark.parametrize("tools", [TOOLS, None])
def test_wrap_shortens_in_the_client(scripted, tools):
    scripted.on(CHAT, as_json(200, completion("Yes.")))
    messages: Any = agent_requests(TURNS)[-1]
    with connected(f"{scripted.url}/v1") as client:
        wrapped = adapter.wrap(client, context_budget=BUDGET)
        fields = {"tools": tools} if tools else {}
        answer = wrapped.chat.completions.with_raw_response.create(model="qwen3", messages=messages, **fields)
    assert answer.headers["adapter-shortened"].startswith("results=")
    assert answer.parse().choices[0].message.content == "Yes."
    assert sum(map(count_tokens, scripted.bodies()[-1]["messages"])) <= BUDGET


@pytest.mark.parametrize("wrong", [0, "many", 12.5, True])
def test_a_wrong_budget_names_the_values(scripted, wrong):
    client = openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="k")
    with client, pytest.raises(UsageError, match=r"context_budget must be .* 'auto'"):
        adapter.wrap(client, context_budget=wrong)


def test_real_llama_cpp_answers_a_conversation_that_it_refuses_alone(real_weights):
    """Its prompt cache is used for the next request, because the cuts are the same."""
    from adapter.backends.in_process_llama_cpp import EmbeddedServer

    messages, later = agent_requests(8, result=LINES[:500])[-2:]
    fields = {"max_tokens": 4, "temperature": 0}
    with EmbeddedServer(real_weights, context_size=1_280) as engine:
        root = engine.endpoint.root
        with serving(root, "--guardrails", "off", "--guide", "off") as url:
            assert send(url, CHAT, as_chat(messages) | fields)[0] == 400
        with serving(root, "--guardrails", "off", "--guide", "off", "--context-budget", "auto") as url:
            headers, _ = post(url, CHAT, as_chat(messages) | fields)
            assert headers["adapter-shortened"].startswith("results=")
            again, text = post(url, CHAT, as_chat(later) | fields)
    assert again["adapter-shortened"] == headers["adapter-shortened"]
    usage = json.loads(text)["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] / 3
