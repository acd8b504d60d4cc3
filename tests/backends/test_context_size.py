"""The context size reported by servers, and the advice for Ollama, which truncates silently."""

from __future__ import annotations

import asyncio

import pytest

from adapter.backends.context_size import ContextSize, query_context_size
from adapter.backends.endpoint_discovery import Endpoint
from adapter.cli.run_settings import RunSettings
from adapter.cli.run_task import run_task
from adapter.protocols.translation_options import TranslationOptions
from adapter.server.model_server import ModelServer
from tests.scripted_server import CHAT, MODELS, as_json, as_stream, delta


@pytest.mark.parametrize(
    ("kind", "path", "body", "tokens"),
    [
        ("llama.cpp", "/props", {"default_generation_settings": {"n_ctx": 4096}}, 4096),
        ("ollama", "/api/ps", {"models": [{"name": "x:latest", "context_length": 8192}]}, 8192),
        ("ollama", "/api/ps", {"models": [{"name": "y", "context_length": 8192}]}, None),
        ("ollama", "/api/ps", {"models": []}, None),
        ("vllm", "/v1/models", {"data": [{"id": "y"}, {"id": "x", "max_model_len": 32768}]}, 32768),
        ("lmstudio", "/api/v0/models", {"data": [{"id": "a"}, {"loaded_context_length": 2048}]}, 2048),
        ("llama.cpp", "/props", ["odd"], None),
        ("vllm", "/v1/models", {"data": []}, None),
        ("openai", "/v1/models", {}, None),
    ],
)
def test_context_size_is_read_from_the_server(scripted, kind, path, body, tokens):
    """It is the selected model's if several are loaded."""
    scripted.on(path, as_json(200, body))
    assert query_context_size(Endpoint(f"{scripted.url}/v1", kind), "x").tokens == tokens


def test_small_ollama_context_gives_advice(scripted):
    """Ollama drops the beginning of longer prompts and answers 200, so the user is advised."""
    scripted.on(
        "/api/ps", as_json(200, {"models": []}), as_json(200, {"models": [{"name": "x", "context_length": 4096}]})
    )
    scripted.on("/api/generate", as_json(200, {"done": True}))
    scripted.on("/api/show", as_json(200, {"model_info": {"qwen3.context_length": 40960}}))
    context = query_context_size(Endpoint(f"{scripted.url}/v1", "ollama"), "x", load=True)
    assert (context.tokens, context.trained) == (4096, 40960)
    assert "silently" in context.advice
    assert "OLLAMA_CONTEXT_LENGTH=16384" in context.advice
    assert scripted.bodies("/api/generate") == [{"model": "x"}], "it was loaded, and nothing was asked of it"


def test_large_context_gives_no_advice(scripted):
    """The same holds for a model that was trained with less."""
    scripted.on("/api/ps", as_json(200, {"models": [{"name": "x", "context_length": 2048}]}))
    scripted.on("/api/show", as_json(200, {"model_info": {"gpt2.context_length": 2048}}))
    assert query_context_size(Endpoint(f"{scripted.url}/v1", "ollama"), "x") == ContextSize(2048, 2048, "")


@pytest.fixture
def small_ollama(scripted):
    """An Ollama whose only model was trained with more than its context of 4,096 tokens."""
    scripted.on("/api/version", as_json(200, {"version": "0.12.0"}))
    scripted.on("/api/ps", as_json(200, {"models": [{"name": "x", "context_length": 4096}]}))
    scripted.on("/api/show", as_json(200, {"model_info": {"qwen3.context_length": 40960}}))
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "x", "object": "model"}]}))


def test_run_reports_a_small_context(small_ollama, tmp_path, capfd):
    """Once, before the first query."""
    small_ollama.on(CHAT, as_stream(delta("Done.", "stop")))
    assert run_task("Look.", RunSettings(tmp_path, small_ollama.url)) == 0
    assert capfd.readouterr().err.count("Ollama limits the context of x to 4,096 tokens") == 1


def test_serve_reports_a_small_context(small_ollama, capsys):
    """After the first query of the server's properties."""

    async def ask() -> None:
        upstream = ModelServer(f"{small_ollama.url}/v1", TranslationOptions())
        await upstream.find_server_info()
        await upstream.find_server_info()

    asyncio.run(ask())
    assert capsys.readouterr().err.count("Ollama limits the context of its model to 4,096 tokens") == 1
