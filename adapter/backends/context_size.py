"""Query a server for its context size. Longer prompts fail or are truncated.

================  ===================================================================================
llama.cpp         ``/props``: ``n_ctx`` of a slot. A longer prompt is an error.
Ollama            ``/api/ps``: ``context_length`` of a loaded model, by default 4,096 for every model.
                  The beginning of a longer prompt is dropped silently.
LM Studio         ``/api/v0/models``: ``loaded_context_length``
vLLM              ``/v1/models``: ``max_model_len``. A longer prompt is an error.
================  ===================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.backends.endpoint_discovery import Endpoint, Kind, get_json, get_object
from adapter.core.events import Json

SMALL = 8_192
"""Context size, in tokens, below which the user gets a warning. In an agent's conversation, twenty tools and a few
files fill such a context within a dozen turns."""

LOADING_S = 300.0
"""Maximum time for Ollama to load a model, in seconds."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The context sizes of a server and its model."""

    tokens: int | None = None
    """The server's limit, or None if unknown."""
    trained: int | None = None
    """The model's limit, or None if unknown."""
    advice: str = ""
    """A warning for the user, or ""."""


def query_context_size(endpoint: Endpoint, model: str | None = None, *, load: bool = False) -> ContextSize:
    """Return the context size of ``model``, or of the only model. With ``load``, Ollama loads it first."""
    if endpoint.kind == "ollama":
        return _query_ollama(endpoint, model, load)
    try:
        if endpoint.kind == "llama.cpp":
            props = get_object(f"{endpoint.root}/props")
            return ContextSize(_parse_size(props["default_generation_settings"]["n_ctx"]))
        if endpoint.kind not in _LISTS:
            return ContextSize()
        path, key, trained_key = _LISTS[endpoint.kind]
        known = [entry for entry in get_object(endpoint.root + path)["data"] if entry.get(key)]
        entry = next((entry for entry in known if entry.get("id") == model), known[0])
        return ContextSize(_parse_size(entry[key]), _parse_size(entry.get(trained_key)))
    except (KeyError, TypeError, AttributeError, IndexError):
        return ContextSize()


_LISTS: dict[Kind, tuple[str, str, str]] = {
    "lmstudio": ("/api/v0/models", "loaded_context_length", "max_context_length"),
    "vllm": ("/v1/models", "max_model_len", "max_model_len"),
}
"""For each kind of server: the path of its model list, and the keys of the server's limit and the model's limit."""


def _query_ollama(endpoint: Endpoint, model: str | None, load: bool) -> ContextSize:
    tokens = _find_loaded_size(endpoint, model)
    if tokens is None and load and model:
        # without a prompt, this only loads the model
        get_json(f"{endpoint.root}/api/generate", {"model": model}, timeout_s=LOADING_S)
        tokens = _find_loaded_size(endpoint, model)
    info = get_object(f"{endpoint.root}/api/show", {"model": model}).get("model_info") if model else None
    lengths = (
        [value for key, value in info.items() if key.endswith(".context_length")] if isinstance(info, dict) else []
    )
    trained = _parse_size(lengths[0]) if lengths else None
    return ContextSize(tokens, trained, _describe_ollama_setting(model, tokens, trained))


def _find_loaded_size(endpoint: Endpoint, model: str | None) -> int | None:
    names = {model, f"{model}:latest"}
    try:
        models = get_object(f"{endpoint.root}/api/ps")["models"]
        loaded = [each for each in models if each.get("context_length")]
        matching = [each for each in loaded if model is None or {each.get("name"), each.get("model")} & names]
        return _parse_size(matching[0]["context_length"]) if matching else None
    except (KeyError, TypeError, AttributeError):
        return None


def _describe_ollama_setting(model: str | None, tokens: int | None, trained: int | None) -> str:
    if tokens is None or tokens >= SMALL or (trained is not None and tokens >= trained):
        return ""
    capacity = f" (it was trained with {trained:,})" if trained else ""
    suggested = min(16_384, trained or 16_384)
    return (
        f"Ollama limits the context of {model or 'its model'} to {tokens:,} tokens{capacity} and silently drops the "
        "beginning of longer conversations, including the tools. Increase it: "
        f"`OLLAMA_CONTEXT_LENGTH={suggested} ollama serve`, or `PARAMETER num_ctx {suggested}` in a Modelfile"
    )


def _parse_size(value: Json) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
