"""The wrapped client treats the model server as `adapter serve` does: budgets, rejected fields and rejected tools."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import openai
import pytest

from adapter import wrap
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.token_budgets import Budgets
from adapter.protocols.translation_options import TranslationOptions, build_options
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, Reply, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving_here

Ask: TypeAlias = Callable[..., Any]
"""Sends a chat completion, and returns the message."""

REFUSED_BUDGET = as_error(400, "thinking_token_budget is set but reasoning_config is not configured.")
REFUSED_TOOLS = as_error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
WORDS = "I could read it, or I could not. "

by_every_way = pytest.mark.parametrize("way", ["serve", "wrap", "wrap async"])


@contextmanager
def opened(way: str, upstream: str, profile: str = "none", **settings: Any) -> Iterator[Ask]:
    settings = {"prompt": "words", **settings}  # a template would be probed with requests
    if way == "serve":
        options = build_options(limits=RetryPolicy(), **settings)
        with serving_here(upstream, options=options, profile=profile) as url, connected(f"{url}/v1") as client:
            yield lambda **fields: join(client.chat.completions.create(model="m", messages=ASK, **fields))
    elif way == "wrap":
        with connected(f"{upstream}/v1") as client:
            wrapped = wrap(client, profile=profile, **settings)
            yield lambda **fields: join(wrapped.chat.completions.create(model="m", messages=ASK, **fields))
    else:
        async_client = openai.AsyncOpenAI(base_url=f"{upstream}/v1", api_key="k", max_retries=0)
        wrapped_async = wrap(async_client, profile=profile, **settings)

        async def ask(**fields: Any) -> Any:
            answer = await wrapped_async.chat.completions.create(model="m", messages=ASK, **fields)
            return join([chunk async for chunk in answer] if fields.get("stream") else answer)

        with asyncio.Runner() as runner:
            yield lambda **fields: runner.run(ask(**fields))
            runner.run(async_client.close())


def join(answer: Any) -> Any:
    """Return content, reasoning and the names of the called functions of a completion, or of its chunks."""
    chunks = [answer] if hasattr(answer, "usage") and hasattr(answer.choices[0], "message") else list(answer)
    parts = [getattr(choice, "message", None) or choice.delta for chunk in chunks for choice in chunk.choices]
    content = "".join(part.content or "" for part in parts)
    reasoning = "".join(getattr(part, "reasoning_content", None) or "" for part in parts)
    return (
        content,
        reasoning,
        [call.function.name for part in parts for call in part.tool_calls or () if call.function.name],
    )


def write_call(stream: bool) -> Any:
    return as_stream(*map(delta, CALL), delta(finish_reason="stop")) if stream else as_json(200, completion(CALL))


@pytest.fixture
def vllm(scripted: ScriptedServer) -> ScriptedServer:
    return scripted.on("/version", as_json(200, {"version": "0.31.0"}))


@pytest.fixture
def native_profile(tmp_path: Path) -> str:
    path = tmp_path / "native.toml"
    path.write_text('[model]\nname = "m"\nserver = "vllm"\n[use]\nnative = true\n')
    return str(path)


def reason_for(words: int) -> Iterator[dict[str, Any]]:
    yield delta("<think>\n")
    for number in range(words):
        yield delta(f"{number}: {WORDS}")


@by_every_way
@streamed_and_whole
def test_vllm_gets_the_budget_in_its_own_field(vllm, way, stream):
    vllm.on(CHAT, write_call(stream))
    with opened(way, vllm.url, reasoning_budget=300) as ask:
        assert ask(tools=TOOLS, stream=stream)[2] == ["read_file"]
    (body,) = vllm.bodies()
    assert body["thinking_token_budget"] == 300
    assert "reasoning_budget_tokens" not in body


@by_every_way
@streamed_and_whole
def test_rejected_budget_is_left_out_from_then_on(vllm, way, stream):
    vllm.on(CHAT, REFUSED_BUDGET, write_call(stream))
    with opened(way, vllm.url, reasoning_budget=300) as ask:
        for _ in range(2):
            assert ask(tools=TOOLS, stream=stream)[2] == ["read_file"]
    assert [body.get("thinking_token_budget") for body in vllm.bodies()] == [300, None, None]


@by_every_way
@pytest.mark.parametrize(("refuses", "is_cut"), [(True, True), (False, False)], ids=["rejected", "accepted"])
def test_reasoning_has_a_margin_only_while_the_server_limits_it(vllm, way, refuses, is_cut):
    """The reasoning takes 1.25 times the budget, which is more than the server would allow."""
    reasoning = as_stream(*reason_for(28), delta("</think>\n"), *map(delta, CALL), delta(finish_reason="stop"))
    vllm.on(CHAT, *([REFUSED_BUDGET] if refuses else []), reasoning, *([write_call(True)] if is_cut else []))
    with opened(way, vllm.url, reasoning_budget=200) as ask:
        _, text, calls = ask(tools=TOOLS, stream=True)
    assert calls == ["read_file"]
    assert (f"27: {WORDS.strip()}" in text) is not is_cut


@by_every_way
def test_budget_also_limits_answers_without_tools(way):
    def answer(body: Any) -> Iterator[dict[str, Any]]:
        if body["messages"][-1]["role"] == "assistant":
            yield delta("Done.")
        else:
            yield from reason_for(2_000)
        yield delta(finish_reason="stop")

    with LiveUpstream(answer) as upstream, opened(way, upstream.url, reasoning_budget=200) as ask:
        content, reasoning, _ = ask(stream=True)
    assert content.strip() == "Done."
    assert "100: I could" not in reasoning


@by_every_way
@streamed_and_whole
def test_rejected_tools_move_into_the_prompt_from_then_on(vllm, native_profile, way, stream):
    vllm.on(CHAT, REFUSED_TOOLS, write_call(stream))
    with opened(way, vllm.url, native_profile) as ask:
        for _ in range(2):
            assert ask(tools=TOOLS, stream=stream)[2] == ["read_file"]
    assert ["tools" in body for body in vllm.bodies()] == [True, False, False]


@by_every_way
@streamed_and_whole
def test_a_budget_and_tools_can_both_be_rejected(vllm, native_profile, way, stream):
    vllm.on(CHAT, REFUSED_BUDGET, REFUSED_TOOLS, REFUSED_BUDGET, write_call(stream))
    with opened(way, vllm.url, native_profile, reasoning_budget=300) as ask:
        assert ask(tools=TOOLS, stream=stream)[2] == ["read_file"]


@by_every_way
@streamed_and_whole
def test_other_errors_stay_errors(vllm, native_profile, way, stream):
    vllm.on(CHAT, as_error(400, "the moon is full"))
    error = pytest.raises(openai.BadRequestError, match="the moon is full")
    with opened(way, vllm.url, native_profile, reasoning_budget=300) as ask, error:
        ask(tools=TOOLS, stream=stream)
    assert len(vllm.bodies()) == 1


@by_every_way
def test_a_field_that_stays_rejected_is_an_error(vllm, way):
    """A server whose error names the field even without it is not asked forever."""
    vllm.on(CHAT, REFUSED_BUDGET)
    error = pytest.raises(openai.BadRequestError, match="reasoning_config")
    with opened(way, vllm.url, reasoning_budget=300) as ask, error:
        ask(tools=TOOLS)
    assert len(vllm.bodies()) == 2


@by_every_way
@streamed_and_whole
@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(502, b"<html>bad gateway</html>", "text/html"), "the model server returned 502: bad gateway"),
        (Reply(201, b"", "text/plain"), "the model server returned 201"),
    ],
    ids=["page", "status"],
)
def test_an_answer_that_is_no_completion_is_an_error(scripted, way, stream, reply, message):
    scripted.on(CHAT, reply)
    error = pytest.raises(openai.InternalServerError, match=message)
    with opened(way, scripted.url) as ask, error:
        ask(tools=TOOLS, stream=stream)


def test_llama_cpps_completion_endpoint_does_not_limit_the_reasoning():
    """A lazy grammar needs that endpoint, so the budget has no margin."""
    options = TranslationOptions(kind="llama.cpp", budgets=Budgets(reasoning=100))
    request = translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, options)
    assert request.reasoning_limit == 150
    assert replace(request, body={**request.body, "grammar_lazy": True}).reasoning_limit == 100


@by_every_way
def test_an_empty_list_of_tools_is_left_out(vllm, way):
    """vLLM rejects it."""
    vllm.on(CHAT, as_json(200, completion("Hi.")))
    with opened(way, vllm.url) as ask:
        assert ask(tools=[])[0] == "Hi."
    assert "tools" not in vllm.bodies()[0]


@pytest.mark.parametrize("way", ["wrap", "wrap async"])
def test_a_server_that_starts_late_is_recognized(way):
    """Its kind is looked up again for the next request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with opened(way, f"http://127.0.0.1:{port}", reasoning_budget=300) as ask:
        with pytest.raises(openai.APIConnectionError):
            ask(tools=TOOLS)
        with ScriptedServer(port) as upstream:
            upstream.on("/version", as_json(200, {"version": "0.31.0"})).on(CHAT, write_call(False))
            assert ask(tools=TOOLS)[2] == ["read_file"]
    assert upstream.bodies()[0]["thinking_token_budget"] == 300


@by_every_way
@streamed_and_whole
def test_reasoning_opened_by_the_prompt_is_split_off(scripted, way, stream):
    """By the template of llama.cpp; a call drafted in the reasoning is not a call."""
    template = "{{ messages }}<|im_start|>assistant\n<think>\n"
    props = {"default_generation_settings": {}, "chat_template": template, "model_path": "/models/thinker.gguf"}
    rendered = "<|im_start|>user\ngeneration prompt?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    scripted.on("/props", as_json(200, props, server="llama.cpp"))
    scripted.on("/apply-template", as_json(200, {"prompt": rendered}))
    text = f"Maybe {CALL}?\n</think>\nI look."
    events = (*map(delta, text), delta(finish_reason="stop"))
    scripted.on(CHAT, as_stream(*events) if stream else as_json(200, completion(text)))
    with opened(way, scripted.url, prompt="auto") as ask:
        assert ask(tools=TOOLS, stream=stream) == ("I look.", f"Maybe {CALL}?", [])
    assert scripted.bodies()[-1]["reasoning_format"] == "none"
