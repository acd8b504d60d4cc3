"""Decide which requests to pass through to the model server, and remove API keys from them.

The rules are an allowlist, because model servers have many other endpoints. For example, Ollama pulls and deletes
models, and llama.cpp saves slots and loads adapters.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from adapter.protocols.request_errors import RequestError

_MODELS = r"(?:/v1|/api/v[01])?/models"
_MODEL = rf"{_MODELS}/[\w.:@+/-]+"
_WORK = (
    "chat/completions", "completions", "completion", "embeddings", "embedding", "infill", "tokenize", "detokenize",
    "apply-template", "rerank", "reranking", "score", "pooling", "classify", "moderations", "messages/count_tokens",
    "audio/transcriptions", "audio/translations", "audio/speech", "images/generations", "images/edits",
)  # fmt: skip
_READS = re.compile(rf"/|{_MODELS}|{_MODEL}|/props|/version|/v1/health|/ping|/metrics|/api/(?:version|tags|ps)")
_ASKS = re.compile(rf"(?:/v1|/v2|/api/v0)?/(?:{'|'.join(_WORK)})|/api/(?:chat|generate|embed|embeddings|show)")

_ADMIN = re.compile(
    rf"{_MODEL}|/api/(?:pull|push|create|copy|delete|blobs/.+)|/slots(?:/.*)?|/lora-adapters|/props"
    "|/v1/(?:un)?load_lora_adapter|/sleep|/wake_up|/flush_cache"
)
"""Paths of administrative requests to llama.cpp, Ollama, LM Studio, vLLM and SGLang."""

_KEY = re.compile(
    r"(?:^|[-_])(?:api-?key|key|token|secret|password|credentials?|auth|authorization|cookie|jwt|signature|session)"
    r"(?:$|[-_])",
    re.IGNORECASE,
)


def normalize_path(path: str) -> str:
    """Return ``path`` without repeated and final slashes, which clients' base URLs may add."""
    return re.sub("/{2,}", "/", path).rstrip("/") or "/"


def check_passthrough(method: str, path: str, served: Collection[str], *, admin: bool) -> None:
    """Check a request that matches no route of this server. Raises RequestError if the request must not be passed
    through.

    ``path`` is decoded and has no query. ``served`` are the methods that this server's routes accept. ``admin`` allows
    all requests with a well-formed path.
    """
    if "\\" in path or any(part in (".", "..") for part in path.split("/")):
        raise RequestError(f"invalid path {path[:80]!r}: remove '.' and '..' segments and backslashes")
    passed = {"GET", "HEAD"} if _READS.fullmatch(path) else {"POST"} if _ASKS.fullmatch(path) else set()
    if admin or method in passed:
        return
    shown, advice = f"{method} {path[:80]}", "Start with --pass-admin to pass all requests on"
    if _ADMIN.fullmatch(path):
        raise RequestError(f"{shown} administers the model server, so it is not passed on. {advice}", status=403)
    if method not in served and (allowed := sorted(passed.union(served))):
        expected = " and ".join(each for each in allowed if each != "HEAD")
        raise RequestError(f"{path[:80]} only accepts {expected}, got {method}", status=405, allowed=allowed)
    near = get_close_matches(path[:80], _NEAR, 1, 0.7)
    guess = f"Did you mean {near[0]}? " if near else ""
    raise RequestError(f"{shown} is unknown, so it is not passed on to the model server. {guess}{advice}", status=404)


_NEAR = (
    "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses",
    "/v1/embeddings", "/v1/models", "/api/chat", "/api/generate", "/api/embed", "/api/tags", "/api/show",
)  # fmt: skip
"""Paths that errors suggest."""


def is_private(name: str) -> bool:
    """Return whether the name of a header or query parameter suggests that it contains credentials."""
    return name.lower() == "origin" or _KEY.search(name) is not None


def remove_keys(query: str) -> str:
    """Remove parameters with credentials from a query string."""
    return "&".join(part for part in query.split("&") if not is_private(part.partition("=")[0]))
