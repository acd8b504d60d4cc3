"""Read the token usage that a model server reports, in any server's format."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.core.events import Json, JsonObject

MAX_TOKENS = 1_000_000_000
"""Maximum plausible token count of one answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The token usage of an answer. ``reused``: prompt tokens from the server's cache; None if not reported."""

    prompt: int
    written: int = 0
    reused: int | None = None


def parse_usage(chunk: JsonObject) -> Usage | None:
    """Return the token usage in a stream event or a completion; None if the usage is missing."""
    usage, timings = chunk.get("usage"), chunk.get("timings")  # llama.cpp always sends timings
    if isinstance(timings, dict) and (read := _count(timings.get("prompt_n"))) is not None:
        reused = _count(timings.get("cache_n"))
        return Usage(read + (reused or 0), _count(timings.get("predicted_n")) or 0, reused)
    if isinstance(usage, dict) and (prompt := _count(usage.get("prompt_tokens"))) is not None:
        details = usage.get("prompt_tokens_details")
        reused = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
        return Usage(prompt, _count(usage.get("completion_tokens")) or 0, reused)
    return None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= MAX_TOKENS else None
