"""The unmodified openai SDK with `adapter serve` as a process, in front of scripted model servers."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
import pytest

from tests.command_line import adapter
from tests.http_requests import send
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

SECOND = CALL.replace("a.py", "b.py")
CUT = CALL[:40]


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedServer, str]]:
    """Yield a model server and ours in front of it, shared by this module."""
    with ScriptedServer() as upstream, serving(upstream.url, "--keep-alive", "0.2") as url:
        yield upstream, url


def scripted_answer(text: str, finish_reason: str, stream: bool, reasoning: str = "") -> Reply:
    """The same answer in one piece, or character by character."""
    if not stream:
        whole = completion(text, finish_reason)
        whole["choices"][0]["message"] |= {"reasoning_content": reasoning} if reasoning else {}
        return as_json(200, whole)
    thought = [delta(reasoning_content=reasoning)] if reasoning else []
    return as_stream(delta(role="assistant"), *thought, *map(delta, text), delta(finish_reason=finish_reason))


def ask(client: openai.OpenAI, stream: bool, **fields: Any) -> tuple[Any, Any]:
    """Return the message and the finish reason, assembled by the SDK if streamed."""
    fields = {"model": "qwen3", "messages": ASK, "tools": TOOLS, **fields}
    if not stream:
        (choice,) = client.chat.completions.create(**fields).choices
        return choice.message, choice.finish_reason
    chunks = list(client.chat.completions.create(stream=True, **fields))
    joined = _Joined(chunks)
    return joined, chunks[-1].choices[0].finish_reason


class _Joined:
    """Assemble chunks like clients, which tests their shape."""

    def __init__(self, chunks: list[Any]) -> None:
        deltas = [chunk.choices[0].delta for chunk in chunks]
        assert [each.role for each in deltas if each.role] == ["assistant"]
        assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
        self.content = "".join(each.content or "" for each in deltas) or None
        self.reasoning_content = "".join(getattr(each, "reasoning_content", None) or "" for each in deltas)
        self.tool_calls: list[Any] = []
        for call in (call for each in deltas for call in each.tool_calls or ()):
            if call.index == len(self.tool_calls):
                assert call.id
                assert call.function.name
                self.tool_calls.append(call)
            else:
                assert call.index == len(self.tool_calls) - 1
                assert not call.id
                assert not call.function.name
                self.tool_calls[-1].function.arguments += call.function.arguments


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


@streamed_and_whole
@pytest.mark.parametrize(
    ("text", "said", "content", "paths", "finish_reason"),
    [
        (CALL, "stop", None, ["a.py"], "tool_calls"),
        (f"{CALL}\n{SECOND}", "stop", None, ["a.py", "b.py"], "tool_calls"),
        (f"I look.\n{CALL}", "stop", "I look.", ["a.py"], "tool_calls"),
        ("Nothing to do.", "stop", "Nothing to do.", [], "stop"),
        ("Far too lo", "length", "Far too lo", [], "length"),
        (CUT, "length", "", [], "length"),
        (f"{CALL}\n{CUT}", "length", "", ["a.py"], "length"),
    ],
    ids=["one call", "parallel", "text and call", "text", "cut text", "cut call", "call and cut call"],
)
def test_answer_contains_tool_call(client, upstream, stream, text, said, content, paths, finish_reason):
    """The client gets the same streamed or not; a cut call is dropped."""
    upstream.on(CHAT, scripted_answer(text, said, stream))
    message, finished = ask(client, stream)
    assert (message.content or "").strip() == (content or "").strip()
    assert calls_of(message) == [("read_file", {"path": path}) for path in paths]
    assert finished == finish_reason
    assert len({call.id for call in message.tool_calls or ()}) == len(paths)


@streamed_and_whole
def test_call_cut_by_the_model_servers_limit_is_continued(client, upstream, stream):
    upstream.on(CHAT, scripted_answer(CUT, "length", stream), scripted_answer(SECOND[len(CUT) :], "stop", stream))
    message, finished = ask(client, stream)
    assert (calls_of(message), finished) == ([("read_file", {"path": "b.py"})], "tool_calls")
    assert [body["messages"][-1]["role"] for body in upstream.bodies()[-2:]] == ["user", "assistant"]


@streamed_and_whole
@pytest.mark.parametrize("by_server", [True, False], ids=["told by the server", "in the text"])
def test_reasoning_is_separate(client, upstream, stream, by_server):
    """Both in the server's own field and as ``<think>``; it contains no calls."""
    thought = f"Maybe {SECOND}? No."
    reply = (
        scripted_answer(CALL, "stop", stream, reasoning=thought)
        if by_server
        else scripted_answer(f"<think>{thought}</think>{CALL}", "stop", stream)
    )
    upstream.on(CHAT, reply)
    message, _ = ask(client, stream)
    assert message.reasoning_content == thought
    assert calls_of(message) == [("read_file", {"path": "a.py"})]


def test_conversation_is_sent_as_plain_text(client, upstream):
    """No tools, calls or tool results, but text in the model's format; other fields unchanged; no client key."""
    upstream.on(CHAT, as_json(200, completion("It is empty.")))
    call = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
    history: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "x = 1"}]},
        {"role": "user", "content": "And?"},
    ]
    client.chat.completions.create(model="qwen3", messages=history, tools=TOOLS, extra_body={"top_k": 7})
    (body,) = upstream.bodies()
    system, *rest = body.pop("messages")
    assert system["role"] == "system"
    assert system["content"].startswith("Be brief.\n\n# Tools")
    assert rest == [
        *ASK,
        {"role": "assistant", "content": CALL},
        {"role": "user", "content": "<tool_response>\nx = 1\n</tool_response>\n\nAnd?"},
    ]
    assert body == {"model": "qwen3", "top_k": 7, "stop": ["<|im_end|>"]}
    ((_, headers, _),) = [asked for asked in upstream.requests if asked[0] == CHAT]
    assert "authorization" not in headers


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"Done.\n{CALL.replace('read_file', 'read_file_of_another')}", "Done."),
        ('Done.\n<tool_call>\n{"name": "read_file", "arguments": {"wrong": "private"}}\n</tool_call>', "Done."),
        ('<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}, "note": "private"}\n</tool_call>', None),
        ("<tool_call>\n<!-- private -->\n" + '{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>', None),
    ],
)
def test_no_client_gets_text_that_the_model_wrote_for_another(client, upstream, written, shown):
    """Its text is repeated for the same answer, but only after the same messages."""
    upstream.on(CHAT, scripted_answer(written, "stop", False))
    mine, _ = ask(client, False, messages=[{"role": "user", "content": "Mine."}])
    calls = [each.model_dump() for each in mine.tool_calls or ()]
    for each in calls:
        each["id"] = "another"
    answer = {"role": "assistant", "content": shown, **({"tool_calls": calls} if calls else {})}
    results = [{"role": "tool", "tool_call_id": "another", "content": "ok"} for _ in calls]
    sent = len(upstream.bodies())
    ask(client, False, messages=[{"role": "user", "content": "Yours."}, answer, *results, *ASK])
    assert written not in json.dumps(upstream.bodies()[sent], ensure_ascii=False)
    assert "private" not in json.dumps(upstream.bodies()[sent])


@streamed_and_whole
def test_named_tool_choice_allows_only_it(client, upstream, stream):
    """The prompt names it, and calls of other tools are dropped."""
    other = {"type": "function", "function": {"name": "list_directory", "parameters": {"type": "object"}}}
    wrong = '<tool_call>\n{"name": "list_directory", "arguments": {}}\n</tool_call>'
    upstream.on(CHAT, scripted_answer(f"{wrong}\n{CALL}", "stop", stream))
    choice = {"type": "function", "function": {"name": "read_file"}}
    message, _ = ask(client, stream, tools=[*TOOLS, other], tool_choice=choice)
    assert calls_of(message) == [("read_file", {"path": "a.py"})]
    assert not message.content
    assert upstream.bodies()[0]["messages"][-1]["content"].endswith("Answer with a call to read_file.")


@streamed_and_whole
def test_disabled_parallel_calls_return_one_call(client, upstream, stream):
    """The first; further calls are dropped."""
    upstream.on(CHAT, scripted_answer(f"{CALL}\n{SECOND}", "stop", stream))
    message, finish_reason = ask(client, stream, parallel_tool_calls=False)
    assert calls_of(message) == [("read_file", {"path": "a.py"})]
    assert finish_reason == "tool_calls"


def test_usage_is_sent_on_request(client, upstream):
    """In a last chunk without choices, as from OpenAI."""
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    last = {**delta(), "choices": [], "usage": usage}
    upstream.on(CHAT, as_stream(delta(CALL), delta(finish_reason="stop"), last))
    options: Any = {"include_usage": True}
    stream = client.chat.completions.create(
        model="m", messages=ASK, tools=TOOLS, stream=True, stream_options=options, parallel_tool_calls=False
    )
    *_, final = stream
    assert (final.choices, final.usage.total_tokens) == ([], 7)
    assert upstream.bodies()[0]["stream_options"] == options


def test_choices_do_not_mix(client, upstream):
    """With ``n`` each choice has its own text and calls."""

    def of(index: int, text: str | None, finish_reason: str | None = None) -> dict[str, Any]:
        event = delta(text, finish_reason)
        event["choices"][0]["index"] = index
        return event

    pieces = [of(index, text[at]) for at in range(len(CALL)) for index, text in enumerate((CALL, SECOND))]
    upstream.on(CHAT, as_stream(*pieces, of(1, None, "stop"), of(0, None, "stop")))
    with client.chat.completions.stream(model="m", messages=ASK, tools=TOOLS, n=2) as stream:
        choices = stream.get_final_completion().choices
    assert [calls_of(choice.message) for choice in choices] == [
        [("read_file", {"path": "a.py"})],
        [("read_file", {"path": "b.py"})],
    ]
    assert choices[0].message.tool_calls[0].id != choices[1].message.tool_calls[0].id


def test_upstream_error_is_converted_to_openai_shape(client, upstream):
    """Ollama's error is a string."""
    upstream.on(CHAT, as_json(400, {"error": "no such thing"}))
    with pytest.raises(openai.BadRequestError, match="no such thing") as caught:
        ask(client, False)
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "read_fil"}}}, "tool_choice"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0]"),
        ({"tools": [{"type": "function"}]}, "tools"),
    ],
)
def test_invalid_request_names_field(client, upstream, fields, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, False, **fields)
    assert caught.value.param == param
    assert upstream.bodies() == []


def test_missing_upstream_returns_502(upstream):
    """With the address and the next step."""
    with ScriptedServer() as gone:
        dead = gone.url
    with (
        serving(dead, "--retry", "0") as url,
        connected(url) as client,
        pytest.raises(openai.InternalServerError, match="no server answers at") as caught,
    ):
        ask(client, True)
    assert caught.value.status_code == 502


def test_other_requests_pass_through(client, upstream, url):
    """Models, chats without tools, unknown paths; /health is answered by both."""
    upstream.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    upstream.on("/version", as_json(200, {"version": "1"}))
    upstream.on(CHAT, as_json(200, completion(CALL)))
    assert [model.id for model in client.models.list()] == ["m"]
    assert client.chat.completions.create(model="m", messages=ASK).choices[0].message.content == CALL
    assert get(url, "/version") == (200, {"version": "1"})
    assert get(url, "/health")[0] == 200
    assert get(url, "/nowhere")[0] == 404
    get(url, "/v1/models/a%2Fb?c=%20d")
    assert upstream.requests[-1][0] == "/v1/models/a%2Fb?c=%20d"


def test_occupied_port_is_reported(url, upstream):
    """Exit code 2 and the next step."""
    port = str(urlsplit(url).port)
    done = adapter("serve", "--upstream", upstream.url, "--port", port)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Choose another --port" in done.stderr
    assert "--port" in done.stderr


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat", "/v1/embeddings"])
def test_oversized_bodies_are_rejected(upstream, url, path):
    """By their announced, actual and in-memory size; the server keeps running."""
    upstream.on(MODELS, as_json(200, {"object": "list", "data": []}))
    netloc = urlsplit(url).netloc
    for body, headers, status in (
        (b"", {"Content-Length": "200000000"}, 413),
        (iter([b"x" * 1_000_000] * 40), {"Transfer-Encoding": "chunked"}, 413),
        (b"[" + b"[]," * 1_000_001 + b"[]]", {}, 400),
        (b"[" * 1_000_000, {}, 400),
    ):
        if status == 400 and path == "/v1/embeddings":
            continue  # passed on as it is
        connection = http.client.HTTPConnection(netloc)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            headers = {"Content-Type": "application/json", **headers}
            connection.request("POST", path, body, headers, encode_chunked="Transfer-Encoding" in headers)
        response = connection.getresponse()
        assert (response.status, b"the request body" in response.read()) == (status, True)
        connection.close()
    assert get(url, "/v1/models")[0] == 200


def get(url: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    status, _, text = send(url, path, headers=headers)
    return status, json.loads(text)


def test_call_is_sent_on_close_with_keepalives_before():
    """Text at once, keepalives while the call is written, and the call before the model continues."""
    close_call, end = threading.Event(), threading.Event()

    def answer(_: Any) -> Iterator[Any]:
        yield delta("I look.\n")
        yield delta(CUT)
        assert close_call.wait(100)
        yield delta(CALL.removeprefix(CUT))
        assert end.wait(100)
        yield delta(finish_reason="stop")

    with LiveUpstream(answer) as upstream, serving(upstream.url, "--keep-alive", "0.1") as url:
        lines = raw_stream(url)
        assert "I look." in next(line for line in lines if '"content":"I' in line)
        assert next(line for line in lines if line) == ": ping"
        close_call.set()
        assert "a.py" in next(line for line in lines if "tool_calls" in line)
        end.set()
        assert [line for line in lines if line][-1] == "data: [DONE]"


def raw_stream(url: str) -> Iterator[str]:
    body = json.dumps({"model": "m", "messages": ASK, "tools": TOOLS, "stream": True})
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=100)
    try:
        connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
        for line in connection.getresponse():
            yield line.decode().rstrip("\n")
    finally:
        connection.close()


def test_arguments_stream_on_request():
    """Fragments that join to the call, the first while the model is still writing."""
    go_on = threading.Event()
    tools: Any = [
        {
            "type": "function",
            "function": {"name": "search", "parameters": {"properties": {"query": {"type": "string"}}}},
        }
    ]
    start, end = f'<tool_call>\n{{"name": "search", "arguments": {{"query": "{"a" * 100}', '.py"}}\n</tool_call>'

    def answer(_: Any) -> Iterator[Any]:
        yield from map(delta, start)
        assert go_on.wait(100)
        yield delta(end)
        yield delta(finish_reason="stop")

    with LiveUpstream(answer) as upstream, serving(upstream.url, "--stream-arguments") as url, connected(url) as client:
        stream = client.chat.completions.create(model="qwen3", messages=ASK, tools=tools, stream=True)
        chunks = []
        for chunk in stream:
            chunks.append(chunk)
            if chunk.choices[0].delta.tool_calls:
                go_on.set()
    assert calls_of(_Joined(chunks)) == [("search", {"query": f"{'a' * 100}.py"})]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_slow_first_chunk_starts_stream_with_keepalive():
    """A prompt that takes minutes must not look like a dead connection."""
    go_on = threading.Event()

    def answer(_: Any) -> Iterator[Any]:
        assert go_on.wait(100)
        return iter([delta(CALL), delta(finish_reason="stop")])

    with LiveUpstream(answer) as upstream, serving(upstream.url, "--keep-alive", "0.1") as url:
        lines = raw_stream(url)
        assert next(lines) == ": ping"
        go_on.set()
        assert any("a.py" in line for line in lines)


@streamed_and_whole
def test_client_disconnect_stops_model(stream):
    """Its connection is closed, which stops model servers."""
    began = threading.Event()

    def answer(_: Any) -> Iterator[Any]:
        yield delta("I")
        began.set()
        for _ in range(2_000):  # until somebody hangs up
            yield delta(" think")
            time.sleep(0.05)

    with LiveUpstream(answer) as upstream, serving(upstream.url) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=100)
        body = json.dumps({"model": "m", "messages": ASK, "tools": TOOLS, "stream": stream})
        connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
        assert began.wait(100)
        connection.close()
        assert upstream.hung_up.wait(100)


def test_concurrent_streams_do_not_mix():
    """64 clients, each with its own call."""
    together = threading.Barrier(64, timeout=60)

    def answer(body: Any) -> Iterator[Any]:
        number = body["messages"][-1]["content"]
        together.wait()
        for character in f"This is {number}.\n{CALL.replace('a.py', number)}":
            yield delta(character)
        yield delta(finish_reason="stop")

    async def one(client: openai.AsyncOpenAI, number: str) -> tuple[str, list[tuple[str, Any]]]:
        messages: list[Any] = [{"role": "user", "content": number}]
        stream = await client.chat.completions.create(model="qwen3", messages=messages, tools=TOOLS, stream=True)
        joined = _Joined([chunk async for chunk in stream])
        return joined.content or "", calls_of(joined)

    async def all_of_them(url: str) -> list[tuple[str, list[tuple[str, Any]]]]:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            return await asyncio.gather(*(one(client, f"n{number}") for number in range(64)))

    with LiveUpstream(answer) as upstream, serving(upstream.url) as url:
        answers = asyncio.run(all_of_them(url))
    assert [(content.strip(), calls) for content, calls in answers] == [
        (f"This is n{number}.", [("read_file", {"path": f"n{number}"})]) for number in range(64)
    ]


@pytest.mark.model
def test_real_model_makes_valid_call(real_weights):
    """SmolLM2 in a real llama.cpp, which never calls a tool unless required: the grammar enforces the call."""
    from adapter.backends.in_process_llama_cpp import EmbeddedServer

    with EmbeddedServer(real_weights) as engine, serving(engine.endpoint.base_url) as url, connected(url) as client:
        for stream in (True, False):
            message, finish_reason = ask(
                client, stream, model="any", tool_choice="required", temperature=0, max_tokens=200
            )
            ((name, arguments),) = calls_of(message)
            assert (name, list(arguments), finish_reason) == ("read_file", ["path"], "tool_calls")


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/v1/messages", "/api/tags"])
def test_protocol_change_of_the_upstream_is_a_bad_gateway(path):
    """Status 101 belongs to one connection, and is not an answer for the client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def change_protocol() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")

    thread = threading.Thread(target=change_protocol, daemon=True)
    thread.start()
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    try:
        with serving(f"http://127.0.0.1:{listener.getsockname()[1]}") as url:
            root = url.removesuffix("/v1")
            is_get = path in ("/v1/models", "/api/tags")
            response = httpx.request(
                "GET" if is_get else "POST", root + path, json=None if is_get else body, timeout=30, trust_env=False
            )
            assert response.status_code == 502
            assert "changed the protocol" in response.text
    finally:
        listener.close()
