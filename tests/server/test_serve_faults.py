"""Faults of the model server, of the client or of other clients, as a client sees them."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import select
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from tests.command_line import started
from tests.http_requests import send
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving, serving_here


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedServer, str]]:
    with ScriptedServer() as upstream, serving(upstream.url, "--keep-alive", "0.3") as url:
        yield upstream, url


@pytest.fixture(scope="module")
def impatient(shared: tuple[ScriptedServer, str]) -> Iterator[openai.OpenAI]:
    """A client whose server waits one second for the model."""
    with serving(shared[0].url, "--patience", "1", "--keep-alive", "0.3") as url, connected(url) as client:
        yield client


def ask(client: openai.OpenAI, stream: bool, **fields: Any) -> Any:
    """Return the choice, assembled by the SDK if streamed."""
    fields = {"model": "m", "messages": ASK, "tools": TOOLS, **fields}
    if not stream:
        return client.chat.completions.create(**fields).choices[0]
    with client.chat.completions.stream(**fields) as events:
        return events.get_final_completion().choices[0]


def post(url: str, body: bytes, headers: dict[str, str] | None = None, path: str = CHAT) -> tuple[int, Any]:
    status, _, text = send(url, path, body, headers)
    return status, json.loads(text)


# ------------------------------------------------------------------ the model server


def test_buffered_upstream_answer_is_streamed(client, upstream):
    """Its JSON object becomes the chunks that the client expects."""
    upstream.on(CHAT, as_json(200, completion(f"I look.\n{CALL}")))
    choice = ask(client, True)
    assert choice.message.content == "I look."
    assert [call.function.arguments for call in choice.message.tool_calls] == ['{"path": "a.py"}']
    assert choice.finish_reason == "tool_calls"


@streamed_and_whole
@pytest.mark.parametrize("said", [b"<html>\n<h1>Sign in</h1>\n</html>", b"Service starting"])
def test_non_json_answer_is_reported(client, upstream, stream, said):
    """With status 200: the error quotes its beginning."""
    upstream.on(CHAT, Reply(200, said, "text/html"))
    with pytest.raises(openai.APIError, match=f"the model server sent invalid JSON: '{said.split()[0].decode()}"):
        ask(client, stream)


REASON = "no memory is left"
ERRORS: list[Any] = [
    {"error": REASON},
    {"error": {"error": REASON}},
    {"error": {"message": "failed", "metadata": {"raw": REASON}}},
    {"detail": REASON},
    {"detail": [{"loc": ["body"], "msg": REASON}]},
    {"message": REASON},
    {"errors": [{"message": REASON}]},
    {"type": "error", "error": {"type": "overloaded_error", "message": REASON}},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"message": REASON}}]},
]


@streamed_and_whole
@pytest.mark.parametrize("error", ERRORS, ids=json.dumps)
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses", "/api/chat"])
def test_reason_of_an_error_is_shown(url, upstream, stream, error, path):
    """In each of its shapes, with any status, and in the middle of a stream."""
    upstream.on(CHAT, as_json(400, error), as_json(200, error))
    upstream.on(
        CHAT, as_stream(delta("Hi"), error), as_stream(delta("Hi"), f"event: error\ndata: {REASON}", done=False)
    )
    body = {"model": "m", "messages": ASK, "input": "Hi", "max_tokens": 9, "stream": stream}
    for _ in range(4 if stream else 2):
        assert REASON in send(url, path, body)[2]


def test_page_of_a_gateway_is_shown_as_text(url, upstream):
    page = (
        b"<!DOCTYPE html><html><head><style>p {}</style><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    )
    upstream.on(CHAT, Reply(502, page, "text/html"))
    assert "returned 502: 502 Bad Gateway nginx. " in send(url, CHAT, {"messages": ASK, "tools": TOOLS})[2]


@streamed_and_whole
def test_compressed_answer_is_decoded(client, upstream, stream):
    """Some proxies compress answers although the request does not allow it."""
    plain = as_stream(delta(f"I look.\n{CALL}"), delta(None, "stop")) if stream else as_json(200, completion(CALL))
    gzipped = replace(plain, body=gzip.compress(plain.body), headers=(("Content-Encoding", "gzip"),))
    upstream.on(CHAT, gzipped, replace(gzipped, status=400, body=gzip.compress(b'{"error": {"message": "too long"}}')))
    assert [call.function.arguments for call in ask(client, stream).message.tool_calls] == ['{"path": "a.py"}']
    with pytest.raises(openai.BadRequestError, match="too long"):
        ask(client, stream)


@streamed_and_whole
def test_damaged_compression_is_an_error(client, upstream, stream):
    upstream.on(CHAT, Reply(200, b"not gzip", headers=(("Content-Encoding", "gzip"),)))
    with pytest.raises(openai.APIError):
        ask(client, stream)


def test_dropped_connection_is_reported(client, upstream):
    """Without the advice to start a server."""
    upstream.on(CHAT, Reply(0, b""))
    with pytest.raises(openai.InternalServerError, match=r"accepted the request but sent no answer .*log") as caught:
        ask(client, False)
    assert "Start a model server" not in str(caught.value)


def test_connection_that_closes_at_the_next_request_is_opened_again():
    """As at the end of the time that a server keeps an idle connection."""
    body = json.dumps(completion("Hi.")).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)

    class OneAnswer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for answer in (head + body, b""):
                size = 0
                while (line := self.rfile.readline()) not in (b"\r\n", b""):
                    size = int(line[15:]) if line.lower().startswith(b"content-length:") else size
                self.rfile.read(size)
                self.wfile.write(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), OneAnswer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with serving(f"http://127.0.0.1:{server.server_address[1]}", "--profile", "none") as url:
            request = json.dumps({"model": "m", "messages": ASK}).encode()
            assert [post(url.removesuffix("/v1"), request)[0] for _ in range(3)] == [200, 200, 200]
        server.shutdown()


@streamed_and_whole
def test_silent_upstream_returns_504(impatient, upstream, stream):
    """In a stream that keepalives have started, it is an error event."""
    upstream.on(CHAT, Reply(200, b"", length=10, linger_s=3))
    with pytest.raises(openai.APIError, match=r"sent nothing for 1 s.*--patience") as caught:
        ask(impatient, stream)
    assert stream or (isinstance(caught.value, openai.InternalServerError) and caught.value.status_code == 504)


def test_silence_mid_stream_is_an_error(impatient, upstream):
    """Not a normal end, so that the client does not accept a partial answer."""
    upstream.on(
        CHAT, Reply(200, as_stream(delta("I look"), done=False).body, "text/event-stream", length=999, linger_s=3)
    )
    with pytest.raises(openai.APIError, match="sent nothing for 1 s"):
        ask(impatient, True)


def test_truncated_buffered_answer_returns_502(client, upstream):
    body = json.dumps(completion(CALL)).encode()
    upstream.on(CHAT, Reply(200, body[:90], length=len(body)))
    with pytest.raises(openai.InternalServerError, match="in the middle of its answer") as caught:
        ask(client, False)
    assert caught.value.status_code == 502


@pytest.mark.parametrize(
    "garbage",
    [b"[" * 100_000, b"\xff\xfe\x00", b"7", b"{not json", b"[1, 2]", b'{"error": {"message": "out of memory"}}'],
)
def test_invalid_stream_data_is_an_error(client, upstream, garbage):
    sent = as_stream(delta("Hi"), done=False).body + b"data: " + garbage + b"\n\n"
    upstream.on(CHAT, Reply(200, sent, "text/event-stream"))
    with pytest.raises(openai.APIError, match=r"the model server sent|out of memory"):
        ask(client, True)


@pytest.mark.parametrize(
    "garbage", [b"", b"<html>", b"[" * 100_000, b"[]", b'{"choices": 7}', b'{"choices": [7]}', b"\xff"]
)
def test_invalid_buffered_data_is_an_error(client, upstream, garbage):
    """Also if no choice is an object."""
    upstream.on(CHAT, Reply(200, garbage))
    with pytest.raises(openai.InternalServerError, match="the model server") as caught:
        ask(client, False)
    assert caught.value.status_code == 502


def test_endless_event_is_rejected():
    """An endless line does not fill the memory."""

    def answer(_: Any) -> Iterator[Any]:
        yield delta("Hi")
        yield b"data: "
        for _ in range(90):
            yield b"x" * 100_000

    with (
        LiveUpstream(answer) as upstream,
        serving(upstream.url) as url,
        connected(url) as client,
        pytest.raises(openai.APIError, match="an event of more than 8,000,000 bytes"),
    ):
        ask(client, True)


def test_passthrough_ends_with_upstream(upstream, url):
    """The client's HTTP library notices the missing end."""
    upstream.on("/v1/models", Reply(200, b'{"data": [', length=999))
    with pytest.raises(http.client.IncompleteRead):
        send(url, "/v1/models")


# ---------------------------------------------------------- reasoning that the prompt opened


@pytest.fixture(scope="module")
def llama_cpp() -> Iterator[tuple[ScriptedServer, str]]:
    """A llama.cpp whose template opens reasoning."""
    with ScriptedServer() as upstream:
        template = "{{ messages }}<|im_start|>assistant\n<think>\n"
        props = {"default_generation_settings": {}, "chat_template": template, "model_path": "/models/thinker.gguf"}
        upstream.on("/props", as_json(200, props, server="llama.cpp"))
        prompt = "<think>old</think><|im_start|>user\ngeneration prompt?<|im_end|>\n<|im_start|>assistant\n<think>\n"
        upstream.on("/apply-template", as_json(200, {"prompt": prompt}))
        with serving(upstream.url) as url:
            yield upstream, url


THOUGHT = f"The user wants a.py. Maybe {CALL.replace('a.py', 'b.py')}?"


@streamed_and_whole
def test_reasoning_opened_by_prompt_is_split_off(llama_cpp, stream):
    """From the first chunk on; calls drafted in it are not calls."""
    upstream, url = llama_cpp
    upstream.replies.pop(CHAT, None)
    text = f"{THOUGHT}\n</think>\nI look.\n{CALL}"
    upstream.on(
        CHAT,
        as_stream(*map(delta, text), delta(finish_reason="stop")) if stream else as_json(200, completion(text)),
    )
    with connected(url) as client:
        message = ask(client, stream).message
    assert message.model_extra["reasoning_content"] == THOUGHT
    assert message.content == "I look."
    assert [call.function.arguments for call in message.tool_calls] == ['{"path": "a.py"}']
    assert upstream.bodies()[-1]["reasoning_format"] == "none"


def test_split_off_reasoning_is_not_expected_in_text(llama_cpp):
    """Older llama.cpp always splits it off: the text is the answer."""
    upstream, url = llama_cpp
    upstream.replies.pop(CHAT, None)
    events = [delta(reasoning_content="Hm."), *map(delta, f"I look.\n{CALL}"), delta(finish_reason="stop")]
    upstream.on(CHAT, as_stream(*events))
    with connected(url) as client:
        message = ask(client, True).message
    assert (message.content, message.model_extra["reasoning_content"]) == ("I look.", "Hm.")
    assert len(message.tool_calls) == 1


def test_enforced_call_precedes_reasoning(llama_cpp):
    """The grammar leaves no room for reasoning."""
    upstream, url = llama_cpp
    upstream.replies.pop(CHAT, None)
    upstream.on(CHAT, as_stream(*map(delta, CALL), delta(finish_reason="stop")))
    with connected(url) as client:
        message = ask(client, True, tool_choice="required").message
    assert [call.function.name for call in message.tool_calls] == ["read_file"]
    assert "grammar" in upstream.bodies()[-1]


# --------------------------------------------------------------------------- clients


def test_slow_client_slows_upstream():
    """Unread data stays at the model server: ours does not buffer it, and serves others."""
    sent = 0
    piece = delta("x" * 10_000)

    def answer(body: Any) -> Iterator[Any]:
        nonlocal sent
        if body["messages"][-1]["content"] != "flood":
            yield delta(CALL)
        else:
            for _ in range(8_000):  # 80 MB, or until somebody hangs up
                yield piece
                sent += 10_000
        yield delta(finish_reason="stop")

    with LiveUpstream(answer) as upstream, serving(upstream.url) as url, connected(url) as client:
        flood: Any = [{"role": "user", "content": "flood"}]
        stream = client.chat.completions.create(model="m", messages=flood, tools=TOOLS, stream=True)
        next(iter(stream))
        before = -1
        while sent != before:  # until it cannot send more
            before = sent
            time.sleep(0.5)
        assert sent < 20_000_000
        assert ask(client, True).message.tool_calls
        stream.close()
        assert upstream.hung_up.wait(100)


def kernel_buffers() -> int:
    """Return the most bytes that the kernel buffers for two connections; it enlarges their buffers as needed."""
    files = (Path(f"/proc/sys/net/ipv4/tcp_{name}") for name in ("rmem", "wmem"))
    return 2 * sum(int(file.read_text(encoding="utf-8").split()[2]) for file in files if file.exists())


@pytest.mark.parametrize("fields", [{"tools": TOOLS}, {}], ids=["tools", "no tools"])
def test_stalled_client_is_disconnected(fields):
    """Its stream is closed, the model server is stopped and its slot freed; memory is bounded until then."""
    sent = 0
    piece = delta("x" * 10_000)

    def answer(body: Any) -> Iterator[Any]:
        nonlocal sent
        for _ in range(40_000 if body["messages"][-1]["content"] == "flood" else 0):  # 400 MB
            yield piece
            sent += 10_000
        yield delta(finish_reason="stop")

    options = ("--stall", "0.5", "--max-streams", "1")
    with LiveUpstream(answer) as upstream, serving(upstream.url, *options) as url:
        flood = {"model": "m", "messages": [{"role": "user", "content": "flood"}], "stream": True, **fields}
        with sending(url, flood) as deaf:
            assert upstream.hung_up.wait(100)
            assert sent < 20_000_000 + kernel_buffers()
            with connected(url) as client:
                assert ask(client, True, **fields).finish_reason == "stop"
            assert is_broken_off(deaf)


def test_client_that_never_reads_answer_is_disconnected(upstream):
    """A buffered answer, which is in our memory."""
    upstream.on(CHAT, as_json(200, completion("x" * 7_000_000)))

    def is_given_up(seconds: float) -> bool:
        with sending(url, {"messages": ASK, "tools": TOOLS}) as deaf:
            time.sleep(seconds)
            return is_broken_off(deaf)

    with serving(upstream.url, "--stall", "0.5") as url:
        assert any(map(is_given_up, (2, 10, 30)))  # the more, the busier the machine is


def test_slow_client_is_not_disconnected(upstream):
    """As long as it reads something."""
    upstream.on(CHAT, as_json(200, completion("x" * 3_000_000)))
    with serving(upstream.url, "--stall", "2") as url, sending(url, {"messages": ASK, "tools": TOOLS}) as slow:
        received = slow.recv(100_000)
        while piece := slow.recv(100_000):
            received += piece
            time.sleep(0.1)
        assert received.endswith(b"}")
        assert len(received) > 3_000_000


@contextmanager
def sending(url: str, body: Any) -> Iterator[socket.socket]:
    """Return a connection with a sent request and a small receive buffer."""
    content, parts = json.dumps(body).encode(), urlsplit(url)
    with socket.socket() as connection:
        connection.settimeout(100)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.connect((parts.hostname, parts.port))
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(content) + content)
        yield connection


def is_broken_off(connection: socket.socket) -> bool:
    """Return whether the unread answer was cut off."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(1_000_000):
            received = received[-20:] + piece[-20:]
    return not received.endswith((b"0\r\n\r\n", b"}"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain", "Origin": "{own}"}, 415),
        ({"Content-Type": "", "Origin": "{own}"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 200),
        ({"Content-Type": ""}, 200),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/api/chat"])
def test_only_json_bodies_are_accepted(upstream, url, path, headers, status):
    """From web pages, which could send other types without a preflight; other clients need no type."""
    upstream.on(CHAT, as_json(200, completion("Hi.")))
    body = json.dumps({"model": "m", "messages": ASK, "tools": [], "stream": False, "max_tokens": 9}).encode()
    headers = {name: value.replace("{own}", url.removesuffix("/v1")) for name, value in headers.items()}
    actual, answer = post(url, body, headers, path)
    assert actual == status
    if status == 415:
        name = "Content-Encoding" if "Content-Encoding" in headers else "Content-Type application/json"
        assert name in json.dumps(answer)


DEEP = b'{"model": "m", "messages": ' + b"[" * 201 + b"]" * 201 + b"}"
DEEPER = b'{"model": "m", "messages": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", DEEP, DEEPER, b'{"messages": [{}], "tools": [{}]}'])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/api/chat"])
def test_invalid_body_returns_400(upstream, url, path, body):
    """In the API's own error format; nothing is forwarded."""
    status, answer = post(url, body, path=path)
    assert status == 400
    assert answer["error"]
    assert upstream.bodies(CHAT) == []


def raw(url: str, sent: bytes, timeout_s: float = 30) -> bytes:
    """Return everything received until the server closes."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=timeout_s) as connection:
        with suppress(OSError):  # it may be refused while it is being sent
            connection.sendall(sent)
        received = b""
        with suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                received += piece
        return received


HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
)


@pytest.mark.parametrize("stream", [False, True])
def test_http_1_0_client_gets_no_chunks(upstream, url, stream):
    """The end of the connection is the end of the body, as such clients expect it."""
    upstream.on(CHAT, as_stream(delta("Hi"), delta(finish_reason="stop")) if stream else as_json(200, completion("Hi")))
    body = json.dumps({"model": "m", "messages": ASK, "tools": TOOLS, "stream": stream}).encode()
    sent = HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Content-Length: %d\r\n\r\n" % len(body) + body
    head, _, answer = raw(url, sent).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert answer.endswith(b"\n\ndata: [DONE]\n\n") if stream else json.loads(answer)["choices"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", b"400"),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (HEAD + b"Host: localhost\r\nContent-Length: 2\r\n\r\n{}", b"400"),
        (HEAD + b"Origin: null\r\nOrigin: null\r\nContent-Length: 2\r\n\r\n{}", b"400"),
        (HEAD + b"X-Long: " + b"x" * 40_000, b"431"),
        (HEAD + b"X-Long: " + b"x" * 40_000 + b"\r\nContent-Length: 2\r\n\r\n{}", b"431"),
        (HEAD + b"X-Y: z\r\n" * 5_000, b"431"),
        (b"GET /" + b"x" * 40_000, b"431"),
        (b"\x16\x03\x01 this is TLS\r\n\r\n", b"400"),
    ],
    ids=[
        "two lengths",
        "length and chunks",
        "two hosts",
        "two origins",
        "long",
        "long and whole",
        "many",
        "url",
        "tls",
    ],
)
def test_ambiguous_head_is_rejected(url, sent, status):
    """And an oversized one, before it has arrived."""
    answer = raw(url, sent)
    assert re.match(rb"HTTP/1\.1 (\d+)", answer)
    assert status in answer.split(b"\r\n", 1)[0]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield a server in this process with short deadlines."""
    from adapter.server import http_limits, request_body

    monkeypatch.setattr(http_limits, "HEAD_S", 0.5)
    monkeypatch.setattr(request_body, "BODY_S", 0.5)
    monkeypatch.setattr(http_limits, "LINGER_S", 0.5)
    with ScriptedServer() as upstream, serving_here(upstream.url) as url:
        upstream.on(MODELS, as_json(200, {"object": "list", "data": []}))
        yield url


@pytest.mark.filterwarnings("ignore:Sending a large body")  # to the model server, in this process
@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/completions"])
@pytest.mark.parametrize("sent", [b"{", b" " * 2_000_000], ids=["nothing", "a part"])
def test_large_body_that_does_not_arrive_takes_no_room(monkeypatch, sent, path):
    """A client that announced 30 MB kept all other large requests waiting for ten seconds. A part of a body takes room,
    but only as long as more of it arrives."""
    from adapter.server import request_body

    monkeypatch.setattr(request_body, "GRACE_S", 0.2)
    monkeypatch.setattr(request_body, "BODY_S", 1_000.0 if sent == b"{" else 10.0)
    chat = json.dumps({"messages": [{"role": "user", "content": "x" * 3_000_000}]}).encode()
    with ScriptedServer() as upstream, serving_here(upstream.url) as url, ExitStack() as clients:
        upstream.on(CHAT, as_json(200, {"choices": [{"message": {"content": "Hi."}}]}))
        address = urlsplit(url).hostname, urlsplit(url).port
        silent = [clients.enter_context(socket.create_connection(address, timeout=30)) for _ in range(3)]
        for client in silent:
            client.sendall(HEAD.replace(b"/v1/chat/completions", path) + b"Content-Length: 30000000\r\n\r\n" + sent)
        answer = raw(url, HEAD + f"Content-Length: {len(chat)}\r\n\r\n".encode() + chat)
        assert answer.startswith(b"HTTP/1.1 200")
        if sent == b"{":
            assert select.select(silent, [], [], 0)[0] == []
        else:
            assert {client.recv(12) for client in silent} == {b"HTTP/1.1 408"}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b"408"),
        (HEAD, b"408"),
        (HEAD + b"Content-Length: 9\r\n\r\n{", b"408"),
        (HEAD.replace(b"close", b"keep-alive") + b"Content-Length: 9\r\n\r\n{", b"408"),
        (HEAD.replace(b"close", b"keep-alive") + b"Content-Length: 99000000\r\n\r\n{", b"413"),
    ],
    ids=["nothing", "half a head", "half a body", "kept alive", "refused"],
)
def test_slow_request_head_is_closed(hasty, sent, status):
    """With no data or a bit; others are served meanwhile."""
    answers: list[bytes] = []
    slow = threading.Thread(target=lambda: answers.append(raw(hasty, sent)))
    slow.start()
    assert json.loads(send(hasty, "/v1/models")[2]) == {"object": "list", "data": []}
    slow.join(100)
    assert [answer.split(b" ", 2)[1] for answer in answers] == [status]


def test_trickling_head_is_closed(hasty):
    """The deadline applies to the whole head."""
    parts = urlsplit(hasty)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=100) as connection:
        received = b""
        connection.settimeout(0.1)
        for byte in HEAD * 10:
            try:
                connection.sendall(bytes([byte]))
                received = connection.recv(100)
                break
            except TimeoutError:
                continue
        assert received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer sesame"}, 200),
        *(({name: "sesame"}, 200) for name in ("X-Api-Key", "Api-Key", "X-Goog-Api-Key")),
        *(({name: "wrong"}, 401) for name in ("X-Api-Key", "Api-Key", "X-Goog-Api-Key")),
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer s\xe9same"}, 401),
    ],
)
def test_api_key_is_required_if_set(upstream, guarded, headers, status):
    """In any client's header; it is not forwarded."""
    upstream.on(CHAT, as_json(200, completion("Hi.")))
    body = json.dumps({"model": "m", "messages": ASK, "tools": TOOLS}).encode()
    assert post(guarded, body, headers)[0] == status
    assert all("sesame" not in str(asked) for _, asked, _ in upstream.requests)


@pytest.fixture(scope="module")
def guarded(shared: tuple[ScriptedServer, str]) -> Iterator[str]:
    with serving(shared[0].url, "--api-key", "sesame") as url:
        yield url


@pytest.mark.parametrize("path", ["/healthz", "/health/v1/models", "/ready/x", "/view/", "/metrics", "/"])
def test_only_the_state_of_the_server_needs_no_key(guarded, path):
    assert send(guarded, path)[0] == 401
    assert send(guarded, "/health")[0] == 200


def test_public_host_generates_api_key():
    """And logs it."""
    words = ("--upstream", "http://127.0.0.1:9", "--port", "0", "--host", "0.0.0.0", "--retry", "0")
    with started("serve", *words) as run:
        log = run.first_lines(3)
        port = re.search(r":(\d+)/v1,", log)
        key = re.search(r"clients need this API key: (\S+)$", log, re.MULTILINE)
        assert port
        assert key
        here = f"http://127.0.0.1:{port[1]}"
        assert post(here, b"{}")[0] == 401
        assert post(here, b"{}", {"Authorization": f"Bearer {key[1]}"})[0] == 502


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_no_connection_stays_open(hasty):
    """After clients that came and went, as many descriptors as before."""
    send(hasty, "/v1/models")
    before = open_descriptors()
    for _ in range(30):
        send(hasty, "/v1/models")
        parts = urlsplit(hasty)
        socket.create_connection((parts.hostname or "", parts.port or 0)).close()
    deadline = time.monotonic() + 100
    while open_descriptors() > before + 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert open_descriptors() <= before + 3


@streamed_and_whole
@pytest.mark.parametrize("separate", [True, False], ids=["separate", "in the text"])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses", "/api/chat"])
def test_answer_of_reasoning_only_is_shown_as_text(url, upstream, stream, separate, path):
    """After the model was asked for an answer, if the request has tools. Clients would show nothing."""
    message = {"reasoning_content": "It is 7."} if separate else {"content": "<think>It is 7.</think>"}
    whole = completion("")
    whole["choices"][0]["message"] |= message
    upstream.on(CHAT, as_stream(delta(**message), delta(finish_reason="stop")) if stream else as_json(200, whole))
    body = {"model": "qwen3", "messages": ASK, "input": "Hi", "max_tokens": 9, "stream": stream}
    if path == CHAT:
        body["tools"] = TOOLS
    text = send(url, path, body)[2].replace('"reasoning_content":"It is 7."', "").replace('"thinking":"It is 7."', "")
    text = re.sub(r'"type":"(reasoning_text|thinking)","text":"It is 7."', "", text)
    assert '"content":"It is 7."' in text or '"text":"It is 7."' in text
