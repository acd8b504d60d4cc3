"""Retries of `adapter serve` and `wrap` over real HTTP: the client sees one answer and a notice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import openai
import pytest

from adapter import wrap
from tests.http_requests import send
from tests.scripted_server import CHAT, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import connected
from tests.server.test_public_reports import REQUESTS
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving_here

PROMISE = "Let me read the file:"
STEPS = {"adapter": {"steps": {"required": ["read_file"]}}}


@pytest.fixture(params=["serve", "wrap"])
def client(request: pytest.FixtureRequest, scripted: ScriptedServer) -> Iterator[openai.OpenAI]:
    if request.param == "wrap":
        with connected(f"{scripted.url}/v1") as plain:
            yield wrap(plain)
        return
    with serving_here(scripted.url) as url, connected(f"{url}/v1") as served:
        yield served


def said(text: str):
    return as_stream(*map(delta, text), delta(finish_reason="stop"))


def test_buffered_retry_sets_header(client, scripted):
    scripted.on(CHAT, as_json(200, completion(PROMISE)), as_json(200, completion(CALL)))
    raw = client.chat.completions.with_raw_response.create(model="qwen3", messages=ASK, tools=TOOLS)
    assert raw.headers["x-adapter-asked-again"] == "announced_call"
    (choice,) = raw.parse().choices
    assert choice.message.content == PROMISE
    assert choice.message.tool_calls[0].function.name == "read_file"
    assert [len(body["messages"]) for body in scripted.bodies()] == [2, 4]


def test_streamed_retry_is_reported_in_last_chunk(client, scripted):
    scripted.on(CHAT, said(PROMISE), said(CALL))
    stream = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, stream=True)
    *_, last = list(stream)
    assert last.choices[0].finish_reason == "tool_calls"
    assert last.model_extra["adapter"] == {"asked_again": ["announced_call"]}


def test_rejected_retry_returns_first_answer(client, scripted):
    """For example if it does not fit into the context."""
    scripted.on(CHAT, as_json(200, completion(PROMISE)), as_error(400, "exceeds the context size"))
    answer = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    assert answer.choices[0].message.content == PROMISE


def test_rejected_streamed_retry_returns_first_answer(client, scripted):
    scripted.on(CHAT, said(PROMISE), as_error(400, "exceeds the context size"))
    with client.chat.completions.stream(model="qwen3", messages=ASK, tools=TOOLS) as stream:
        final = stream.get_final_completion()
    assert (final.choices[0].message.content, final.choices[0].finish_reason) == (PROMISE, "stop")


def test_steps_are_read_from_extra_body(client, scripted):
    """From any SDK; the field is not forwarded."""
    scripted.on(CHAT, as_json(200, completion("It has 3 lines.")), as_json(200, completion(CALL)))
    answer = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, extra_body=STEPS)
    assert answer.choices[0].message.content is None
    assert answer.choices[0].message.tool_calls
    assert not any("adapter" in body for body in scripted.bodies())


def test_invalid_steps_return_400(client):
    wrong = {"adapter": {"steps": {"required": ["read"]}}}
    with pytest.raises(openai.BadRequestError, match=r"unknown tool .read. in steps"):
        client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, extra_body=wrong)


def test_async_client_gets_retried_answer(scripted):
    scripted.on(CHAT, said(PROMISE), said(CALL), said(PROMISE), as_error(400, "too long"))

    async def ask() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as plain:
            ends: list[str | None] = []
            for _ in range(2):
                async with wrap(plain).chat.completions.stream(model="qwen3", messages=ASK, tools=TOOLS) as stream:
                    ends.append((await stream.get_final_completion()).choices[0].finish_reason)
            return ends

    assert asyncio.run(ask()) == ["tool_calls", "stop"]


def test_wrap_accepts_guardrails(scripted, tmp_path):
    """Retries are in the recording."""
    scripted.on(CHAT, as_json(200, completion(PROMISE)), as_json(200, completion("")), as_json(200, completion(CALL)))
    record = tmp_path / "said.jsonl"
    with connected(f"{scripted.url}/v1") as plain:
        client = wrap(plain, guardrails="on,-announced_call", record=record)
        for _ in range(2):
            client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [line["guardrail"] for line in lines] == ["", "empty_answer", ""]


@pytest.mark.parametrize(
    ("api", "kind"),
    [("chat", "rate_limit_exceeded"), ("messages", "rate_limit_error"), ("responses", "rate_limit_exceeded")],
)
def test_rate_limit_after_keepalives_has_its_own_code(scripted, api, kind):
    """The status of the stream is 200 by then."""
    replies = [replace(as_error(429, "slow down"), headers=(("Retry-After", after),)) for after in ("0.6", "600")]
    scripted.on(CHAT, *replies)
    path, body = REQUESTS[api]
    with serving_here(scripted.url, keep_alive_s=0.1) as url:
        status, _, answer = send(url, path, {"model": "m", "stream": True, **body})
    assert (status, "ping" in answer) == (200, True)
    assert f'"{kind}"' in answer
