"""Half a call is never shown as text, and calls that a server parsed unasked reach the client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adapter.parsing.formats import FORMATS, get_format
from adapter.protocols.anthropic_response import AnthropicWriter
from adapter.protocols.exchange import AnswerWriter, OpenAIWriter, StreamedExchange
from adapter.protocols.guarded_exchange import RetryPolicy, guard_headers
from adapter.protocols.ollama import OllamaWriter
from adapter.protocols.openai_chat_response import BufferedCompletion, StreamedCompletion
from adapter.protocols.openai_responses_stream import ResponsesWriter, answer_head
from adapter.protocols.sse import encode_event
from adapter.protocols.translate import translate_chat_request
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import PromptSettings, TranslationOptions
from tests.effort import EFFORT
from tests.protocols.test_wire import request, whole
from tests.scripted_server import delta
from tests.server.test_wrap import ASK, CALL, completion

ARGUMENTS = {"path": "src/a.py", "text": "x = {1: 2}\n"}
PROPERTIES = {name: {"type": "string"} for name in ARGUMENTS}
TOOLS = [{"name": "read_file", "parameters": {"type": "object", "properties": PROPERTIES, "required": ["path"]}}]


def of_format(name: str) -> TranslatedRequest:
    options = TranslationOptions(prompt=PromptSettings(format=name), retry_policy=RetryPolicy(retries=0))
    return translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, options)


def streamed(text: str, reason: str | None, asked: TranslatedRequest) -> list[Any]:
    answer = StreamedCompletion(asked)
    events = [delta(text), *([delta(finish_reason=reason)] if reason else [])]
    return [chunk for event in events for chunk in answer.feed(event)] + answer.close()


def content_of(chunks: list[Any]) -> str:
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize("reason", ["length", None], ids=["cut", "lost"])
def test_half_a_call_is_never_shown(reason):
    """In each format, cut anywhere; only one character alone, such as <, is text."""
    shown: list[tuple[str, str]] = []
    for name in FORMATS:
        call = get_format(name).encode_calls([("read_file", ARGUMENTS)]).lstrip()
        for size in range(1, len(call), 1 if EFFORT > 1 else 11):
            content = content_of(streamed(f"I look.\n{call[:size]}", reason, of_format(name)))
            if len(content.removeprefix("I look.").strip()) > 1:
                shown.append((name, content))
    assert shown == []


@pytest.mark.parametrize(
    "text", ['{"answer": 42, "name": "Ann', "Use a <", "```python\nprint(", "x = [1, 2", "It is fun"]
)
def test_cut_text_is_kept(text):
    assert content_of(streamed(text, "length", of_format("hermes"))) == text
    answer = BufferedCompletion(of_format("hermes")).feed(completion(text, "length"))
    assert isinstance(answer, dict)
    assert answer["choices"][0]["message"]["content"] == text


def test_cut_call_is_named():
    """In a field of the answer, and in a header of buffered answers."""
    text = f"I look.\n{CALL[:50]}"
    answer = whole(completion(text, "length"), request())
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["adapter"] == {"cut_call": "read_file"}
    assert guard_headers(answer) == {"x-adapter-cut-call": "read_file"}
    assert streamed(text, "length", request())[-1]["adapter"] == {"cut_call": "read_file"}
    assert "adapter" not in whole(completion("I look.", "length"), request())


def native(index: int, arguments: str, name: str | None = None) -> dict[str, Any]:
    head = {"id": f"c{index}", "type": "function"} if name else {}
    return {"index": index, **head, "function": {"arguments": arguments, **({"name": name} if name else {})}}


UNASKED = [
    delta(tool_calls=[native(0, '{"pa', "read_file")]),
    delta(tool_calls=[native(0, 'th": "a.py"}')]),
    delta(tool_calls=[native(1, '{"path": "b.py"}', "ReadFile")], content=""),
]


def with_reason(event: dict[str, Any], reason: Any) -> dict[str, Any]:
    (choice,) = event["choices"]
    return {**event, "choices": [{**choice, "finish_reason": reason}]}


WRITERS: dict[str, Callable[[], AnswerWriter]] = {
    "chat": OpenAIWriter,
    "messages": lambda: AnthropicWriter("m", "msg_1"),
    "ollama": lambda: OllamaWriter("m", "now"),
    "responses": lambda: ResponsesWriter(answer_head({}, "resp_1", 0)),
}


@pytest.mark.parametrize("reason", [None, ""], ids=["null", "empty"])
@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize("is_native", [False, True], ids=["unasked", "asked"])
def test_native_calls_reach_the_client(api, reason, is_native):
    """From servers that parse calls although they got no tools, and that send an empty finish reason."""
    writer = WRITERS[api]()
    options = TranslationOptions(native=is_native)
    asked = translate_chat_request({"model": "qwen3", "messages": ASK, "tools": TOOLS, "stream": True}, options)
    exchange = StreamedExchange(asked, 0, writer)
    events = [*(with_reason(each, reason) for each in UNASKED), delta(finish_reason="tool_calls")]
    sent = b"".join(exchange.feed(encode_event(each)) for each in events) + exchange.close()
    text = sent.decode()
    assert exchange.next_body() is None
    assert "a.py" in text.replace('\\"', '"')
    assert "b.py" in text
    assert {
        "chat": '"tool_calls"}]',
        "messages": "tool_use",
        "ollama": '"done":true',
        "responses": "response.completed",
    }[api] in text


def test_native_call_of_a_buffered_answer_is_mapped_to_its_tool():
    answer = completion("")
    answer["choices"][0]["message"] |= {"content": None, "tool_calls": [native(0, '{"file": "a.py"}', "ReadFile")]}
    (choice,) = whole(answer, request())["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("read_file", {"path": "a.py"})
    assert choice["finish_reason"] == "tool_calls"


def test_empty_finish_reason_is_none():
    events = [with_reason(delta("I "), ""), with_reason(delta("look."), ""), delta(finish_reason="stop")]
    exchange = StreamedExchange(request(), 0)
    sent = b"".join(exchange.feed(encode_event(each)) for each in events) + exchange.close()
    assert sent.count(b'"finish_reason":"stop"') == 1
