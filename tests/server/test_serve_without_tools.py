"""Chats without tools: reasoning and channels of known models are removed from the text, everything else passes
through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from adapter import wrap
from tests.scripted_server import CHAT, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_serve import scripted_answer
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

HARMONY = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>"


@pytest.fixture(params=["served", "wrapped"])
def client(request: pytest.FixtureRequest, shared: tuple[ScriptedServer, str]) -> Iterator[openai.OpenAI]:
    upstream, url = shared
    base_url = url if request.param == "served" else f"{upstream.url}/v1"
    with connected(base_url) as client:
        yield client if request.param == "served" else wrap(client)


def ask(client: openai.OpenAI, stream: bool, **fields: Any) -> tuple[str, str, list[Any]]:
    """Return content, reasoning and logprobs."""
    answer: Any = client.chat.completions.create(messages=ASK, stream=stream, **fields)
    chunks = list(answer) if stream else [answer]
    choices = [choice for chunk in chunks for choice in chunk.choices]
    parts = [choice.delta if stream else choice.message for choice in choices]
    logprobs = [token for choice in choices if choice.logprobs for token in choice.logprobs.content]
    text, thought = (
        "".join(getattr(part, name, None) or "" for part in parts) for name in ("content", "reasoning_content")
    )
    return text, thought, logprobs


@streamed_and_whole
def test_gpt_oss_channels_are_removed(client, upstream, stream):
    upstream.on(CHAT, scripted_answer(HARMONY.format("Blue."), "stop", stream))
    assert ask(client, stream, model="gpt-oss-20b") == ("Blue.", "Hm.", [])
    assert upstream.bodies()[0]["messages"] == ASK


@streamed_and_whole
def test_gpt_oss_call_of_unknown_tool_is_removed(client, upstream, stream):
    text = '<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{"path": "."}<|call|>'
    upstream.on(CHAT, scripted_answer(text, "stop", stream))
    said, *_ = ask(client, stream, model="gpt-oss-20b")
    assert "<|" not in said
    assert '{"path": "."}' in said


def test_gpt_oss_structured_output_is_parsed(client, upstream):
    class Page(BaseModel):
        title: str

    upstream.on(CHAT, as_json(200, completion(HARMONY.format('{"title": "A"}'))))
    answer = client.chat.completions.parse(model="gpt-oss-20b", messages=ASK, response_format=Page)
    assert answer.choices[0].message.parsed == Page(title="A")
    assert upstream.bodies()[0]["response_format"]["type"] == "json_schema"


@streamed_and_whole
def test_reasoning_is_split_off_without_tools(client, upstream, stream):
    upstream.on(CHAT, scripted_answer("<think>Hm.</think>\n\nBlue.", "stop", stream))
    assert ask(client, stream, model="qwen3") == ("Blue.", "Hm.", [])


@streamed_and_whole
def test_other_models_text_is_unchanged(client, upstream, stream):
    """Byte for byte, as the model is unknown."""
    upstream.on(CHAT, scripted_answer("<think>Hm.</think>Blue.", "stop", stream))
    assert ask(client, stream, model="somebody") == ("<think>Hm.</think>Blue.", "", [])


def test_llama_cpp_reasoning_is_not_parsed_again():
    """So its answers pass through, except for gpt-oss."""
    server = ScriptedServer().on("/props", as_json(200, {"model_path": "/m/a.gguf"}, server="llama.cpp"))
    server.on("/v1/models", as_json(200, {"data": [{"id": "m", "owned_by": "llamacpp"}]}, server="llama.cpp"))
    server.on(CHAT, as_json(200, completion("<think>Hm.</think>Blue."), server="llama.cpp"))
    with server, serving(server.url) as url, connected(url) as client:
        assert ask(client, False, model="qwen3")[0] == "<think>Hm.</think>Blue."
        assert ask(client, False, model="gpt-oss-20b")[:2] == ("Blue.", "Hm.")


def tokens(*texts: str) -> list[dict[str, Any]]:
    return [{"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []} for text in texts]


PIECES = ["<think>", "Hm", "</think>", "I", " look", ".", "\n<tool_call>", CALL[11:]]


@streamed_and_whole
def test_logprobs_are_aligned_with_content(client, upstream, stream):
    """Also with tools: logprobs of reasoning, markers and calls are removed."""
    if stream:
        events = [delta(piece) for piece in PIECES]
        for event, piece in zip(events, PIECES, strict=True):
            event["choices"][0]["logprobs"] = {"content": tokens(piece)}
        upstream.on(CHAT, as_stream(*events, delta(finish_reason="stop")))
    else:
        whole = completion("".join(PIECES))
        whole["choices"][0]["logprobs"] = {"content": tokens(*PIECES)}
        upstream.on(CHAT, as_json(200, whole))
    text, _, logprobs = ask(client, stream, model="m", tools=TOOLS, logprobs=True)
    assert text == "I look."
    assert [token.token for token in logprobs] == ["I", " look", "."]
    assert upstream.bodies()[0]["logprobs"] is True


def test_repeated_function_calls_get_distinct_ids():
    """As sent by older clients, without ids: the second result belongs to the second call."""
    from adapter.protocols.custom_and_legacy_tools import convert_tools_to_functions

    call = {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}}
    said = {"role": "function", "name": "ls", "content": "a"}
    body, _ = convert_tools_to_functions({"messages": [*ASK, call, said, call, said], "functions": [{"name": "ls"}]})
    first, result, second, last = body["messages"][1:]
    assert first["tool_calls"][0]["id"] == result["tool_call_id"] != last["tool_call_id"]
    assert second["tool_calls"][0]["id"] == last["tool_call_id"]
    assert json.dumps(body)
