"""The openai SDK's responses API, through `adapter serve` and wrapped, with a chat-only server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from adapter import wrap
from adapter.protocols import openai_responses_request
from adapter.protocols.answer_translation import StreamedExchange
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.openai_responses_stream import ResponsesWriter, build_answer_head
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.protocols.sse import encode_event
from adapter.protocols.translation_options import TranslationOptions
from tests.effort import examples
from tests.protocols.test_wire import PIECES, VALUES
from tests.scripted_server import CHAT, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_serve import scripted_answer
from tests.server.test_wrap import CALL

SECOND = CALL.replace("a.py", "b.py")
TOOLS: list[Any] = [
    {
        "type": "function",
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {"type": "web_search"},
]


@pytest.fixture(params=["served", "wrapped"])
def client(request: pytest.FixtureRequest, shared: tuple[ScriptedServer, str]) -> Iterator[openai.OpenAI]:
    upstream, url = shared
    base_url = url if request.param == "served" else f"{upstream.url}/v1"
    with connected(base_url) as client:
        yield client if request.param == "served" else wrap(client)


def ask(client: openai.OpenAI, stream: bool, **fields: Any) -> Any:
    """Return the response, assembled by the SDK if streamed."""
    fields = {"model": "qwen3", "input": "Read a.py", "tools": TOOLS, **fields}
    if not stream:
        return client.responses.create(**fields)
    with client.responses.stream(**fields) as events:
        for _ in events:
            pass
        return events.get_final_response()


@streamed_and_whole
def test_response_contains_items(client, upstream, stream):
    """Reasoning, text and calls in this order, buffered and streamed."""
    upstream.on(CHAT, scripted_answer(f"<think>Hm.</think>I look.\n{CALL}\n{SECOND}", "stop", stream))
    answer = ask(client, stream, parallel_tool_calls=True)
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call", "function_call"]
    thought, said, first, second = answer.output
    assert [part.text for part in thought.content] == ["Hm."]
    assert answer.output_text.strip() == "I look."
    assert said.role == "assistant"
    assert [(call.name, json.loads(call.arguments)) for call in (first, second)] == [
        ("read_file", {"path": "a.py"}),
        ("read_file", {"path": "b.py"}),
    ]
    assert first.call_id != second.call_id
    assert answer.status == "completed"
    assert len({item.id for item in answer.output}) == 4
    (body,) = upstream.bodies()
    assert not body.keys() & {"input", "tools", "parallel_tool_calls"}
    assert "web_search" not in body["messages"][0]["content"]


def test_conversation_is_sent_as_messages(client, upstream):
    """Text and calls of one turn become one message; results follow."""
    upstream.on(CHAT, scripted_answer("Done.", "stop", False))
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Read both."}, image]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path": "a.py"}'},
        {"type": "function_call", "call_id": "c2", "name": "read_file", "arguments": '{"path": "b.py"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "x = 1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "y = 2"}]},
    ]
    answer = ask(
        client, False, input=items, instructions="Be brief.", max_output_tokens=99, reasoning={"effort": "low"}
    )
    assert answer.output_text == "Done."
    (body,) = upstream.bodies()
    system, asked, called, results = body["messages"]
    assert system["content"].startswith("Be brief.\n\n# Tools")
    assert [part["type"] for part in asked["content"]] == ["text", "image_url"]
    assert called == {"role": "assistant", "content": f"I look.\n{CALL}\n{SECOND}"}
    assert results["content"].count("<tool_response>") == 2
    assert (body["max_tokens"], body["reasoning_effort"]) == (99, "low")


@streamed_and_whole
def test_cut_answer_is_incomplete(client, upstream, stream):
    upstream.on(CHAT, scripted_answer(f"Far too lo{CALL[:30]}", "length", stream))
    if stream:  # the SDK's own helper knows no such end
        *_, last = client.responses.create(model="qwen3", input="Read a.py", tools=TOOLS, stream=True)
        assert last.type == "response.incomplete"
        answer = last.response
    else:
        answer = ask(client, False)
    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert [item.type for item in answer.output] == ["message"]


@streamed_and_whole
def test_named_tool_is_forced_and_usage_reported(client, upstream, stream):
    usage = {**delta(), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}
    events = as_stream(delta(CALL), delta(finish_reason="stop"), usage)
    upstream.on(CHAT, events if stream else scripted_answer(CALL, "stop", False))
    answer = ask(client, stream, tool_choice={"type": "function", "name": "read_file"})
    assert [item.type for item in answer.output] == ["function_call"]
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (5, 2, 7)


class Page(BaseModel):
    title: str


def test_structured_output_is_forwarded(client, upstream):
    """As the chat's response format; the SDK parses the answer."""
    upstream.on(CHAT, scripted_answer('{"title": "Adapter"}', "stop", False))
    answer = client.responses.parse(model="m", input="Which title?", text_format=Page)
    assert answer.output_parsed == Page(title="Adapter")
    form = upstream.bodies()[0]["response_format"]
    assert (form["type"], form["json_schema"]["name"]) == ("json_schema", "Page")


@streamed_and_whole
def test_errors_raise_sdk_exceptions(client, upstream, stream):
    upstream.on(CHAT, as_error(404, "no model 'qwen3'"))
    with pytest.raises(openai.NotFoundError, match="no model 'qwen3'"):
        ask(client, stream)


def test_lost_upstream_raises(client, upstream):
    upstream.on(CHAT, as_stream(delta("I look.\n"), delta(CALL[:40]), done=False, cut=True))
    with pytest.raises(openai.APIError, match="in the middle of its answer"):
        ask(client, True)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"input": [{"type": "itm"}]}, "input[0]"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": 7}, "input"),
        ({"input": []}, "input"),
        ({"tool_choice": {"type": "function", "name": "read_fil"}}, "tool_choice"),
    ],
)
def test_unsupported_request_is_rejected(client, upstream, fields, param):
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as caught:
        ask(client, False, **fields)
    assert caught.value.param == param
    assert upstream.bodies() == []


def test_async_client_streams(upstream, shared):
    upstream.on(CHAT, scripted_answer(f"I look.\n{CALL}", "stop", True))

    async def run() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{shared[0].url}/v1", api_key="k", max_retries=0) as client:
            stream = await wrap(client).responses.create(model="m", input="Read a.py", tools=TOOLS, stream=True)
            return [event.type async for event in stream]

    kinds = asyncio.run(run())
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.function_call_arguments.done") == 1


@examples(60)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=6), streams_arguments=st.booleans())
def test_stream_opens_fills_and_closes_every_item(pieces, streams_arguments):
    """For any model text: sequence numbers have no gaps, and completed items equal the sum of their deltas."""
    asked = openai_responses_request.convert_to_openai(
        {"model": "m", "input": "Read a.py", "tools": TOOLS, "stream": True}
    )
    request = translate_chat_request(asked, TranslationOptions(stream_arguments=streams_arguments))
    streamed = StreamedExchange(request, 0, ResponsesWriter(build_answer_head({}, "resp_1", 0)))
    sent = b"".join(streamed.feed(encode_event(delta(piece))) for piece in [*pieces])
    sent += streamed.feed(encode_event(delta(finish_reason="stop"))) + streamed.close()
    events = [json.loads(line[6:]) for line in sent.decode().split("\n") if line.startswith("data: ")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    if events[-1]["type"] == "response.failed":
        return
    done: list[Any] = []
    open_item, text = None, ""
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert open_item is None
            open_item, text = event["item"]["id"], ""
            assert event["output_index"] == len(done)
        elif kind.endswith(".delta"):
            assert event["item_id"] == open_item
            text += event["delta"]
        elif kind in ("response.output_text.done", "response.reasoning_text.done"):
            assert event["text"] == text
        elif kind == "response.function_call_arguments.done":
            assert event["arguments"] == text
        elif kind == "response.output_item.done":
            assert event["item"]["id"] == open_item
            done.append(event["item"])
            open_item = None
    assert events[-1]["response"]["output"] == done


@given(
    body=st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("input", "tools", "text", "reasoning", "tool_choice"), VALUES)
    )
)
def test_any_body_is_accepted_or_rejected(body):
    try:
        translate_chat_request(openai_responses_request.convert_to_openai(body), TranslationOptions())
    except RequestError as error:
        build_error_body(error)


def test_failed_stream_sends_both_error_events():
    """``error``, which the SDK raises, and ``response.failed``, for which codex waits."""
    asked = openai_responses_request.convert_to_openai({"input": "Hi", "stream": True})
    streamed = StreamedExchange(
        translate_chat_request(asked, TranslationOptions()), 0, ResponsesWriter({"id": "resp_1"})
    )
    sent = streamed.feed(encode_event({"error": {"message": "out of memory"}})) + streamed.close()
    *_, error, last = [json.loads(line[6:]) for line in sent.decode().split("\n") if line.startswith("data: ")]
    assert (error["type"], error["message"], error["error"]["message"]) == ("error", "out of memory", "out of memory")
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"] == {"code": "server_error", "message": "out of memory"}


def test_text_only_response_is_plain(client, upstream):
    """Without tools it is a plain chat."""
    upstream.on(CHAT, as_json(200, {"choices": [{"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}]}))
    assert client.responses.create(model="m", input="Hi").output_text == "Hi."
    assert upstream.bodies() == [{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}]


def test_compaction_is_refused_by_name(shared):
    """The model server would report a missing page."""
    client = openai.OpenAI(base_url=shared[1], api_key="k", max_retries=0)
    with client, pytest.raises(openai.NotFoundError, match="cannot compact"):
        client.post("/responses/compact", cast_to=object, body={"model": "m", "input": "Hi"})
