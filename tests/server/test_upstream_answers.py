"""Reported answers of model servers, from `fixtures/upstream_answers.toml`, in every API, streamed and whole."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import openai
import pytest

from adapter import wrap
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.translation_options import build_options
from tests import answer_shapes
from tests.http_requests import send
from tests.scripted_server import CHAT, Reply, ScriptedServer, as_stream, delta
from tests.server.clients import connected
from tests.server.test_public_reports import REQUESTS, filled
from tests.serving import serving_here

pytestmark = pytest.mark.usefixtures("anthropic")

CASES = tomllib.loads((Path(__file__).parents[2] / "fixtures/upstream_answers.toml").read_text("utf-8"))["case"]
HEAD = {"id": "chatcmpl-1", "created": 1795255059, "model": "m"}
APIS = ("chat", "messages", "responses", "ollama")


@pytest.fixture(scope="module", params=["described in the prompt", "native"])
def url(request: pytest.FixtureRequest) -> Iterator[tuple[ScriptedServer, str]]:
    """Serve with the tools in the prompt, or sent to a model server that parses the calls."""
    options = build_options(limits=RetryPolicy(), prompt="words", format="hermes", native=request.param == "native")
    with ScriptedServer() as upstream, serving_here(upstream.url, options=options) as address:
        yield upstream, address


def load(text: str) -> Any:
    for name in ("{CALL2}", "{CALL}"):
        text = text.replace(name, json.dumps(filled(name))[1:-1])
    return json.loads(text)


def reply_of(case: dict[str, Any], *, stream: bool) -> Reply:
    if not stream:
        return Reply(200, json.dumps({**HEAD, "object": "chat.completion"} | load(case["whole"])).encode())
    events = [load(each) for each in case["events"]]
    streamed = {**HEAD, "object": "chat.completion.chunk"}
    return as_stream(*(streamed | each if {"choices", "error"} & each.keys() else delta(**each) for each in events))


def wanted(case: dict[str, Any]) -> dict[str, Any]:
    finish = case.get("finish", "tool_calls" if "calls" in case else "stop")
    found = {"text": case.get("text", ""), "reasoning": case.get("reasoning", ""), "finish": finish}
    found["calls"] = [[name, json.loads(arguments)] for name, arguments in case.get("calls", ())]
    return found


def read_chat(answer: list[Any]) -> dict[str, Any]:
    """Return the meaning of a completion or of the chunks of one."""
    choices = [choice for each in answer for choice in each["choices"]]
    parts = [each.get("message") or each["delta"] for each in choices]
    calls: list[list[Any]] = []
    for call in (call for part in parts for call in part.get("tool_calls") or ()):
        function = call["function"]
        if "id" in call:
            assert call.get("index", len(calls)) == len(calls)
            calls.append([function["name"], ""])
        calls[-1][1] += function["arguments"]
    return {
        "text": "".join(part.get("content") or "" for part in parts),
        "reasoning": "".join(part.get("reasoning_content") or "" for part in parts),
        "calls": [[name, json.loads(arguments)] for name, arguments in calls],
        "finish": next(each["finish_reason"] for each in choices if each["finish_reason"]),
        "tokens": [[u["prompt_tokens"], u["completion_tokens"]] for each in answer if (u := each.get("usage"))],
    }


def read_messages(answer: list[Any]) -> dict[str, Any]:
    blocks = answer[0].get("content", [])
    if answer[0]["type"] != "message":
        blocks = [each["content_block"] for each in answer if each["type"] == "content_block_start"]
        for event in (each for each in answer if each["type"] == "content_block_delta"):
            block, added = blocks[event["index"]], event["delta"]
            assert added["type"] in _FILLED[block["type"]]
            for key in ("text", "thinking", "partial_json"):
                block[key] = block.get(key, "") + added.get(key, "")
        for block in (each for each in blocks if each["type"] == "tool_use"):
            block["input"] = json.loads(block["partial_json"] or "{}")
    ended = answer[0] if answer[0]["type"] == "message" else answer[-2] | answer[-2]["delta"]
    reasons = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
    usage = ended["usage"]
    return {
        "text": "".join(each.get("text", "") for each in blocks if each["type"] == "text"),
        "reasoning": "".join(each["thinking"] for each in blocks if each["type"] == "thinking"),
        "calls": [[each["name"], each["input"]] for each in blocks if each["type"] == "tool_use"],
        "finish": reasons[ended["stop_reason"]],
        "tokens": [[usage["input_tokens"], usage["output_tokens"]]],
    }


_FILLED = {
    "text": ("text_delta",),
    "thinking": ("thinking_delta", "signature_delta"),
    "tool_use": ("input_json_delta",),
}


def read_responses(answer: list[Any]) -> dict[str, Any]:
    response = answer[-1].get("response") or answer[-1]
    content = [(item["type"], part["text"]) for item in response["output"] for part in item.get("content", ())]
    calls = [[each["name"], json.loads(each["arguments"])] for each in response["output"] if "arguments" in each]
    reason = "length" if response["status"] == "incomplete" else "tool_calls" if calls else "stop"
    usage = response["usage"]
    return {
        "text": "".join(text for kind, text in content if kind == "message"),
        "reasoning": "".join(text for kind, text in content if kind == "reasoning"),
        "calls": calls,
        "finish": reason,
        "tokens": [[usage["input_tokens"], usage["output_tokens"]]] if usage else [],
    }


def read_ollama(answer: list[Any]) -> dict[str, Any]:
    messages = [each["message"] for each in answer]
    calls = [call["function"] for each in messages for call in each.get("tool_calls", ())]
    reason = answer[-1]["done_reason"]
    return {
        "text": "".join(each["content"] for each in messages),
        "reasoning": "".join(each.get("thinking", "") for each in messages),
        "calls": [[each["name"], each["arguments"]] for each in calls],
        "finish": "tool_calls" if calls and reason == "stop" else reason,
        "tokens": [[answer[-1]["prompt_eval_count"], answer[-1]["eval_count"]]],
    }


READERS = {"chat": read_chat, "messages": read_messages, "responses": read_responses, "ollama": read_ollama}


def check_shape(api: str, answer: list[Any], *, stream: bool) -> None:
    if api == "ollama":
        answer_shapes.check_ollama("/api/chat", answer)
    elif api == "chat" and stream:
        answer_shapes.check_chat_stream(answer, wants_usage=any("usage" in each for each in answer))
    elif api == "chat":
        answer_shapes.check_chat(answer[0])
    elif api == "messages":
        answer_shapes.check_message_stream(answer) if stream else answer_shapes.check_message(answer[0])
    else:
        answer_shapes.check_response_stream(answer) if stream else answer_shapes.check_response(answer[0])


def compare(found: dict[str, Any], case: dict[str, Any]) -> None:
    tokens = found.pop("tokens")
    assert found == wanted(case)
    if "tokens" in case:
        assert tokens == [case["tokens"]]


WAYS = [(case, stream) for case in CASES for stream in (True, False) if stream or "whole" in case]
IDS = [f"{case['name']}, {'streamed' if stream else 'whole'}" for case, stream in WAYS]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("case", "stream"), WAYS, ids=IDS)
def test_answer_in_every_api(url, case, stream, api):
    upstream, root = url
    path, body = REQUESTS[api]
    upstream.replies[CHAT].clear()
    upstream.on(CHAT, reply_of(case, stream=stream))
    options = {"stream_options": {"include_usage": True}} if api == "chat" and stream else {}
    status, _, text = send(root, path, {"model": "m", "stream": stream, **body, **options})
    if "error" in case:
        assert case["error"] in text
        assert status != 200 or '"error"' in text
        return
    assert status == 200, text
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: {", "{"))]
    answer = [json.loads(line) for line in lines]
    check_shape(api, answer, stream=stream)
    compare(READERS[api](answer), case)


@pytest.mark.parametrize(("case", "stream"), WAYS, ids=IDS)
def test_answer_of_a_wrapped_client(case, stream):
    with ScriptedServer() as upstream, connected(f"{upstream.url}/v1") as client:
        upstream.on(CHAT, reply_of(case, stream=stream))
        chat: Any = wrap(client, profile="none", prompt="words", format="hermes").chat.completions
        options = {"stream_options": {"include_usage": True}} if stream else {}
        with pytest.raises(openai.APIError, match=case["error"]) if "error" in case else nullcontext():
            answer = chat.create(model="m", stream=stream, **REQUESTS["chat"][1], **options)
            found = [each.model_dump(exclude_unset=True) for each in (answer if stream else [answer])]
    if "error" in case:
        return
    check_shape("chat", found, stream=stream)
    compare(read_chat(found), case)
