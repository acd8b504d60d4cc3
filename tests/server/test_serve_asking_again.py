"""`adapter serve` and `wrap` ask again over real HTTP: the client sees one answer, and hears that it was so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import openai
import pytest

from adapter import wrap
from tests.scripted_server import CHAT, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving_here

PROMISE = "Let me read the file:"
STEPS = {"adapter": {"steps": {"required": ["read_file"]}}}


@pytest.fixture(params=["serve", "wrap"])
def client(request: pytest.FixtureRequest, scripted: ScriptedServer) -> Iterator[openai.OpenAI]:
    if request.param == "wrap":
        with openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as plain:
            yield wrap(plain)
        return
    with serving_here(scripted.url) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as served:
        yield served


def said(text: str):
    return as_stream(*map(delta, text), delta(finish_reason="stop"))


def test_a_whole_answer_and_its_header(client, scripted):
    scripted.on(CHAT, as_json(200, completion(PROMISE)), as_json(200, completion(CALL)))
    raw = client.chat.completions.with_raw_response.create(model="qwen3", messages=ASK, tools=TOOLS)
    assert raw.headers["x-adapter-asked-again"] == "announced_call"
    (choice,) = raw.parse().choices
    assert choice.message.content == PROMISE
    assert choice.message.tool_calls[0].function.name == "read_file"
    assert [len(body["messages"]) for body in scripted.bodies()] == [2, 4]


def test_a_streamed_answer_says_so_at_its_end(client, scripted):
    scripted.on(CHAT, said(PROMISE), said(CALL))
    stream = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, stream=True)
    *_, last = list(stream)
    assert last.choices[0].finish_reason == "tool_calls"
    assert last.model_extra["adapter"] == {"asked_again": ["announced_call"]}


def test_a_second_request_that_is_refused_leaves_the_first_answer(client, scripted):
    """As where it does not fit into the context any more."""
    scripted.on(CHAT, as_json(200, completion(PROMISE)), as_error(400, "exceeds the context size"))
    answer = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    assert answer.choices[0].message.content == PROMISE


def test_a_second_stream_that_is_refused_leaves_the_first_answer(client, scripted):
    scripted.on(CHAT, said(PROMISE), as_error(400, "exceeds the context size"))
    with client.chat.completions.stream(model="qwen3", messages=ASK, tools=TOOLS) as stream:
        final = stream.get_final_completion()
    assert (final.choices[0].message.content, final.choices[0].finish_reason) == (PROMISE, "stop")


def test_steps_come_by_extra_body(client, scripted):
    """Of any SDK; the model server never sees the field."""
    scripted.on(CHAT, as_json(200, completion("It has 3 lines.")), as_json(200, completion(CALL)))
    answer = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, extra_body=STEPS)
    assert answer.choices[0].message.content is None
    assert answer.choices[0].message.tool_calls
    assert not any("adapter" in body for body in scripted.bodies())


def test_wrong_steps_are_a_bad_request(client):
    wrong = {"adapter": {"steps": {"required": ["read"]}}}
    with pytest.raises(openai.BadRequestError, match="unknown tool .read. in steps"):
        client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, extra_body=wrong)


def test_an_async_client_is_asked_again_for_as_well(scripted):
    scripted.on(CHAT, said(PROMISE), said(CALL), said(PROMISE), as_error(400, "too long"))

    async def ask() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as plain:
            ends: list[str | None] = []
            for _ in range(2):
                async with wrap(plain).chat.completions.stream(model="qwen3", messages=ASK, tools=TOOLS) as stream:
                    ends.append((await stream.get_final_completion()).choices[0].finish_reason)
            return ends

    assert asyncio.run(ask()) == ["tool_calls", "stop"]


def test_guardrails_of_wrap_can_be_chosen(scripted, tmp_path):
    """And what was asked again is in the record."""
    scripted.on(CHAT, as_json(200, completion(PROMISE)), as_json(200, completion("")), as_json(200, completion(CALL)))
    record = tmp_path / "said.jsonl"
    with openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as plain:
        client = wrap(plain, guardrails="on,-announced_call", record=record)
        for _ in range(2):
            client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [line["guardrail"] for line in lines] == ["", "empty_answer", ""]
