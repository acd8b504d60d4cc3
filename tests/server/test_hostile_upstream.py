"""A model server that sends what no model server should: that costs its own answer, and nothing else."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from adapter.protocols import exchange, openai_choice
from adapter.protocols.exchange import StreamedExchange
from adapter.protocols.sse import encode_event
from adapter.protocols.translate import MAX_ANSWERS, translate_chat_request
from adapter.protocols.translation_options import TranslationOptions
from tests.live_upstream import LiveUpstream
from tests.scripted_server import delta
from tests.server.test_serve_faults import connected, post
from tests.server.test_wrap import ASK, TOOLS, completion
from tests.serving import serving

pytest.importorskip("starlette", reason="needs the server: pip install 'toolcall-adapter[server]'")
pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")

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
    """A server of bare bytes: to each connection the head and then the pieces, until the other side has enough."""

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


def test_answers_that_nobody_asked_for_end_the_stream():
    """Each of them would get a parser of its own."""
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    sent = b"".join(streamed.feed(encode_event(numbered(index))) for index in range(20_000))
    assert errors(sent) == ["the model server sent answer number 1 (from 0 on), and one answer was asked for"]
    assert streamed.is_done


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_several_answers_are_as_many_as_were_asked_for(stream):
    """The unmodified client gets both, or hears that there was one too many."""

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
            return [openai_choice.message.content for openai_choice in client.chat.completions.create(**fields).choices]
        with client.chat.completions.stream(**fields) as events:
            return [openai_choice.message.content for openai_choice in events.get_final_completion().choices]

    with LiveUpstream(said) as upstream, serving(upstream.url) as url, connected(url) as client:
        assert ask(client, "Some.") == ["Hi", "Hi"]
        with pytest.raises(openai.APIError, match=r"answer number 2 \(from 0 on\), and 2 answers were asked for"):
            ask(client, "More!")


@pytest.mark.parametrize("number", [0, MAX_ANSWERS + 1, "many", True, 1.5])
def test_more_answers_than_may_be_asked_for_are_a_400(number):
    with LiveUpstream(lambda _: iter(())) as upstream, serving(upstream.url) as url:
        status, said = post(url.removesuffix("/v1"), json.dumps({**ASKING, "n": number}).encode())
    assert (status, said["error"]["param"]) == (400, "n")
    assert said["error"]["message"].startswith("'n' must be a number from 1 to 128, got ")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (delta("a" * 100), "the model's answer has more than 5,000 characters"),
        (delta("<tool_call>" * 10), "the model's answer has more than 5,000 characters"),
        (delta(reasoning_content="a" * 100), "the model server sent more than 90,000 bytes, and no end"),
        (delta(), "the model server sent more than 90,000 bytes, and no end"),
    ],
    ids=["text", "openings", "reasoning", "nothing"],
)
def test_an_answer_without_an_end_ends(monkeypatch, event, why):
    monkeypatch.setattr(openai_choice, "MAX_CHARACTERS", 5_000)
    monkeypatch.setattr(exchange, "MAX_STREAM_BYTES", 90_000)
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    sent = b""
    for _ in range(2_000):
        sent += streamed.feed(encode_event(event))
        if streamed.is_done:
            break
    assert errors(sent) == [why]


def test_comments_without_an_end_end(monkeypatch):
    """Signs of life and nothing else."""
    monkeypatch.setattr(exchange, "MAX_STREAM_BYTES", 90_000)
    streamed = StreamedExchange(translate_chat_request({**ASKING, "stream": True}, TranslationOptions()), 0)
    sent = b"".join(streamed.feed(b": ping\n\n" * 100) for _ in range(200))
    assert errors(sent) == ["the model server sent more than 90,000 bytes, and no end"]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        (HEAD + b"\r\n", lambda: iter(lambda: b"[" * 65_536, b"")),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n", lambda: iter([gzip.compress(b" " * 50_000_000)])),
        (HEAD, lambda: iter(lambda: b"X-More: " + b"a" * 4_000 + b"\r\n", b"")),
        (HEAD + b"X-One: ", lambda: iter(lambda: b"a" * 65_536, b"")),
        (b"", lambda: iter(lambda: b"a" * 65_536, b"")),
    ],
    ids=["body without an end", "gzip bomb", "flood of headers", "header without an end", "no HTTP"],
)
def test_floods_of_bytes_are_a_502(head, pieces):
    """Also for a server that looks at what is behind it first; the next request is answered like this one."""
    with answering(head, pieces) as upstream, serving(upstream) as url:
        for _ in range(2):
            status, said = post(url.removesuffix("/v1"), json.dumps(ASKING).encode())
            assert status == 502, said
