"""A malicious model server can spoil only its own answers."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

import openai
import pytest

from adapter.protocols import answer_translation, choice_stream
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.chat_request_translation import MAX_ANSWERS, translate_chat_request
from adapter.protocols.sse import encode_event
from adapter.protocols.translation_options import TranslationOptions
from tests.live_upstream import LiveUpstream
from tests.scripted_server import as_stream, delta
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_serve_faults import post
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

ASKING: dict[str, Any] = {"model": "m", "messages": ASK, "tools": TOOLS}


def numbered(index: int) -> dict[str, Any]:
    event = delta("Hi")
    event["choices"][0]["index"] = index
    return event


def errors(sent: bytes) -> list[str]:
    events = [json.loads(line[6:]) for line in sent.split(b"\n\n") if line.startswith(b"data: {")]
    return [event["error"]["message"] for event in events if "error" in event]


@contextmanager
def answering(head: bytes, pieces: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """A raw server that sends the head and then the pieces on each connection, until the client disconnects."""

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(head)
                for piece in pieces():
                    connection.sendall(piece)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()


def relay(sent: bytes) -> bytes:
    """Return what a client gets for the bytes of a stream."""
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    return streamed.feed(sent) + streamed.close()


def test_stream_cut_inside_an_event_is_reported_as_cut():
    """At each byte. Complete JSON without the empty line after it is an event. A finished answer stays finished, unless
    text follows.
    """
    last = as_stream(delta("there")).body
    for end in range(len(last)):
        is_whole = b"[DONE]" in last[:end]
        said = errors(relay(as_stream(delta("Hi"), done=False).body + last[:end]))
        assert (said == []) == is_whole, last[:end]
        assert is_whole or "in the middle of its answer" in said[0], last[:end]
        said = errors(relay(as_stream(delta("Hi", "stop"), done=False).body + last[:end]))
        assert (said == []) == (is_whole or end < last.index(b"\n\n")), last[:end]
        if 0 < end < last.index(b"\n\n"):
            assert "in the middle of its answer" in errors(relay(last[:end]))[0] or last[:end].endswith(b"}"), last[
                :end
            ]
    body = json.dumps(completion("Hi")).encode()
    for end in range(1, len(body)):
        answer = BufferedExchange(translate_chat_request(ASKING, TranslationOptions())).feed(body[:end])
        assert isinstance(answer, tuple)
        assert "in the middle of its answer" in answer[1]["error"]["message"], body[:end]


WHOLE = as_stream(delta("I look. "), delta(CALL), delta(finish_reason="stop")).body
STREAMS = {
    "CRLF": WHOLE.replace(b"\n", b"\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + WHOLE,
    "no space": WHOLE.replace(b"data: ", b"data:"),
    "comments": b": ping\n\n" + WHOLE.replace(b"\n\n", b"\n\n: ping\n\n"),
    "other fields": b"retry: 9\n\n" + WHOLE.replace(b"data: ", b"event: message\nid: 1\ndata: "),
    "empty events": b"data:\n\ndata: \n\n" + WHOLE.replace(b"\n\n", b"\n\ndata:\n\n"),
    "no [DONE]": WHOLE.replace(b"data: [DONE]\n\n", b""),
    "no last line end": WHOLE.rstrip(),
    "usage without choices": WHOLE.replace(
        b"data: [", b'data: {"choices": null, "usage": {"prompt_tokens": 7}}\n\ndata: ['
    ),
    "finish reason twice": WHOLE.replace(b"data: [", encode_event(delta("", "stop")) + b"data: ["),
    "null in calls": as_stream(
        delta(content=None, tool_calls=None, role=None),
        delta("I look. ", tool_calls=[None]),
        delta(
            tool_calls=[{"index": 0, "id": "c1", "type": None, "function": {"name": "read_file", "arguments": None}}]
        ),
        delta(tool_calls=[{"index": 0, "function": {"name": None, "arguments": '{"path": "a.py"}'}}]),
        delta(tool_calls=[{"index": 0, "id": None, "function": None}]),
        delta(finish_reason="tool_calls"),
    ).body,
}


@pytest.mark.parametrize("name", STREAMS)
def test_each_spelling_of_a_stream_gives_the_same_answer(name):
    """Whole, and byte by byte."""
    for size in (len(STREAMS[name]), 1):
        streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
        pieces = [STREAMS[name][at : at + size] for at in range(0, len(STREAMS[name]), size)]
        sent = b"".join(map(streamed.feed, pieces)) + streamed.close()
        assert errors(sent) == []
        choices = [json.loads(line[6:])["choices"][0] for line in sent.split(b"\n\n") if line.startswith(b"data: {")]
        assert "".join(each["delta"].get("content", "") for each in choices).strip() == "I look."
        (call,) = [call["function"] for each in choices for call in each["delta"].get("tool_calls", [])]
        assert (call["name"], json.loads(call["arguments"])) == ("read_file", {"path": "a.py"})
        assert [each["finish_reason"] for each in choices if each["finish_reason"]] == ["tool_calls"]


def test_unrequested_choices_end_stream():
    """Each choice would need a parser of its own."""
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    sent = b"".join(streamed.feed(encode_event(numbered(index))) for index in range(20_000))
    assert errors(sent) == ["the model server sent an answer with the index 1; expected one answer"]
    assert streamed.is_done


@streamed_and_whole
def test_choices_are_limited_to_n(stream):
    """The unmodified client gets both choices, or an error if there is one too many."""

    def said(asked: Any) -> Iterator[Any]:
        wanted = 2 + (asked["messages"][-1]["content"] == "More!")
        if stream:
            yield from (numbered(index) for index in range(wanted))
            for index in range(wanted):
                end = delta(finish_reason="stop")
                end["choices"][0]["index"] = index
                yield end
        else:
            choices = [{**completion("Hi")["choices"][0], "index": index} for index in range(wanted)]
            yield json.dumps({**completion(""), "choices": choices}).encode()

    def ask(client: openai.OpenAI, words: str) -> list[str | None]:
        fields: Any = {**ASKING, "n": 2, "messages": [{"role": "user", "content": words}]}
        if not stream:
            return [choice.message.content for choice in client.chat.completions.create(**fields).choices]
        with client.chat.completions.stream(**fields) as events:
            return [choice.message.content for choice in events.get_final_completion().choices]

    with LiveUpstream(said) as upstream, serving(upstream.url) as url, connected(url) as client:
        assert ask(client, "Some.") == ["Hi", "Hi"]
        with pytest.raises(openai.APIError, match=r"the index 2; expected 2 answers"):
            ask(client, "More!")


def test_invalid_n_returns_400():
    with LiveUpstream(lambda _: iter(())) as upstream, serving(upstream.url) as url:
        for number in (0, MAX_ANSWERS + 1, "many", True, 1.5):
            status, said = post(url.removesuffix("/v1"), json.dumps({**ASKING, "n": number}).encode())
            assert (status, said["error"]["param"]) == (400, "n")
            assert said["error"]["message"].startswith("'n' must be between 1 and 128, got ")


def think(number: int) -> dict[str, Any]:
    return delta(reasoning_content=f"step {number * 7919 % 10_007:x}, then {number * 104_729 % 9_973:x}. " * 2)


FRAGMENT = {"index": 0, "function": {"name": "f", "arguments": "x" * 100}}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (delta("a" * 100), "the model's answer has more than 5,000 characters"),
        (delta("<tool_call>" * 10), "the model's answer has more than 5,000 characters"),
        (delta(tool_calls=[FRAGMENT]), "the model's answer has more than 5,000 characters"),
        (think, "the model server sent more than 90,000 bytes without ending its answer"),
        (delta(), "the model server sent more than 90,000 bytes without ending its answer"),
    ],
    ids=["text", "openings", "calls", "reasoning", "nothing"],
)
def test_endless_answer_is_stopped(monkeypatch, event, why):
    monkeypatch.setattr(choice_stream, "MAX_ANSWER_CHARACTERS", 5_000)
    monkeypatch.setattr(answer_translation, "MAX_STREAM_BYTES", 90_000)
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    sent = b""
    for number in range(2_000):
        sent += streamed.feed(encode_event(event(number) if callable(event) else event))
        if streamed.is_done:
            break
    assert errors(sent) == [why]


def test_endless_comments_are_stopped(monkeypatch):
    """Endless comments and no data."""
    monkeypatch.setattr(answer_translation, "MAX_STREAM_BYTES", 90_000)
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    sent = b"".join(streamed.feed(b": ping\n\n" * 100) for _ in range(200))
    assert errors(sent) == ["the model server sent more than 90,000 bytes without ending its answer"]


@cache
def make_bomb() -> bytes:
    return gzip.compress(b" " * 50_000_000)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        (HEAD + b"\r\n", lambda: iter(lambda: b"[" * 65_536, b"")),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n", lambda: iter([make_bomb()])),
        (HEAD, lambda: iter(lambda: b"X-More: " + b"a" * 4_000 + b"\r\n", b"")),
        (HEAD + b"X-One: ", lambda: iter(lambda: b"a" * 65_536, b"")),
        (b"", lambda: iter(lambda: b"a" * 65_536, b"")),
    ],
    ids=["body without an end", "gzip bomb", "flood of headers", "header without an end", "no HTTP"],
)
def test_oversized_answer_returns_502(head, pieces):
    """Also during server detection; the next request gets the same error."""
    with answering(head, pieces) as upstream, serving(upstream) as url:
        for _ in range(2):
            status, said = post(url.removesuffix("/v1"), json.dumps(ASKING).encode())
            assert status == 502, said


PLAIN = {"model": "m", "messages": ASK}
PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools": ("/v1/chat/completions", ASKING),
    "tools, streamed": ("/v1/chat/completions", {**ASKING, "stream": True}),
    "passed through": ("/v1/chat/completions", PLAIN),
    "passed through, streamed": ("/v1/chat/completions", {**PLAIN, "stream": True}),
    "embeddings": ("/v1/embeddings", {"model": "m", "input": "x"}),
    "anthropic": ("/v1/messages", {**PLAIN, "max_tokens": 9}),
    "ollama": ("/api/chat", PLAIN),
}


@pytest.mark.parametrize("status", [101, 199, 204, 205, 301, 302, 304, 307, 600, 999])
def test_status_of_no_use_is_an_error(status):
    """A client must neither follow the server's redirect nor take an answer without content for a good one."""
    head = f"HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:9/\r\nConnection: close\r\n\r\n".encode()
    with answering(head, lambda: iter(())) as upstream, serving(upstream) as url:
        host = url.removeprefix("http://").removesuffix("/v1")
        for name, (path, body) in PATHS.items():
            with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                response = connection.getresponse()
                response.read()
            is_passed = 200 <= status < 300 and (name.startswith("passed") or name == "embeddings")
            assert response.status == (status if is_passed else 502), name
            assert is_passed or response.getheader("location") is None, name


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"error": "out of memory"}, "out of memory"),
        ({"object": "error", "message": "out of memory", "type": "InternalServerError", "code": 500}, "out of memory"),
        ({"object": "error"}, "the model server reported an error"),
        (delta(finish_reason="abort"), "the model server stopped its answer with finish reason 'abort'"),
        (delta(finish_reason="error"), "the model server stopped its answer with finish reason 'error'"),
    ],
    ids=["text", "without error", "without message", "aborted", "failed"],
)
def test_failure_with_status_200_is_an_error(event, why):
    """As Ollama, older vLLM and SGLang report failures in an answer that has begun."""
    asked = translate_chat_request({**ASKING, "stream": True}, TranslationOptions())
    streamed = StreamedExchange(asked, 0)
    sent = b"".join(
        streamed.feed(each) for each in (encode_event(delta("Hi")), encode_event(event), b"data: [DONE]\n\n")
    )
    assert errors(sent + streamed.close()) == [why]
    if "choices" in event:
        event = completion("Hi", event["choices"][0]["finish_reason"])
    answered = BufferedExchange(asked).feed(json.dumps(event).encode())
    assert isinstance(answered, tuple)
    assert (answered[0], answered[1]["error"]["message"]) == (event.get("code", 502), why)
