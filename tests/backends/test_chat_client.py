"""The chat client against a real HTTP server with recorded answers of llama.cpp and Ollama."""

from __future__ import annotations

import itertools
import re
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from adapter.backends.chat_client import ChatClient, Chunk, Usage, build_constraint_fields
from adapter.backends.endpoint_discovery import Endpoint
from adapter.core.errors import TransportError
from adapter.tools.tool_set import ToolSet
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_error, as_json, as_stream, delta

HELLO = as_stream(delta(role="assistant", content=None), delta("Hel"), delta("lo"), delta(finish_reason="stop"))
TWO_MODELS = as_json(200, {"object": "list", "data": [{"id": "qwen3:4b"}, {"id": "smollm2:135m"}]})
LOADING = as_json(503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, "llama.cpp")


def ask(server: ScriptedServer, patience_s: float = 5.0, **options) -> list[Chunk]:
    with ChatClient(Endpoint(f"{server.url}/v1"), "m", patience_s=patience_s) as client:
        return list(client.stream([{"role": "user", "content": "hi"}], **options))


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def end_of(chunks: list[Chunk]) -> list[str]:
    return [chunk.finish_reason for chunk in chunks if chunk.finish_reason]


def failure(server: ScriptedServer, **options) -> str:
    with pytest.raises(TransportError) as caught:
        ask(server, **options)
    return str(caught.value)


def test_stream_yields_the_servers_chunks(scripted):
    scripted.on(CHAT, HELLO)
    chunks = ask(scripted)
    assert [chunk.text for chunk in chunks] == ["", "Hel", "lo", ""]
    assert end_of(chunks) == ["stop"]
    assert chunks[1].raw is not None
    assert chunks[1].raw["choices"][0]["delta"]["content"] == "Hel"


def test_request_contains_the_arguments_and_no_tools(scripted):
    scripted.on(CHAT, HELLO)
    ask(scripted, stop=["</s>"], max_tokens=9, temperature=0.0, seed=3, extra={"grammar": 'root ::= "a"'})
    (body,) = scripted.bodies()
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stop": ["</s>"],
        "max_tokens": 9,
        "temperature": 0.0,
        "seed": 3,
        "grammar": 'root ::= "a"',
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_separate_from_text(scripted, field):
    scripted.on(CHAT, as_stream(delta(**{field: "hmm"}), delta("yes"), delta(finish_reason="stop")))
    chunks = ask(scripted)
    assert (chunks[0].reasoning, chunks[0].text, text_of(chunks)) == ("hmm", "", "yes")


def test_usage_event_without_choices_is_accepted(scripted):
    usage = {"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": {"completion_tokens": 2}}
    scripted.on(CHAT, as_stream(delta("a"), delta(finish_reason="length"), usage))
    chunks = ask(scripted)
    assert (text_of(chunks), end_of(chunks)) == ("a", ["length"])


def test_loading_server_is_retried(scripted):
    scripted.on(CHAT, LOADING, as_error(429, "slow down"), HELLO)
    assert text_of(ask(scripted)) == "Hello"
    assert len(scripted.bodies()) == 3


def test_second_wait_is_shown(scripted, caplog):
    """Once, and without the server's own words, which could control a terminal."""
    scripted.on(CHAT, *([as_error(429, "slow \x1b[2J down")] * 3), HELLO)
    ask(scripted)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{scripted.url}/v1 answered 429; retrying for up to 5 s. The server is busy")


def test_retries_end_after_the_patience(scripted):
    scripted.on(CHAT, LOADING)
    message = failure(scripted, patience_s=0.3)
    assert "Loading model" in message
    assert "try again later" in message


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (as_error(400, "registry.ollama.ai/library/smollm2:135m does not support tools"), "in the prompt"),
        (as_error(500, "Failed to parse input at pos 12"), "--no-jinja"),
        (
            as_error(400, "request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it"),
            "llama-server -c",
        ),
        (as_error(400, "Failed to initialize samplers: failed to parse grammar"), "constraint"),
        (as_error(401, "Invalid API key"), "set OPENAI_API_KEY. It is sent only to servers on other machines"),
        (as_error(404, "File Not Found"), "/v1"),
        (as_error(500, "cuda error"), "its log"),
    ],
)
def test_permanent_failure_is_explained_without_retry(scripted, reply, said):
    scripted.on(CHAT, reply)
    message = failure(scripted)
    assert said in message
    assert scripted.url in message
    assert len(scripted.bodies()) == 1


def test_missing_model_error_lists_existing_models(scripted):
    scripted.on(CHAT, as_error(404, "model 'smolm2' not found", "not_found_error")).on(MODELS, TWO_MODELS)
    with ChatClient(Endpoint(f"{scripted.url}/v1"), "smolm2") as client, pytest.raises(TransportError) as caught:
        next(client.stream([]))
    assert "qwen3:4b, smollm2:135m" in str(caught.value)
    assert "Did you mean 'smollm2:135m'?" in str(caught.value)


def test_default_model_is_the_first_that_can_chat(scripted):
    scripted.on(MODELS, as_json(200, {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:4b"}]}))
    with ChatClient(Endpoint(f"{scripted.url}/v1")) as client:
        assert client.model == "qwen3:4b"
        assert client.models() == ["nomic-embed-text", "qwen3:4b"]


def test_server_may_be_given_by_its_url(scripted):
    with ChatClient(scripted.url, "m") as client:
        assert client.endpoint.base_url == f"{scripted.url}/v1"


def test_server_without_models_raises(scripted):
    scripted.on(MODELS, as_json(200, {"data": []}))
    with ChatClient(Endpoint(f"{scripted.url}/v1")) as client, pytest.raises(TransportError, match="serves no model"):
        next(client.stream([]))


def test_unreachable_server_error_names_url_and_next_step():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    with ChatClient(Endpoint(url), "m", patience_s=0.2) as client, pytest.raises(TransportError) as caught:
        next(client.stream([]))
    message = str(caught.value)
    assert message.startswith(f"nothing answers at {url} (Connection refused)")
    assert "llama-server -m" in message
    assert "ollama serve" in message


def test_disconnecting_server_is_not_reported_as_unreachable():
    """The error does not suggest starting a server."""
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        with ChatClient(Endpoint(url), "m", patience_s=0.2) as client, pytest.raises(TransportError) as caught:
            next(client.stream([]))
        server.shutdown()
        thread.join()
    assert re.match(
        rf"{url} accepted the request but did not answer \(.+\)\. Retry, or check the server's log", str(caught.value)
    )


@pytest.mark.parametrize("cut", [False, True], ids=["closed", "dropped"])
def test_stream_without_end_is_incomplete(scripted, cut):
    scripted.on(CHAT, as_stream(delta("<tool_call>"), done=False, cut=cut))
    chunks = ask(scripted)
    assert (text_of(chunks), end_of(chunks)) == ("<tool_call>", ["incomplete"])
    assert len(scripted.bodies()) == 1


def test_stream_error_is_raised_after_earlier_chunks(scripted):
    scripted.on(CHAT, as_stream(delta("a"), {"error": {"message": "out of memory", "code": 500}}))
    with ChatClient(Endpoint(f"{scripted.url}/v1"), "m") as client:
        stream = client.stream([])
        assert next(stream).text == "a"
        with pytest.raises(TransportError, match="answered 500: out of memory"):
            next(stream)
    assert len(scripted.bodies()) == 1


@pytest.mark.parametrize(
    "error", ["event: error\ndata: no memory is left", {"detail": "no memory is left"}, {"error": "no memory is left"}]
)
def test_reason_of_an_error_event_is_shown(scripted, error):
    scripted.on(CHAT, as_stream(delta("a"), error, done=False))
    with pytest.raises(TransportError, match="no memory is left"):
        ask(scripted)


@pytest.mark.parametrize(
    "reply",
    [as_stream("data: {broken"), Reply(200, b"<html>It works!</html>", "text/html"), Reply(200, b"{}")],
    ids=["broken json", "a page", "no stream"],
)
def test_response_that_is_not_a_stream_raises(scripted, reply):
    scripted.on(CHAT, reply)
    assert "not from an OpenAI-compatible server" in failure(scripted)


def test_empty_events_give_an_incomplete_answer(scripted):
    scripted.on(CHAT, as_stream("data: 5", "data: []", 'data: "x"', 'data: {"choices": "x"}'))
    chunks = ask(scripted)
    assert (text_of(chunks), end_of(chunks)) == ("", ["incomplete"])


def test_silent_server_times_out(scripted):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        with (
            ChatClient(Endpoint(url), "m", timeout_s=0.2) as client,
            pytest.raises(TransportError, match=r"sent nothing for 0\.2 s"),
        ):
            next(client.stream([]))


def test_server_silent_during_the_answer_raises(scripted):
    """Unlike a dropped connection, which leaves a truncated answer, silence raises."""
    scripted.on(CHAT, replace(as_stream(delta("a"), done=False), length=9999, linger_s=0.6))
    with ChatClient(Endpoint(f"{scripted.url}/v1"), "m", timeout_s=0.2) as client:
        stream = client.stream([])
        assert next(stream).text == "a"
        with pytest.raises(TransportError, match="sent nothing"):
            next(stream)


def test_missing_model_without_a_list_is_explained(scripted):
    scripted.on(CHAT, as_error(404, "model 'm' not found"))
    assert "does not list its models" in failure(scripted)


def test_closing_the_iterator_closes_the_connection():
    """The server sees it, and can stop."""
    with (
        LiveUpstream(lambda _body: itertools.repeat(delta("a"))) as endless,
        ChatClient(Endpoint(f"{endless.url}/v1"), "m") as client,
    ):
        stream = client.stream([])
        assert next(stream).text == "a"
        assert not endless.hung_up.is_set()
        stream.close()
        assert endless.hung_up.wait(100)


def test_local_server_never_gets_the_users_key(scripted, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    scripted.on(CHAT, HELLO)
    ask(scripted)
    ((_, headers, _),) = scripted.requests
    assert headers["authorization"] == "Bearer none"


def test_explicit_key_is_sent_but_redacted_in_errors(scripted):
    scripted.on(CHAT, as_error(401, "no"))
    with (
        ChatClient(Endpoint(f"{scripted.url}/v1"), "m", api_key="sk-1") as client,
        pytest.raises(TransportError) as caught,
    ):
        next(client.stream([]))
    assert scripted.requests[0][1]["authorization"] == "Bearer sk-1"
    assert "sk-1" not in str(caught.value) + repr(client)


TOOLS = ToolSet([{"name": "now", "parameters": {"type": "object", "properties": {}}}])


@pytest.mark.parametrize(
    ("kind", "field"),
    [("llama.cpp", "grammar"), ("textgen", "grammar_string"), ("ollama", "response_format"), ("openai", None)],
)
def test_constraint_fields_fit_the_kind_of_server(kind, field):
    assert list(build_constraint_fields(kind, TOOLS)) == ([field] if field else [])


def test_importing_chat_client_does_not_import_the_sdk():
    ours = "adapter.backends.chat_client, adapter.backends.in_process_llama_cpp"
    code = f"import sys, {ours}; print({{'openai', 'httpx2', 'xllamacpp'}} & {{*sys.modules}})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("event", "usage"),
    [
        ({"timings": {"cache_n": 90, "prompt_n": 10, "predicted_n": 5}}, Usage(100, 5, 90)),
        ({"usage": {"prompt_tokens": 100, "completion_tokens": 5}}, Usage(100, 5)),
        (
            {"usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}},
            Usage(9, 5, 8),
        ),
        ({"usage": None}, None),
    ],
    ids=["llama.cpp", "ollama", "openai", "none"],
)
def test_chunk_has_the_servers_usage(scripted, event, usage):
    """Prompt tokens, completion tokens, and cached prompt tokens."""
    scripted.on(CHAT, as_stream(delta("Hi"), {**delta(finish_reason="stop"), **event}))
    assert [chunk.usage for chunk in ask(scripted) if chunk.usage] == ([usage] if usage else [])


@pytest.mark.parametrize(
    ("url", "loads"),
    [("http://127.0.0.1:9/v1", False), ("https://127.0.0.1:9/v1", True), ("http://example.invalid/v1", True)],
)
def test_certificates_are_not_loaded_for_plain_local_servers(monkeypatch, url, loads):
    """Another server may redirect to TLS."""
    loaded = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *given: loaded.append(given))
    with ChatClient(Endpoint(url), "m") as client:
        client._create_sdk_client()
    assert bool(loaded) is loads
