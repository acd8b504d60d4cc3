"""How much of a conversation a server holds, as it says itself; and what becomes of more.

================  ===================================================================================
llama.cpp         ``/props``: ``n_ctx`` of a slot. A longer prompt is an error.
Ollama            ``/api/ps``: ``context_length`` of a loaded model, by default 4,096 whatever the model
                  was trained for. Of a longer prompt the beginning is dropped, and nothing is said.
LM Studio         ``/api/v0/models``: ``loaded_context_length``
vLLM              ``/v1/models``: ``max_model_len``. A longer prompt is an error.
================  ===================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapter.backends.endpoint_discovery import Endpoint, Kind, get_json
from adapter.core.events import Json

SMALL = 8_192
"""Tokens: with less, twenty tools and a few files fill an agent's conversation within a dozen turns."""

LOADING_S = 300.0
"""How long Ollama may take to load a model."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """``tokens``: what the server holds, ``trained``: what the model was made for; None where that is not told."""

    tokens: int | None = None
    trained: int | None = None
    advice: str = ""
    """For the user, where the size is a trap."""


def query_context_size(
    endpoint: Endpoint, model: str | None = None, *, load: bool = False, timeout_s: float = 2.0
) -> ContextSize:
    """The context of ``model``, or of the only one there is. ``load``: have Ollama load it, or it tells no size."""
    if endpoint.kind == "ollama":
        return _of_ollama(endpoint, model, load, timeout_s)
    if endpoint.kind not in _SOURCES:
        return ContextSize()
    path, read = _SOURCES[endpoint.kind]
    answer = get_json(endpoint.root + path, timeout_s)
    try:
        tokens, trained = read(answer.body, model) if answer else (None, None)
    except (KeyError, TypeError, AttributeError, IndexError):
        return ContextSize()
    return ContextSize(_size(tokens), _size(trained))


def _of_props(body: Json, _: str | None) -> tuple[Json, Json]:
    return body["default_generation_settings"]["n_ctx"], None


def _of_listed(key: str, trained_key: str) -> Callable[[Json, str | None], tuple[Json, Json]]:
    def read(body: Json, model: str | None) -> tuple[Json, Json]:
        told = [entry for entry in body["data"] if entry.get(key)]
        entry = next((entry for entry in told if entry.get("id") == model), told[0])
        return entry[key], entry.get(trained_key)

    return read


_SOURCES: dict[Kind, tuple[str, Callable[[Json, str | None], tuple[Json, Json]]]] = {
    "llama.cpp": ("/props", _of_props),
    "lmstudio": ("/api/v0/models", _of_listed("loaded_context_length", "max_context_length")),
    "vllm": ("/v1/models", _of_listed("max_model_len", "max_model_len")),
}


def _of_ollama(endpoint: Endpoint, model: str | None, load: bool, timeout_s: float) -> ContextSize:
    tokens = _loaded(endpoint, model, timeout_s)
    if tokens is None and load and model:
        get_json(f"{endpoint.root}/api/generate", LOADING_S, {"model": model})  # without a prompt it only loads
        tokens = _loaded(endpoint, model, timeout_s)
    shown = get_json(f"{endpoint.root}/api/show", timeout_s, {"model": model}) if model else None
    facts = shown.body.get("model_info") if shown is not None and isinstance(shown.body, dict) else None
    lengths = (
        [value for key, value in facts.items() if key.endswith(".context_length")] if isinstance(facts, dict) else []
    )
    trained = _size(lengths[0]) if lengths else None
    return ContextSize(tokens, trained, _ollama_advice(model, tokens, trained))


def _loaded(endpoint: Endpoint, model: str | None, timeout_s: float) -> int | None:
    answer = get_json(f"{endpoint.root}/api/ps", timeout_s)
    try:
        entries = [entry for entry in answer.body["models"] if entry.get("context_length")] if answer else []
        names = {model, f"{model}:latest"}
        found = [entry for entry in entries if model is None or {entry.get("name"), entry.get("model")} & names]
        return _size(found[0]["context_length"]) if found else None
    except (KeyError, TypeError, AttributeError):
        return None


def _ollama_advice(model: str | None, tokens: int | None, trained: int | None) -> str:
    if tokens is None or tokens >= SMALL or (trained is not None and tokens >= trained):
        return ""
    made_for = f" (it was made for {trained:,})" if trained else ""
    wanted = min(16_384, trained or 16_384)
    return (
        f"Ollama holds {tokens:,} tokens of a conversation with {model or 'its model'}{made_for} and drops the "
        "beginning of a longer one, tools and all, without a word. Give it more: "
        f"`OLLAMA_CONTEXT_LENGTH={wanted} ollama serve`, or `PARAMETER num_ctx {wanted}` in a Modelfile"
    )


def _size(value: Json) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
