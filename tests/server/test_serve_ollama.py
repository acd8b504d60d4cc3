"""Ollama's own Python client against `adapter serve`, before an Ollama and before another server.

The model servers answer as recorded from Ollama 0.x and llama.cpp, statuses and shapes alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from adapter.protocols.model_descriptions import ModelDescription
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving
from tests.template_server import CHATML, TemplateServer

ollama = pytest.importorskip("ollama", reason="Ollama's client is a development dependency")

NATIVE = "/api/chat"
HEAD = {"model": "smollm2:135m", "created_at": "2026-11-21T09:56:46.228779192Z"}
COUNTS = {"total_duration": 7852057634, "prompt_eval_count": 372, "eval_count": 31}


class Before:
    """One kind of server behind ours: how to script its text and read its requests."""

    def __init__(self, upstream: ScriptedServer, url: str, *, is_ollama: bool) -> None:
        self.upstream, self.is_ollama = upstream, is_ollama
        self.client = ollama.Client(url.removesuffix("/v1"))

    def says(self, text: str, stream: bool, reason: str = "stop") -> None:
        reply: Reply
        if self.is_ollama:
            end = {
                **HEAD,
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": reason,
                **COUNTS,
            }
            if stream:
                lines = [{**HEAD, "message": {"role": "assistant", "content": each}, "done": False} for each in text]
                body = b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, end])
                reply = Reply(200, body, "application/x-ndjson")
            else:
                reply = as_json(200, {**end, "message": {"role": "assistant", "content": text}})
        elif stream:
            usage = {**delta(), "choices": [], "usage": {"prompt_tokens": 372, "completion_tokens": 31}}
            reply = as_stream(*map(delta, text), delta(finish_reason=reason), usage)
        else:
            reply = as_json(200, {**completion(text, reason), "usage": {"prompt_tokens": 372, "completion_tokens": 31}})
        self.upstream.on(self.path, reply)

    @property
    def path(self) -> str:
        return NATIVE if self.is_ollama else CHAT


@pytest.fixture(scope="module", params=["ollama", "another"])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[ScriptedServer, str, bool]]:
    with ScriptedServer() as upstream:
        if request.param == "ollama":
            upstream.on("/api/version", as_json(200, {"version": "0.9"}))
        with serving(upstream.url) as url:
            yield upstream, url, request.param == "ollama"


@pytest.fixture
def before(servers: tuple[ScriptedServer, str, bool]) -> Iterator[Before]:
    upstream, url, is_ollama = servers
    for path in [path for path in upstream.replies if path != "/api/version"]:
        del upstream.replies[path]
    upstream.requests.clear()
    before = Before(upstream, url, is_ollama=is_ollama)
    yield before
    before.client.close()


def answers(before: Before, stream: bool, **fields: Any) -> list[Any]:
    given = before.client.chat("smollm2:135m", messages=ASK, stream=stream, **fields)
    return list(given) if stream else [given]


@streamed_and_whole
def test_call_is_returned(before, stream):
    """In Ollama's shape: arguments are an object, counts are at the end, and options are forwarded."""
    before.says(f"<think>Hm.</think>I look.\n{CALL}", stream)
    parts = answers(before, stream, tools=TOOLS, options={"num_predict": 80, "num_ctx": 9})
    calls = [call for part in parts for call in part.message.tool_calls or ()]
    assert [(call.function.name, call.function.arguments) for call in calls] == [("read_file", {"path": "a.py"})]
    assert "".join(part.message.content or "" for part in parts) == "I look."
    assert "".join(part.message.thinking or "" for part in parts) == "Hm."
    assert [part.done for part in parts] == [*[False] * (len(parts) - 1), True]
    assert (parts[-1].done_reason, parts[-1].prompt_eval_count, parts[-1].eval_count) == ("stop", 372, 31)
    (body,) = before.upstream.bodies(before.path)
    assert "tools" not in body
    if before.is_ollama:
        assert body["options"] == {"num_predict": 80, "num_ctx": 9, "stop": ["<|im_end|>"]}
    else:
        assert body["max_tokens"] == 80


def test_conversation_with_results_continues(before):
    """Results, which Ollama names by their tool, become text."""
    before.says("Empty.", False)
    history = [
        *ASK,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a.py"}}}],
        },
        {"role": "tool", "tool_name": "read_file", "content": "x = 1"},
    ]
    answer = before.client.chat("smollm2:135m", messages=history, tools=TOOLS)
    assert answer.message.content == "Empty."
    (body,) = before.upstream.bodies(before.path)
    assert body["messages"][1:] == [
        *ASK,
        {"role": "assistant", "content": CALL},
        {"role": "user", "content": "<tool_response>\nx = 1\n</tool_response>"},
    ]


@streamed_and_whole
def test_errors_have_ollama_shape(before, stream):
    """Its client shows the message and the status."""
    words = "model 'smollm2:135m' not found"
    before.upstream.on(before.path, as_json(404, {"error": words}) if before.is_ollama else as_error(404, words))
    with pytest.raises(ollama.ResponseError, match="not found") as caught:
        answers(before, stream, tools=TOOLS)
    assert caught.value.status_code == 404


def test_lost_stream_is_an_error(before):
    """A partial call is never a call, also in JSON lines."""
    if before.is_ollama:
        line = json.dumps({**HEAD, "message": {"role": "assistant", "content": CALL[:40]}, "done": False})
        reply = Reply(200, line.encode() + b"\n", "application/x-ndjson", length=9999)
    else:
        reply = as_stream(delta(CALL[:40]), done=False, cut=True)
    before.upstream.on(before.path, reply)
    with pytest.raises(ollama.ResponseError, match="in the middle of its answer"):
        answers(before, True, tools=TOOLS)


def test_models_list_tools_capability(before):
    """Clients show tools only if a model's capabilities include them."""
    before.upstream.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "smollm2:135m"}]}))
    before.upstream.on("/api/tags", as_json(200, {"models": [{"name": "smollm2:135m", "model": "smollm2:135m"}]}))
    before.upstream.on("/api/show", as_json(200, {"capabilities": ["completion", "insert"], "model_info": {}}))
    assert [model.model for model in before.client.list().models] == ["smollm2:135m"]
    assert "tools" in (before.client.show("smollm2:135m").capabilities or [])


@streamed_and_whole
def test_durations_are_reported(before, stream):
    """Clients divide by them; Ollama's own are forwarded."""
    before.says("Hi.", stream)
    last = answers(before, stream, tools=TOOLS)[-1]
    told = (last.total_duration, last.load_duration, last.prompt_eval_duration, last.eval_duration)
    assert None not in told
    assert last.total_duration > 0
    if before.is_ollama:
        assert last.total_duration == COUNTS["total_duration"]


@pytest.mark.parametrize(
    ("think", "said"),
    [
        (False, {"chat_template_kwargs": {"enable_thinking": False}}),
        (True, {"chat_template_kwargs": {"enable_thinking": True}}),
        ("low", {"reasoning_effort": "low"}),
    ],
)
def test_think_is_converted_for_server(before, think, said):
    before.says("Hi.", False)
    answers(before, False, tools=TOOLS, think=think, options={"repeat_last_n": 7, "mirostat": 1, "num_keep": 3})
    (body,) = before.upstream.bodies(before.path)
    if before.is_ollama:
        assert body["think"] == think
        assert body["options"]["mirostat"] == 1
    else:
        assert {key: body[key] for key in said} == said
        assert (body["repeat_last_n"], body["mirostat"], body["n_keep"]) == (7, 1, 3)


def generation(text: str, stream: bool) -> Reply:
    """As in Ollama's answers to `/api/generate`."""
    end = {**HEAD, "response": "" if stream else text, "done": True, "done_reason": "stop", **COUNTS}
    lines = [{**HEAD, "response": each, "done": False} for each in text] if stream else []
    return Reply(200, b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, end]), "application/x-ndjson")


@streamed_and_whole
def test_generate_completes_prompt(before, stream):
    """Other servers answer as a chat, with separate reasoning."""
    if before.is_ollama:
        before.upstream.on("/api/generate", generation("Hi there.", stream))
    else:
        before.says("<think>Hm.</think>Hi there.", stream)
    given = before.client.generate("m", "Greet me.", system="Be kind.", stream=stream, options={"seed": 4})
    parts = list(given) if stream else [given]
    assert "".join(part.response for part in parts) == "Hi there."
    assert parts[-1].done
    if not before.is_ollama:
        assert "".join(part.thinking or "" for part in parts) == "Hm."
        (body,) = before.upstream.bodies(CHAT)
        assert [message["content"] for message in body["messages"]] == ["Be kind.", "Greet me."]
        assert body["seed"] == 4


def test_unsupported_generate_fields_are_rejected(before):
    if before.is_ollama:
        pytest.skip("it can")
    with pytest.raises(ollama.ResponseError, match="'raw' requires Ollama as the model server"):
        before.client.generate("m", "Greet me.", raw=True)


def test_requests_without_a_prompt_load_or_unload(before):
    """As Ollama documents; models of other servers stay loaded."""
    if before.is_ollama:
        pytest.skip("it does so itself")
    client = before.client
    assert (client.generate("m").done_reason, client.generate("m", keep_alive=0).done_reason) == ("load", "unload")
    loaded, unloaded = client.chat("m", []), client.chat("m", [], keep_alive=0)
    assert (loaded.done_reason, unloaded.done_reason, loaded.message.content) == ("load", "unload", "")


def test_embeddings_are_converted(before):
    if before.is_ollama:
        before.upstream.on("/api/embed", as_json(200, {"model": "m", "embeddings": [[1.0], [2.0]]}))
        before.upstream.on("/api/embeddings", as_json(200, {"embedding": [1.0]}))
    else:
        data = [{"object": "embedding", "index": index, "embedding": [value]} for index, value in enumerate((1.0, 2.0))]
        before.upstream.on("/v1/embeddings", as_json(200, {"data": data, "usage": {"prompt_tokens": 5}}))
    assert [list(each) for each in before.client.embed("m", ["a", "b"]).embeddings] == [[1.0], [2.0]]
    assert list(before.client.embeddings("m", "a").embedding) == [1.0]


def test_loaded_models_are_listed(before):
    """The version, the loaded models and the root route."""
    if before.is_ollama:
        before.upstream.on("/api/ps", as_json(200, {"models": [{"model": "m", "name": "m"}]}))
    else:
        before.upstream.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m"}]}))
    assert [each.model for each in before.client.ps().models] == ["m"]
    assert before.client._client.get("/api/version").json()["version"] == ("0.9" if before.is_ollama else "0.12.6")
    assert before.client._client.head("/").status_code == 200


def test_any_body_is_accepted_or_rejected(before):
    """litellm sends no type, curl a form's."""
    for kind in ("", "application/x-www-form-urlencoded", "text/plain"):
        before.says("Hi.", False)
        body = json.dumps({"model": "m", "messages": ASK, "tools": TOOLS, "stream": False})
        answer = before.client._client.post("/api/chat", content=body, headers={"Content-Type": kind})
        assert answer.json()["message"]["content"] == "Hi."


@pytest.fixture
def identity() -> Iterator[Any]:
    """Yield a function that sends GET, or POST with a body, to a server in front of llama.cpp."""
    with (
        TemplateServer("llama.cpp", CHATML) as upstream,
        serving(upstream.url) as v1,
        httpx.Client(base_url=v1.removesuffix("/v1"), timeout=100) as client,
    ):
        yield lambda path, body=None: client.post(path, json=body) if body else client.get(path)


def test_models_are_described_as_by_ollama_and_lm_studio(identity):
    """With the context size, from which editors compute how much fits."""
    assert identity("/").text == "Ollama is running"
    (tag,) = ollama.ListResponse(**identity("/api/tags").json()).models
    assert tag.model == "m"
    assert tag.digest
    assert tag.modified_at
    shown = identity("/api/show", {"model": "m"}).json()
    architecture = shown["model_info"]["general.architecture"]
    assert shown["model_info"][f"{architecture}.context_length"] == 4096
    assert shown["model_info"]["general.basename"] == "m"
    assert shown["capabilities"] == ["completion", "tools"]
    assert identity("/v1/models/m").json()["object"] == "model"
    assert identity("/v1/models/x").status_code == 404
    (entry,) = identity("/api/v0/models").json()["data"]
    assert (entry["id"], entry["loaded_context_length"], entry["state"]) == ("m", 4096, "loaded")
    assert identity("/api/v0/models/m").json() == entry


@pytest.mark.parametrize(
    ("name", "family", "parameters", "quantization"),
    [
        ("models/Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf", "qwen3", "30B", "Q4_K_M"),
        ("smollm2:135m", "smollm2", "135M", ""),
        ("meta-llama/Llama-3.1-8B-Instruct-AWQ", "llama", "8B", "AWQ"),
        ("?", "unknown", "", ""),
    ],
)
def test_model_details_are_taken_from_the_name(name, family, parameters, quantization):
    details = ModelDescription(name).details
    found = (details["family"], details["parameter_size"], details["quantization_level"])
    assert found == (family, parameters, quantization)
