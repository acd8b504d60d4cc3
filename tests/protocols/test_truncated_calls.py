"""Half a call is never shown as text, and calls that a server parsed unasked reach the client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adapter.parsing.formats import FORMATS, get_format
from adapter.protocols.answer_translation import AnswerWriter, OpenAIWriter, StreamedExchange
from adapter.protocols.anthropic_response import AnthropicWriter
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.exchange_guardrails import RetryPolicy, build_guard_headers
from adapter.protocols.ollama import OllamaWriter
from adapter.protocols.openai_chat_response import BufferedCompletion, StreamedCompletion
from adapter.protocols.openai_responses_stream import ResponsesWriter, build_answer_head
from adapter.protocols.sse import encode_event
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import PromptSettings, TranslationOptions
from benchmarks.written_texts import is_whole_answer
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
        before = "" if is_whole_answer(name) else "I look.\n"
        for size in range(1, len(call), 1 if EFFORT > 1 else 11):
            content = content_of(streamed(before + call[:size], reason, of_format(name)))
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


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_cut_call_is_named(choice):
    """In a field of the answer, and in a header of buffered answers. Under `none`, it is also an excluded call."""
    excluded = [{"name": "read_file", "guardrail": "tool_choice", "count": 1}]
    notice = {"cut_call": "read_file"} | ({"dropped": excluded} if choice == "none" else {})
    headers = {"x-adapter-dropped": "read_file:tool_choice"} if choice == "none" else {}
    text = f"I look.\n{CALL[:50]}"
    answer = whole(completion(text, "length"), request(tool_choice=choice))
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["adapter"] == notice
    assert build_guard_headers(answer) == {"x-adapter-cut-call": "read_file"} | headers
    assert streamed(text, "length", request(tool_choice=choice))[-1]["adapter"] == notice
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
    "responses": lambda: ResponsesWriter(build_answer_head({}, "resp_1", 0)),
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
    assert exchange.build_next_body() is None
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


def continued(text: str, *rest: str, buffered: bool = False, reason: str = "length", **fields: Any) -> Any:
    """Return content, calls, finish reason and the requests of an answer that was cut off, and its continuations."""
    options = TranslationOptions()
    asked = translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS, **fields}, options)
    answer = (BufferedCompletion if buffered else StreamedCompletion)(asked)
    pieces, chunks, requests = [(text, reason), *((each, "stop") for each in rest)], [], [asked]
    for written, end in pieces:
        if isinstance(answer, BufferedCompletion):
            result = answer.feed(completion(written, end))
            if isinstance(result, dict):
                (choice,) = result["choices"]
                calls = [each["function"] for each in choice["message"].get("tool_calls") or ()]
                return choice["message"]["content"] or "", calls, choice["finish_reason"], requests
            requests.append(result)
            continue
        for each in (*map(delta, written), delta(finish_reason=end)):
            chunks += answer.feed(each)
        if (follow_up := answer.begin_next_request()) is None:
            break
        requests.append(follow_up)
    if isinstance(answer, BufferedCompletion):
        previous = answer.use_previous()
        assert previous is not None
        (choice,) = previous["choices"]
        return choice["message"]["content"] or "", [], choice["finish_reason"], requests
    chunks += answer.close()
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    written_calls: dict[int, Any] = {}
    for call in (each for choice in choices for each in choice["delta"].get("tool_calls", ())):
        function = written_calls.setdefault(call["index"], {"name": "", "arguments": ""})
        function["name"] += call["function"].get("name") or ""
        function["arguments"] += call["function"].get("arguments") or ""
    return content_of(chunks), list(written_calls.values()), choices[-1]["finish_reason"], requests


BOTH = pytest.mark.parametrize("buffered", [False, True], ids=["streamed", "buffered"])
READ = [{"name": "read_file", "arguments": '{"path": "a.py"}'}]


@BOTH
@pytest.mark.parametrize("size", [3, 12, 24, 40, 58])
def test_a_call_cut_by_a_limit_of_the_server_is_continued(size, buffered):
    """The model gets its own text as the beginning of the answer, and the client gets one whole call."""
    begun = f"I look.\n{CALL[:size]}"
    content, calls, reason, requests = continued(begun, CALL[size:], buffered=buffered)
    assert (content.strip(), calls, reason) == ("I look.", READ, "tool_calls")
    assert len(requests) == 2
    assert requests[1].body["messages"][-1] == {"role": "assistant", "content": begun}


@BOTH
@pytest.mark.parametrize(
    ("rest", "reason"),
    [((CALL,), "length"), (("Sorry, I lost track.",), "length"), ((), "length"), (('"',), "length")],
    ids=["anew", "other text", "refused", "cut again"],
)
def test_a_call_that_is_not_continued_is_given_up(rest, reason, buffered):
    """After one request more, and without any of its markup."""
    content, calls, found, requests = continued(f"I look.\n{CALL[:40]}", *rest, buffered=buffered)
    assert (content.strip(), calls, found) == ("I look.", [], reason)
    assert len(requests) == 2


@BOTH
@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (CALL[:40], {"max_tokens": 30}),
        (CALL[:40], {"n": 2}),
        (f"{CALL}\n{CALL[:40]}", {}),
        ('<tool_call>\n{"name": "read_file", "arguments": {"path": "' + "a/" * 2_000, {}),
        ("The answer is lo", {}),
    ],
    ids=["client's limit", "two answers", "after a whole call", "loops", "text"],
)
def test_other_answers_are_not_continued(text, fields, buffered):
    *_, requests = continued(text, CALL[40:], buffered=buffered, **fields)
    assert len(requests) == 1


def test_a_clients_limit_that_was_not_reached_does_not_count():
    """Claude Code sends 32,000, but llama.cpp may stop at its ``--n-predict``."""
    _, calls, _, requests = continued(CALL[:40], CALL[40:], max_tokens=32_000)
    assert calls == READ
    assert requests[1].body["max_tokens"] == 32_000 - 10


def test_sent_arguments_are_not_continued():
    """Only a whole call can be read again."""
    options = TranslationOptions(stream_arguments=True)
    answer = StreamedCompletion(translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, options))
    begun = CALL.replace("path", "text").replace("a.py", "a" * 200)[:200]  # paths and short arguments are sent whole
    for each in (*map(delta, begun), delta(finish_reason="length")):
        answer.feed(each)
    assert answer.begin_next_request() is None


CUT_NATIVE = [native(0, '{"path": "a.py"}', "read_file"), native(1, '{"pa', "read_file")]


def arguments_of(chunks: list[Any]) -> list[str]:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    return [call["function"]["arguments"] for each in deltas for call in each.get("tool_calls", ())]


@pytest.mark.parametrize("reason", ["length", None], ids=["cut", "lost"])
def test_half_a_native_call_is_never_shown(reason):
    """Complete calls before it are, and the cut one is named."""
    asked = translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, TranslationOptions(native=True))
    answer = StreamedCompletion(asked)
    events = [*(delta(tool_calls=[each]) for each in CUT_NATIVE), *([delta(finish_reason=reason)] if reason else [])]
    chunks = [chunk for event in events for chunk in answer.feed(event)] + answer.close()
    assert arguments_of(chunks) == ['{"path": "a.py"}']
    if reason is None:
        assert "error" in chunks[-1]
        return
    assert chunks[-1]["adapter"] == {"cut_call": "read_file"}
    cut = completion("I look.", "length")
    cut["choices"][0]["message"]["tool_calls"] = CUT_NATIVE
    buffered = whole(cut, asked)
    (call,) = buffered["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == '{"path": "a.py"}'
    assert build_guard_headers(buffered) == {"x-adapter-cut-call": "read_file"}


def test_fragments_of_native_calls_are_streamed_if_requested():
    options = TranslationOptions(native=True, stream_arguments=True)
    answer = StreamedCompletion(translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, options))
    assert arguments_of([chunk for each in UNASKED[:2] for chunk in answer.feed(each)]) == ['{"pa', 'th": "a.py"}']


@pytest.mark.parametrize("arguments", ["", '{"path"', '{"path": "b', '{"path": "b.py"', '{"path": "b.py", '])
@pytest.mark.parametrize("is_native", [False, True], ids=["unasked", "asked"])
def test_cut_native_call_is_left_out(is_native, arguments):
    """Even if its arguments could be repaired, and without a further request."""
    options = TranslationOptions(native=is_native)
    asked = translate_chat_request({"model": "qwen3", "messages": ASK, "tools": TOOLS, "max_tokens": 9}, options)
    events = [UNASKED[0], UNASKED[1], delta(tool_calls=[native(1, arguments, "read_file")])]
    answer = StreamedCompletion(asked)
    chunks = [each for event in [*events, delta(finish_reason="length")] for each in answer.feed(event)]
    assert answer.begin_next_request() is None
    chunks += answer.close()
    calls = [call for each in chunks for call in each["choices"][0]["delta"].get("tool_calls", ())]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"path": "a.py"}'
    assert (content_of(chunks), chunks[-1]["choices"][0]["finish_reason"]) == ("", "length")
    assert chunks[-1]["adapter"]["cut_call"] == "read_file"
