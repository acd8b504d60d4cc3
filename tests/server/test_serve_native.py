"""Servers that reject tools despite a profile for native tool calling, and the API key of remote servers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from adapter.backends.endpoint_discovery import Endpoint
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.anthropic_response import AnthropicWriter
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.sse import encode_event
from adapter.protocols.translation_options import TranslationOptions
from adapter.protocols.upstream_failures import refuses_tools
from adapter.server.app import ServerSettings, build_uvicorn_config
from adapter.server.model_server import ModelServer
from adapter.server.upstream_connection import KeyRedactor
from tests.http_requests import send
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_exchanges import ERRORS
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

NATIVE = "/api/chat"
REFUSALS = {each.path: each.reply for each in ERRORS if "does not support tools" in each.words}
"""Errors as Ollama generates them."""
FUNCTION = TOOLS[0]["function"]
ANTHROPICS = [{"name": "read_file", "description": "", "input_schema": FUNCTION["parameters"]}]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ScriptedServer, str]]:
    profile = tmp_path_factory.mktemp("profile") / "native.toml"
    profile.write_text('[model]\nname = "m"\nserver = "ollama"\n[use]\nnative = true\n')
    with ScriptedServer() as upstream:
        upstream.on("/api/version", as_json(200, {"version": "0.0.0"}))
        with serving(upstream.url, "--profile", str(profile)) as url:
            yield upstream, url


@pytest.fixture
def upstream(shared: tuple[ScriptedServer, str]) -> Iterator[ScriptedServer]:
    yield shared[0]
    for path in (CHAT, NATIVE):
        shared[0].replies.pop(path, None)
    shared[0].requests.clear()


def post(url: str, path: str, body: Any) -> tuple[int, str]:
    status, _, text = send(url, path, body)
    return status, text


@streamed_and_whole
@pytest.mark.parametrize(("path", "tools"), [(CHAT, TOOLS), ("/v1/messages", ANTHROPICS)])
def test_rejected_tools_are_sent_as_text(shared, upstream, path, tools, stream):
    """For the rejected request and all later ones of its model, without trying again."""
    written = as_stream(delta(CALL), delta(finish_reason="stop")) if stream else as_json(200, completion(CALL))
    upstream.on(CHAT, REFUSALS[CHAT], written)
    model = f"{path}{stream}"
    body = {"model": model, "messages": ASK, "tools": tools, "stream": stream, "max_tokens": 99}
    for _ in range(2):
        status, answer = post(shared[1], path, body)
        assert status == 200
        assert "read_file" in answer
        assert "a.py" in answer
    assert ["tools" in asked for asked in upstream.bodies(CHAT)] == [True, False, False]


@streamed_and_whole
def test_ollama_api_sends_rejected_tools_as_text(shared, upstream, stream):
    """When requests pass through to an Ollama."""
    message = {"model": "m", "message": {"role": "assistant", "content": CALL}, "done": True, "done_reason": "stop"}
    written = Reply(200, json.dumps(message).encode() + b"\n", "application/x-ndjson" if stream else "application/json")
    upstream.on(NATIVE, REFUSALS[NATIVE], written)
    body = {"model": f"smol{stream}", "messages": ASK, "tools": TOOLS, "stream": stream}
    for _ in range(2):
        status, answer = post(shared[1], NATIVE, body)
        calls = [call for line in answer.splitlines() for call in json.loads(line)["message"].get("tool_calls") or ()]
        assert (status, [call["function"]["name"] for call in calls]) == (200, ["read_file"])
    assert ["tools" in asked for asked in upstream.bodies(NATIVE)] == [True, False, False]


@streamed_and_whole
def test_tools_without_a_grammar_are_sent_as_text(shared, upstream, stream):
    """Only for this request, because the schemas of its tools are the cause (ggml-org/llama.cpp#25895)."""
    written = as_stream(delta(CALL), delta(finish_reason="stop")) if stream else as_json(200, completion(CALL))
    refusal = as_error(400, "Failed to initialize samplers: failed to parse grammar")
    upstream.on(CHAT, refusal, written, refusal, written)
    for _ in range(2):
        status, answer = post(shared[1], CHAT, {"model": "m", "messages": ASK, "tools": TOOLS, "stream": stream})
        assert status == 200
        assert "a.py" in answer
    assert ["tools" in asked for asked in upstream.bodies(CHAT)] == [True, False] * 2


@pytest.mark.parametrize("fields", [{"tools": TOOLS}, {}], ids=["tools", "no tools"])
@streamed_and_whole
def test_limit_is_sent_in_the_field_of_ollama(shared, upstream, stream, fields):
    """Ollama ignores ``max_completion_tokens`` (ollama/ollama#7125)."""
    upstream.on(CHAT, as_stream(delta("Hi.", "stop")) if stream else as_json(200, completion("Hi.")))
    body = {"model": "m", "messages": ASK, "stream": stream, "max_completion_tokens": 9, **fields}
    assert post(shared[1], CHAT, body)[0] == 200
    assert upstream.bodies(CHAT)[0]["max_tokens"] == 9


@streamed_and_whole
def test_other_errors_are_passed_on(shared, upstream, stream):
    """And nothing is sent twice."""
    upstream.on(CHAT, as_error(400, "the moon is full"))
    status, answer = post(shared[1], CHAT, {"model": "m", "messages": ASK, "tools": TOOLS, "stream": stream})
    assert (status, json.loads(answer)["error"]["message"]) == (400, "the moon is full")
    assert len(upstream.bodies(CHAT)) == 1


@pytest.mark.parametrize(
    "said",
    [
        "registry.ollama.ai/library/smollm2:135m does not support tools",
        "tools param requires --jinja flag",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "No endpoints found that support tool use.",
    ],
)
def test_refuses_tools_ignores_other_errors(said):
    assert refuses_tools(400, said)
    assert not refuses_tools(200, said)
    assert not refuses_tools(400, "tools[0] must have a name")


def test_unsupported_tools_are_logged_once_per_model(capsys):
    """In the log."""
    upstream = ModelServer("http://127.0.0.1:9/v1", TranslationOptions())
    said = REFUSALS[CHAT].body
    assert [upstream.detected.refuses_tools(400, said, name) for name in ("m", "m", "n")] == [True] * 3
    assert capsys.readouterr().err.splitlines() == [
        "the model server does not support tools for m; they are now described in the prompt",
        "the model server does not support tools for n; they are now described in the prompt",
    ]


# ------------------------------------------------------------------------- the key


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Yield a server at a remote address, which gets this key."""
    monkeypatch.setenv("OPENAI_API_KEY", "open-sesame")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(Endpoint, "is_local", property(lambda endpoint: False))


@contextmanager
def serving_far(upstream: str, profile: str = "none") -> Iterator[str]:
    """Yield a server in this process, in front of an address that ``far`` declares remote."""
    settings = ServerSettings(upstream + "/v1", profile=profile)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(build_uvicorn_config(settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_model_queries_send_api_key(far):
    """For its kind, its models and their capabilities."""
    with ScriptedServer() as upstream:
        upstream.on("/api/version", as_json(200, {"version": "0.0.0"}))
        upstream.on(MODELS, as_json(200, {"data": [{"id": "m"}]})).on(CHAT, as_json(200, completion("Hi.")))
        with serving_far(upstream.url, "auto") as url:
            assert post(url, CHAT, {"model": "m", "messages": ASK, "tools": TOOLS})[0] == 200
        asked = {path for path, _, _ in upstream.requests}
        assert {"/api/version", MODELS, CHAT} <= asked
        assert {headers.get("authorization") for _, headers, _ in upstream.requests} == {"Bearer open-sesame"}


def test_local_upstream_gets_no_api_key(far):
    with ScriptedServer() as upstream:
        upstream.on(CHAT, as_json(200, completion("Hi.")))
        with serving(upstream.url, "--profile", "auto") as url:
            assert post(url, CHAT, {"model": "m", "messages": ASK, "tools": TOOLS})[0] == 200
        assert all("authorization" not in headers for _, headers, _ in upstream.requests)


@pytest.mark.parametrize("fields", [{"tools": TOOLS}, {}], ids=["tools", "no tools"])
def test_repeated_api_key_is_redacted(far, fields):
    """In parsed and passed-through streams, at any split."""
    stream = b"".join(
        f"data: {json.dumps(event)}\n\n".encode() for event in (delta("a open-sesame b"), delta("", "stop"))
    )

    def answer(_: Any) -> Iterator[bytes]:
        yield from (stream[start : start + 7] for start in range(0, len(stream), 7))

    with LiveUpstream(answer) as upstream, serving_far(upstream.url) as url:
        status, said = post(url, CHAT, {"model": "m", "messages": ASK, "stream": True, **fields})
    assert status == 200
    assert "sesame" not in said
    assert "[redacted]" in said


@given(st.lists(st.text("key+-", max_size=6), max_size=8), st.text("key+", min_size=1, max_size=4))
def test_redactor_removes_key_at_any_split(pieces, key):
    """As if the text came in one piece; without a key nothing changes."""
    remover = KeyRedactor(key.encode())
    written = b"".join(remover.feed(piece.encode()) for piece in pieces) + remover.close()
    assert written == "".join(pieces).replace(key, "[redacted]").encode()


def _call(index: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": f"c{index}", "type": "function", "function": function}])


READ, LIST = _call(0, "read_file", '{"path": "a.py"}'), _call(1, "list", "{}")


@pytest.mark.parametrize("streams", [False, True], ids=["whole arguments", "streamed arguments"])
@pytest.mark.parametrize(
    ("fields", "events", "names", "reason"),
    [
        ({"parallel_tool_calls": False}, [READ, LIST], ["read_file"], "tool_calls"),
        ({}, [_call(0, "", '{"path": "a.py"}')], [], "stop"),
        ({}, [_call(0, "", '{"path": '), _call(0, "read_file", '"a.py"}')], ["read_file"], "tool_calls"),
        ({}, [READ, LIST], ["read_file", "list"], "tool_calls"),
        ({}, [READ, _call(0, "read_file", " ")], ["read_file"], "tool_calls"),
    ],
    ids=["one call at a time", "no name", "late name", "two calls", "name and id again"],
)
def test_parsed_calls_are_checked(fields, events, names, reason, streams):
    """Sources: the tests of Dynamo (``stream_converter.rs``) and of the AI SDK."""
    options = TranslationOptions(native=True, stream_arguments=streams)
    request = translate_chat_request({"messages": ASK, "tools": TOOLS, "stream": True, **fields}, options)
    exchange = StreamedExchange(request, 0)
    ended = delta(finish_reason="tool_calls")
    sent = [exchange.feed(encode_event(each)) for each in (*events, ended)] + [exchange.close()]
    chunks = [json.loads(line[6:]) for line in b"".join(sent).splitlines() if line.startswith(b"data: {")]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    calls = [call["function"] for each in choices for call in each["delta"].get("tool_calls", ())]
    assert [call["name"] for call in calls if "name" in call] == names
    assert choices[-1]["finish_reason"] == reason


@streamed_and_whole
def test_incomplete_parsed_call_is_left_out(stream):
    """Although the server says that the answer is complete. Source: Dynamo, ``test_pending_call_finalization``."""
    request = translate_chat_request(
        {"messages": ASK, "tools": TOOLS, "stream": stream}, TranslationOptions(native=True)
    )
    calls = [each["choices"][0]["delta"]["tool_calls"][0] for each in (READ, _call(1, "list", '{"folder": '))]
    if stream:
        exchange = StreamedExchange(request, 0)
        sent = [exchange.feed(encode_event(delta(tool_calls=[each]))) for each in calls]
        sent += [exchange.feed(encode_event(delta(finish_reason="tool_calls"))), exchange.close()]
        answer = b"".join(sent).decode()
    else:
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        answer = json.dumps(BufferedExchange(request).feed(json.dumps(whole).encode()))
    assert "read_file" in answer
    assert "folder" not in answer
    assert "cut_call" in answer


def test_calls_in_turns_are_not_mixed_when_arguments_are_streamed():
    """Anthropic's API has one block at a time: the second call waits for the end of the first one."""
    options = TranslationOptions(native=True, stream_arguments=True)
    request = translate_chat_request({"messages": ASK, "tools": TOOLS, "stream": True}, options)
    exchange = StreamedExchange(request, 0, AnthropicWriter("m", "msg_1"))
    events = (
        _call(0, "read_file", ""), _call(1, "list", ""), _call(0, "", '{"path": '), _call(1, "", '{"folder": '),
        _call(0, "", '"a.py"}'), _call(1, "", '"b"}'), delta(finish_reason="tool_calls"),
    )  # fmt: skip
    sent = [exchange.feed(encode_event(each)) for each in events] + [exchange.close()]
    lines = [json.loads(line[6:]) for line in b"".join(sent).splitlines() if line.startswith(b"data: {")]
    texts = ["", ""]
    for each in lines:
        if each["type"] == "content_block_delta":
            texts[each["index"]] += each["delta"]["partial_json"]
    assert texts == ['{"path": "a.py"}', '{"folder": "b"}']


@pytest.mark.parametrize("is_native", [True, False], ids=["native", "described in the prompt"])
def test_unreadable_call_before_an_end_without_a_finish_reason_is_text(is_native):
    """There is no further request, because the answer is closed."""
    request = translate_chat_request(
        {"messages": ASK, "tools": TOOLS, "stream": True}, TranslationOptions(native=is_native)
    )
    exchange = StreamedExchange(request, 0)
    sent = [exchange.feed(encode_event(_call(0, "read_file", "oops"))), exchange.feed(b"data: [DONE]\n\n")]
    answer = b"".join([*sent, exchange.close()]).decode()
    assert "oops" in answer
    assert answer.count('"finish_reason":"stop"') == 1


def test_allowed_tools_are_the_only_ones_sent():
    """Few servers know ``allowed_tools``. Source: mistral.rs, ``validates_allowed_tools_function_subset``."""
    other = {"type": "function", "function": {"name": "list", "parameters": {"type": "object", "properties": {}}}}
    named = [{"type": "function", "function": {"name": "list"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": named}}
    body = {"messages": ASK, "tools": [*TOOLS, other], "tool_choice": choice}
    sent = translate_chat_request(body, TranslationOptions(native=True)).body
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["list"]
    assert sent["tool_choice"] == "required"


@pytest.mark.parametrize(
    ("written", "reason", "blocks"),
    [
        ("{'path': 'a.py'}", "tool_calls", [{"path": "a.py"}]),
        ('```json\n{"path": "a.py"}\n```', "tool_calls", [{"path": "a.py"}]),
        ("the file a.py, please", "tool_calls", ['"arguments": the file a.py, please']),
        ("[1, 2]", "tool_calls", []),
        ('{"path": "a.py"}{"path": "b.py"}', "tool_calls", ['{"path": "b.py"}']),
        ("", "length", []),
        ("", "tool_calls", [{}]),
    ],
)
@streamed_and_whole
def test_arguments_of_a_parsed_call_are_repaired_or_shown(shared, upstream, written, reason, blocks, stream):
    """A call without its arguments would be another call. Sources: Cline, ``ai-sdk.tool-calls.test.ts``, and Dynamo,
    ``test_length_drops_tool_call_with_empty_arguments``."""
    calls = _call(0, "read_file", written)["choices"][0]["delta"]["tool_calls"]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    streamed = as_stream(delta(tool_calls=calls), delta(finish_reason=reason))
    upstream.on(CHAT, streamed if stream else as_json(200, whole))
    body = {"model": "m", "messages": ASK, "tools": ANTHROPICS, "stream": stream, "max_tokens": 99}
    status, answer = post(shared[1], "/v1/messages", body)
    called, text = read_blocks(answer, stream)
    assert status == 200
    assert called == [each for each in blocks if isinstance(each, dict)]
    assert [each for each in blocks if isinstance(each, str) and each not in text] == []
    assert bool(text) == any(isinstance(each, str) for each in blocks)


def read_blocks(answer: str, stream: bool) -> tuple[list[Any], str]:
    """Return the inputs of the calls, and the text, in an answer of Anthropic's API."""
    if not stream:
        blocks = json.loads(answer)["content"]
        return [each["input"] for each in blocks if "input" in each], "".join(each.get("text", "") for each in blocks)
    events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    written = "".join(each.get("partial_json", "") for each in deltas)
    starts = [each["content_block"] for each in events if each["type"] == "content_block_start"]
    inputs = [json.loads(written or "{}") for each in starts if each["type"] == "tool_use"]
    return inputs, "".join(each.get("text", "") for each in deltas)


def test_blank_text_next_to_a_parsed_call_is_left_out(shared, upstream):
    """Anthropic's API rejects a block of only whitespace. Source: vLLM, ``test_message_stream_converter``."""
    events = [delta(reasoning_content="Which file?"), delta("\n\n"), READ, delta(" "), delta(finish_reason="stop")]
    upstream.on(CHAT, as_stream(*events))
    body = {"model": "m", "messages": ASK, "tools": ANTHROPICS, "stream": True, "max_tokens": 99}
    _, answer = post(shared[1], "/v1/messages", body)
    events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
    blocks = [each["content_block"]["type"] for each in events if each["type"] == "content_block_start"]
    assert blocks == ["thinking", "tool_use"]


@pytest.mark.parametrize("text", ["  \n", "  def"])
def test_leading_whitespace_is_kept(shared, upstream, text):
    upstream.on(CHAT, as_stream(delta("  "), delta(text[2:]), delta(finish_reason="stop")))
    body = {"model": "m", "messages": ASK, "stream": True, "max_tokens": 99}
    _, answer = post(shared[1], "/v1/messages", body)
    assert read_blocks(answer, True) == ([], text)


def test_call_without_its_namespace(shared, upstream):
    """The name is known if no other tool has it. Source: LiteLLM's tests of namespaces."""
    find = {"type": "function", "name": "find", "parameters": FUNCTION["parameters"]}
    note = {"type": "custom", "name": "note", "format": {"type": "text"}}
    tools = [
        {"type": "namespace", "name": "desk", "description": "-", "tools": [find, note, {**find, "name": "read_file"}]},
        {"type": "function", **FUNCTION},
    ]
    written = [("find", '{"path": "a.py"}'), ("note", '{"input": "flour"}'), ("read_file", '{"path": "b.py"}')]
    calls = [_call(index, *each) for index, each in enumerate(written)]
    upstream.on(CHAT, as_stream(*calls, delta(finish_reason="tool_calls")))
    _, answer = post(shared[1], "/v1/responses", {"model": "m", "input": "Go", "tools": tools, "stream": True})
    last = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")][-1]
    items = [(each["type"], each.get("namespace"), each["name"]) for each in last["response"]["output"]]
    assert items == [
        ("function_call", "desk", "find"),
        ("custom_tool_call", "desk", "note"),
        ("function_call", None, "read_file"),
    ]
