"""The openai SDK's own clients, wrapped, in front of a server that only knows text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from adapter import wrap
from adapter.core.errors import UsageError
from adapter.integrations.pytest import assert_calls
from tests.scripted_server import CHAT, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import connected, streamed_and_whole

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
ASK: list[Any] = [{"role": "user", "content": "Read a.py"}]
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'


@pytest.fixture
def client(scripted: ScriptedServer) -> Iterator[openai.OpenAI]:
    with connected(f"{scripted.url}/v1") as client:
        yield client


def completion(content: str, finish_reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 1795255059,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }


def test_a_call_comes_back_as_a_tool_call(client, scripted):
    """The server sees no tools; the client sees nothing else."""
    scripted.on(CHAT, as_json(200, completion(f"I look.\n{CALL}")))
    answer = wrap(client).chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I look."
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("read_file", {"path": "a.py"})
    assert answer.usage
    assert answer.usage.total_tokens == 7
    (body,) = scripted.bodies()
    assert not body.keys() & {"tools", "tool_choice", "parallel_tool_calls"}
    assert "read_file" in body["messages"][0]["content"]


def test_the_streaming_helper_works(client, scripted):
    """The SDK's helper joins our chunks to the same message."""
    pieces = ["I look.\n", *CALL]
    scripted.on(CHAT, as_stream(*map(delta, pieces), delta(finish_reason="stop")))
    with wrap(client).chat.completions.stream(model="qwen3", messages=ASK, tools=TOOLS) as stream:
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("read_file", '{"path": "a.py"}')
    assert final.choices[0].message.content == "I look."
    assert final.choices[0].finish_reason == "tool_calls"


def test_the_async_client_streams(scripted):
    """AsyncOpenAI likewise."""
    scripted.on(CHAT, as_stream(*map(delta, CALL), delta(finish_reason="stop")))

    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as client:
            stream = await wrap(client).chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, stream=True)
            return [chunk async for chunk in stream]

    chunks = asyncio.run(ask())
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [call.function.name for call in calls] == ["read_file"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_request_without_tools_passes_through(client, scripted):
    """Also its response: text that looks like a call stays text."""
    scripted.on(CHAT, as_json(200, completion(CALL)))
    answer = wrap(client).chat.completions.create(model="qwen3", messages=ASK)
    assert answer.choices[0].message.content == CALL
    assert scripted.bodies() == [{"model": "qwen3", "messages": ASK}]


def test_the_servers_errors_are_the_sdks_own(client, scripted):
    """404 is NotFoundError with the server's words."""
    scripted.on(CHAT, as_error(404, "model 'x' not found", "not_found_error"))
    with pytest.raises(openai.NotFoundError, match="model 'x' not found"):
        wrap(client).chat.completions.create(model="x", messages=ASK, tools=TOOLS)


def test_invalid_request_is_rejected_before_it_is_sent(client, scripted):
    """As OpenAI does: 400, with the field at fault."""
    with pytest.raises(openai.BadRequestError, match="'delete_file'") as caught:
        wrap(client).chat.completions.create(
            model="m", messages=ASK, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "delete_file"}}
        )
    assert caught.value.param == "tool_choice"
    assert scripted.bodies() == []


@streamed_and_whole
def test_a_server_that_dies_in_a_call_raises(client, scripted, stream):
    """No half call is ever handed on as one."""
    scripted.on(CHAT, as_stream(delta("I look.\n"), delta(CALL[:40]), done=False, cut=True))
    with pytest.raises(openai.APIError):
        list(wrap(client).chat.completions.create(model="m", messages=ASK, tools=TOOLS, stream=stream))


def test_original_client_is_unchanged(client, scripted):
    """Closing the copy does not close the original."""
    scripted.on(CHAT, as_json(200, completion(CALL)))
    wrap(client).close()
    assert client.chat.completions.create(model="m", messages=ASK).choices[0].message.content == CALL


class ReadFile(BaseModel):
    """Read a file."""

    path: str


def test_the_parsing_helpers_work(replayed):
    """A pydantic model as tool, with parsed arguments; also under its older name, and streamed. Real output."""
    client = replayed("tests/server/read_file.jsonl", constraint="required", grounded=True)
    asked: Any = {"model": "m", "messages": ASK, "tools": [openai.pydantic_function_tool(ReadFile)], "max_tokens": 100}
    for completions in (client.chat.completions, client.beta.chat.completions):
        answer = completions.parse(**asked)
        (found,) = answer.choices[0].message.tool_calls or []
        assert found.function.parsed_arguments == ReadFile(path="a.py")
    with client.chat.completions.stream(**asked) as stream:
        assert "tool_calls.function.arguments.done" in [event.type for event in stream]
        final = stream.get_final_completion()
    assert_calls(final, [("ReadFile", {"path": "a.py"})])
    (found,) = final.choices[0].message.tool_calls or []
    assert found.function.parsed_arguments == ReadFile(path="a.py")


def test_options_and_raw_answers_work(client, scripted):
    """Clients derived by the SDK stay wrapped; headers and status are the server's."""
    scripted.on(CHAT, as_json(200, completion(CALL)))
    fields: Any = {"model": "qwen3", "messages": ASK, "tools": TOOLS}
    wrapped = wrap(client)
    choice = wrapped.with_options(timeout=100).chat.completions.create(**fields).choices[0]
    assert choice.finish_reason == "tool_calls"
    raw = wrapped.chat.completions.with_raw_response.create(**fields)
    assert (raw.status_code, raw.headers["server"]) == (200, "test")
    assert raw.parse().choices[0].finish_reason == "tool_calls"
    with wrapped.chat.completions.with_streaming_response.create(**fields) as opened:
        assert json.loads(opened.read())["choices"][0]["finish_reason"] == "tool_calls"


def test_a_server_that_ignores_stream_is_streamed(client, scripted):
    """One JSON object instead of the requested stream."""
    scripted.on(CHAT, as_json(200, completion(CALL)))
    with wrap(client).chat.completions.stream(model="qwen3", messages=ASK, tools=TOOLS) as stream:
        assert stream.get_final_completion().choices[0].finish_reason == "tool_calls"


def test_only_openai_clients_can_be_wrapped():
    with pytest.raises(UsageError, match="got 'client'"):
        wrap("client")  # type: ignore[type-var]


def test_constraint_is_sent_to_the_server(client, scripted):
    """With `prefer` a model may only call or reply; a reply is content."""
    scripted.on("/props", as_json(200, {"default_generation_settings": {}}))
    said = '<tool_call>\n{"name": "reply", "arguments": {"text": "Nothing to do."}}\n</tool_call>'
    scripted.on(CHAT, as_json(200, completion(said)))
    answer = wrap(client, constraint="prefer").chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    assert answer.choices[0].message.content == "Nothing to do."
    assert not answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "stop"
    (body,) = scripted.bodies()
    assert "reply" in body["grammar"]
    assert "read_file" in body["grammar"]


def test_arguments_are_constrained_from_the_start_of_a_call(client, scripted):
    """As by `adapter serve`: llama.cpp applies such a grammar only at its completion endpoint."""
    scripted.on("/props", as_json(200, {"default_generation_settings": {}}))
    scripted.on("/apply-template", as_json(200, {"prompt": "Read a.py"}))
    scripted.on("/completion", as_json(200, {"content": CALL, "stop": True}))
    wrapped = wrap(client, constraint="arguments", prompt="words")
    answer = wrapped.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    assert answer.choices[0].finish_reason == "tool_calls"
    (body,) = scripted.bodies("/completion")
    assert body["grammar_lazy"] is True


def test_unknown_constraint_is_rejected_immediately(client):
    with pytest.raises(UsageError, match="expected auto, off, arguments, prefer, required"):
        wrap(client, constraint="always")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"retries": "2"}, {"max_tools": 0}, {"max_tools": "9"}])
def test_invalid_number_is_rejected_immediately(client, wrong):
    """Not with the first request that has tools."""
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} (?:must|cannot) be"):
        wrap(client, **wrong)
