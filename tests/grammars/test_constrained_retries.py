"""Invalid and repeated calls: the retry sent to the server, and the client's response."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import openai
import pytest

from adapter import wrap
from adapter.backends.chat_client import build_constraint_fields
from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.conversation.guardrails.verdicts import Retry
from adapter.parsing.formats.hermes import encode_call
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.openai_chat_response import BufferedCompletion, StreamedCompletion
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, TranslationOptions
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.engines import BYTES, ONLY_ASCII, write_random_gguf
from tests.scripted_server import CHAT, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected
from tests.serving import serving

READ = {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
READ["parameters"]["required"] = ["path"]  # type: ignore[index]
COUNT = {"name": "count", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
TOOLS: list[Any] = [{"type": "function", "function": each} for each in (READ, COUNT)]
ASK: list[Any] = [{"role": "user", "content": "Read a.py"}]
GOOD = encode_call("read_file", {"path": "a.py"})
CALLED = [
    *ASK,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "print(1)"},
]


def enforce(tools: ToolSet, choices: Any = None, **options: Any) -> dict[str, Any]:
    return build_constraint_fields("llama.cpp", tools, choices, **options)


def request(constraint: Any, messages: list[Any] = ASK, **fields: Any) -> TranslatedRequest:
    """Disable guardrails, so that only broken calls of the constraint are retried."""
    body = {"model": "m", "messages": messages, "tools": TOOLS, **fields}
    asking = RetryPolicy(frozenset(), retries=1)
    return translate_chat_request(
        body, TranslationOptions(constraints=ConstraintSettings(mode=constraint, enforce=enforce), retry_policy=asking)
    )


def whole(answered: TranslatedRequest, *texts: str) -> tuple[dict[str, Any], int]:
    """Return the client's message if the server answers with these texts in turn, and the number of requests."""
    exchange = BufferedCompletion(answered)
    for asked, text in enumerate(texts, 1):
        message = {"role": "assistant", "content": text}
        result = exchange.feed({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        if isinstance(result, dict):
            return result["choices"][0]["message"], asked
        assert "grammar" in result.body
    raise AssertionError("it wants still more")


def streamed(answered: TranslatedRequest, *texts: str) -> dict[str, Any]:
    """As `whole`, in pieces of three characters."""
    answer, chunks = StreamedCompletion(answered), []
    for text in texts:
        for start in range(0, len(text), 3):
            if not answer.awaits_more:
                chunks += answer.feed({"choices": [{"index": 0, "delta": {"content": text[start : start + 3]}}]})
        chunks += answer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if answer.begin_next_request() is None:
            break
    chunks += answer.close()
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [call for each in deltas for call in each.get("tool_calls", ())]
    return {"content": "".join(each.get("content") or "" for each in deltas), "tool_calls": calls}


def called(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", ())
    ]


BROKEN = {
    "no JSON": '<tool_call>\n{"name": "read_file", "arguments": {"path": \n</tool_call>',
    "an unknown tool": encode_call("open_file", {"path": "a.py"}),
    "an argument missing": encode_call("read_file", {"name": "a.py"}),
    "a wrong type": encode_call("count", {"n": "many"}),
    "cut off": GOOD[:40],
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_broken_call_is_retried_with_a_constraint(broken):
    """The words before it stay; streamed or whole makes no difference."""
    message, asked = whole(request("arguments"), f"I look.\n{broken}", GOOD)
    assert (called(message), asked) == ([("read_file", {"path": "a.py"})], 2)
    assert message["content"].strip() == "I look."
    again = streamed(request("arguments"), f"I look.\n{broken}", GOOD)
    assert (called(again), again["content"].strip()) == (called(message), "I look.")


def test_retry_allows_only_the_intended_tool():
    exchange = BufferedCompletion(request("arguments"))
    message = {"content": BROKEN["a wrong type"]}
    result = exchange.feed({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert isinstance(result, TranslatedRequest)
    assert "count" in result.body["grammar"]
    assert "read_file" not in result.body["grammar"]


@pytest.mark.parametrize("text", ["Nothing to do.", GOOD, f"I look.\n{GOOD}"])
def test_valid_answer_is_not_retried(text):
    """The model decides whether to call."""
    assert whole(request("arguments"), text)[1] == 1
    assert "grammar" not in request("arguments").body


def test_call_is_retried_only_once():
    message, asked = whole(request("arguments"), BROKEN["no JSON"], BROKEN["no JSON"])
    assert asked == 2
    assert called(message) == []


@pytest.mark.parametrize("constraint", ["off", None])
def test_nothing_is_retried_without_a_constraint(constraint):
    assert whole(request(constraint), BROKEN["no JSON"])[1] == 1


def test_repeated_call_with_known_result_becomes_a_reply():
    """Small models repeat the previous call, but should report its result."""
    reply = encode_call("reply", {"text": "It prints 1."})
    message, asked = whole(request("prefer", CALLED), GOOD, reply)
    assert (called(message), message["content"], asked) == ([], "It prints 1.", 2)
    assert streamed(request("prefer", CALLED), GOOD, reply)["content"] == "It prints 1."


def test_different_call_after_a_result_is_allowed():
    other = encode_call("read_file", {"path": "b.py"})
    message, asked = whole(request("prefer", CALLED), other)
    assert (called(message), asked) == ([("read_file", {"path": "b.py"})], 1)


def test_same_call_is_allowed_after_a_new_request():
    messages = [*CALLED, {"role": "assistant", "content": "It prints 1."}, {"role": "user", "content": "And now?"}]
    assert called(whole(request("prefer", messages), GOOD)[0]) == [("read_file", {"path": "a.py"})]


def test_call_is_not_repeated_in_one_answer():
    message, _ = whole(request("prefer", parallel_tool_calls=True), f"{GOOD}\n{GOOD}")
    assert len(called(message)) == 1


def test_several_calls_are_allowed_if_requested():
    assert "{0,7}" not in request("prefer").body["grammar"]
    assert "{0,7}" in request("prefer", parallel_tool_calls=True).body["grammar"]


def completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.fixture
def llama_cpp(scripted: ScriptedServer) -> ScriptedServer:
    scripted.on("/props", as_json(200, {"default_generation_settings": {}}))
    return scripted


def replies(stream: bool) -> list[Any]:
    texts = [f"I look.\n{BROKEN['no JSON']}", GOOD]
    if stream:
        return [as_stream(delta(text), delta(finish_reason="stop")) for text in texts]
    return [as_json(200, completion(text)) for text in texts]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_served_client_sees_one_answer(llama_cpp, stream):
    """Two requests to the model server, one to ours."""
    llama_cpp.on(CHAT, *replies(stream))
    with serving(llama_cpp.url, "--constraint", "arguments") as url, connected(url) as client:
        check(client.chat.completions.create(model="m", messages=ASK, tools=TOOLS, stream=stream), stream)
    first, second = llama_cpp.bodies()
    assert "grammar" not in first
    assert "read_file" in second["grammar"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_a_wrapped_client_sees_one_answer(llama_cpp, stream, is_async):
    llama_cpp.on(CHAT, *replies(stream))
    options: Any = {"model": "m", "messages": ASK, "tools": TOOLS, "stream": stream}
    if is_async:

        async def ask() -> Any:
            async with openai.AsyncOpenAI(base_url=f"{llama_cpp.url}/v1", api_key="k", max_retries=0) as client:
                answer = await wrap(client, constraint="arguments").chat.completions.create(**options)
                return [chunk async for chunk in answer] if stream else answer

        check(asyncio.run(ask()), stream)
    else:
        with connected(f"{llama_cpp.url}/v1") as client:
            check(wrap(client, constraint="arguments").chat.completions.create(**options), stream)
    assert len(llama_cpp.bodies()) == 2


def check(answer: Any, stream: bool) -> None:
    if stream:
        deltas = [chunk.choices[0].delta for chunk in answer if chunk.choices]
        content = "".join(each.content or "" for each in deltas)
        calls = [call for each in deltas for call in each.tool_calls or ()]
    else:
        content, calls = answer.choices[0].message.content, answer.choices[0].message.tool_calls
    assert content.strip() == "I look."
    assert [call.function.arguments for call in calls] == ['{"path": "a.py"}']


def test_llama_cpp_gets_a_lazy_grammar(llama_cpp):
    """On /completion with the template prompt; the response is a chat completion anyway."""
    said = {"content": f"I look.\n{GOOD}", "stop": True, "stop_type": "eos", "tokens_predicted": 9}
    llama_cpp.on("/apply-template", as_json(200, {"prompt": "<PROMPT>"})).on("/completion", as_json(200, said))
    with serving(llama_cpp.url, "--constraint", "arguments") as url, connected(url) as client:
        answer = client.chat.completions.create(model="m", messages=ASK, tools=TOOLS, max_tokens=50)
    check(answer, stream=False)
    assert answer.usage
    assert answer.usage.completion_tokens == 9
    (body,) = llama_cpp.bodies("/completion")
    assert (body["prompt"], body["n_predict"], body["grammar_lazy"]) == ("<PROMPT>", 50, True)
    assert body["grammar_triggers"][0] == {"type": 1, "value": "<tool_call>"}
    assert {"<tool_call>", "</tool_call>"} <= {*body["preserved_tokens"]}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_real_llama_cpp_accepts_a_lazy_grammar(random_engine, stream):
    """Its random model never begins a call, so its output is text."""
    with serving(random_engine.endpoint.base_url, "--constraint", "arguments") as url, connected(url) as client:
        answer = client.chat.completions.create(
            model="m", messages=ASK, tools=TOOLS, max_tokens=30, stream=stream, seed=1, extra_body=ONLY_ASCII
        )
        reason = [*answer][-1].choices[0].finish_reason if stream else answer.choices[0].finish_reason
    assert reason in ("length", "stop")


def test_impossible_grammar_leaves_the_model_unconstrained(monkeypatch):
    """With `arguments`, no request is refused because of a grammar."""
    monkeypatch.setattr("adapter.grammars.gbnf.MAX_GRAMMAR", 100)
    options = TranslationOptions(
        constraints=ConstraintSettings(mode="arguments", enforce=enforce, waits_for_calls=True)
    )
    made = translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, options)
    assert "grammar" not in made.body
    again = made.with_retry(Retry("wrong_arguments", "Wrong.", ("count",)), "A call.")
    assert "grammar" not in again.body


OPENINGS = {
    "the format's own": ("<tool_call>", "</tool_call>"),
    "a fence": ('Sure:\n```json\n{\n  "name": "count",\n',),
    "a fence without a language": ('```\n{"name": "count"',),
    "JSON on a line": ('Well.\n{"name":"count"',),
}
"""Tokens of a vocabulary, of which the model writes the first at once."""


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", OPENINGS)
def test_lazy_grammar_applies_to_every_start_of_a_call(name, stream, tmp_path):
    """Also where the opening is one token of the vocabulary, as Qwen's: llama.cpp takes it and keeps it in the text."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine")
    weights = write_random_gguf(tmp_path / "own.gguf", own_tokens=OPENINGS[name])
    with (
        EmbeddedServer(weights) as engine,
        serving(engine.endpoint.base_url, "--constraint", "arguments", "--format", "hermes") as url,
        connected(url) as client,
    ):
        begin = {"logit_bias": [*ONLY_ASCII["logit_bias"], [BYTES, 50]]}
        answer = client.chat.completions.create(
            model="m", messages=ASK, tools=[TOOLS[1]], max_tokens=300, stream=stream, seed=1, extra_body=begin
        )
        if stream:
            deltas = [chunk.choices[0].delta for chunk in answer if chunk.choices]
            calls = [call for each in deltas for call in each.tool_calls or ()]
        else:
            calls = answer.choices[0].message.tool_calls or []
    assert [call.function.name for call in calls] == ["count"]
    assert {type(value) for value in json.loads(calls[0].function.arguments).values()} <= {int}


def test_lazy_grammar_has_no_other_triggers():
    """The names of tools are taken as they are, and a format of pairs waits for its own opening only."""
    odd = ToolSet([Tool("a.b(c)", parameters={"properties": {"x": {"type": "integer"}}})])
    (_, pattern) = build_constraint_fields("llama.cpp", odd, waits=True)["grammar_triggers"]
    assert re.search(pattern["value"], '{"name": "a.b(c)"')
    for text in ('{"name": "aXb(c)"', 'see {"name": "a.b(c)"', '{"title": "a.b(c)"'):
        assert not re.search(pattern["value"], text)
    assert (
        len(
            build_constraint_fields("llama.cpp", ToolSet([COUNT]), format="qwen3_coder", waits=True)["grammar_triggers"]
        )
        == 1
    )
    assert build_constraint_fields("vllm", odd, waits=True) == {}
