"""Decide which requests to pass through to the model server, and remove API keys from them.

The rules are an allowlist, because model servers have many other endpoints. For example, Ollama pulls and deletes
models, and llama.cpp saves slots and loads adapters.
"""

from __future__ import annotations

import re

from adapter.protocols.openai_errors import RequestError

_MODELS = r"(?:/v1|/api/v[01])?/models(?:/[\w.:@+/-]+)?"
_WORK = (
    "chat/completions", "completions", "completion", "embeddings", "embedding", "infill", "tokenize", "detokenize",
    "apply-template", "rerank", "reranking", "score", "pooling", "classify", "moderations", "messages/count_tokens",
    "audio/transcriptions", "audio/translations", "audio/speech", "images/generations", "images/edits",
)  # fmt: skip
_READS = re.compile(rf"/|{_MODELS}|/props|/version|/v1/health|/ping|/metrics|/api/(?:version|tags|ps)")
_ASKS = re.compile(rf"(?:/v1|/v2|/api/v0)?/(?:{'|'.join(_WORK)})|/api/(?:chat|generate|embed|embeddings|show)")

_OURS = re.compile(r"(?:/v1)?/(?:messages|responses|conversations)|/v1/responses/input_tokens")
"""Paths of this server's endpoints. Like the paths in `_ASKS`, they accept only POST."""
METHOD_NOT_ALLOWED = 405

_KEY = re.compile(
    r"(?:^|[-_])(?:api-?key|key|token|secret|password|credentials?|auth|authorization|cookie|jwt|signature|session)"
    r"(?:$|[-_])",
    re.IGNORECASE,
)


def check_passing(method: str, path: str, *, admin: bool) -> None:
    """Check a request for which this server has no route. Raises RequestError if it must not be passed through.

    ``path``: the decoded path without the query. ``admin``: whether to allow all requests with a well-formed path.
    """
    if "\\" in path or any(part in (".", "..") for part in path.split("/")):
        raise RequestError(f"invalid path {path[:80]!r}: remove '..' segments and backslashes")
    is_reading = method in ("GET", "HEAD")
    known = _READS if is_reading else _ASKS if method == "POST" else None
    if admin or (known is not None and known.fullmatch(path)):
        return
    if method != "POST" and (_ASKS.fullmatch(path) or _OURS.fullmatch(path)):
        raise RequestError(f"{path[:80]} only accepts POST, got {method}", status=METHOD_NOT_ALLOWED)
    raise RequestError(
        f"{method} {path[:80]} is not passed on to the model server; by default, only requests that use models are. "
        "Start with --pass-admin to pass everything on",
        status=404 if is_reading else 403,
    )


def is_private(name: str) -> bool:
    """Return whether the name of a header or query parameter suggests that it contains credentials."""
    return name.lower() == "origin" or _KEY.search(name) is not None


def remove_keys(query: str) -> str:
    """Remove parameters with credentials from a query string."""
    return "&".join(part for part in query.split("&") if not is_private(part.partition("=")[0]))
