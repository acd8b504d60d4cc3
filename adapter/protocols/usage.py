"""Parse the token usage reported by a model server, in any server's format, and convert it to OpenAI's format."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.core.events import Json, JsonObject

STORED = ("cache_write_tokens", "created_cache_tokens", "cache_creation_tokens")
"""OpenAI's, vLLM's and LiteLLM's name for the number of prompt tokens written to the cache."""

REUSED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
"""Moonshot's, DeepSeek's and LiteLLM's name for the number of cached prompt tokens, which OpenAI reports elsewhere."""

MAX_TOKENS = 1_000_000_000
"""Maximum plausible token count of one answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The token usage of an answer. ``reused`` counts prompt tokens read from the server's cache, ``stored`` prompt
    tokens written to it, and ``reasoning`` the completion tokens of reasoning. They are None if not reported."""

    prompt: int
    written: int = 0
    reused: int | None = None
    reasoning: int | None = None
    stored: int | None = None

    def to_openai(self) -> JsonObject:
        """Return the usage in OpenAI's format, without details that are unknown."""
        usage: JsonObject = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.written,
            "total_tokens": self.prompt + self.written,
        }
        if self.reused is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": min(self.reused, self.prompt)}
            if self.stored is not None:
                left = self.prompt - min(self.reused, self.prompt)
                usage["prompt_tokens_details"][STORED[0]] = min(self.stored, left)
        if self.reasoning is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": self.reasoning}
        return usage


def parse_usage(chunk: JsonObject) -> Usage | None:
    """Return the token usage in a stream event or a completion, or None if the usage is missing."""
    usage, timings = (
        get_object(chunk.get("usage")),
        get_object(chunk.get("timings")),
    )  # llama.cpp always sends timings
    evaluated, cached = _count(timings.get("prompt_n")), _count(timings.get("cache_n"))
    prompt, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if prompt is None and evaluated is None:
        return None
    details = get_object(usage.get("prompt_tokens_details"))
    reported = (details.get(REUSED[0]), *map(usage.get, REUSED))
    reused = next((count for each in reported if (count := _count(each)) is not None), cached)
    return Usage(
        (evaluated or 0) + (cached or 0) if prompt is None else prompt,
        (_count(timings.get("predicted_n")) if written is None else written) or 0,
        reused,
        _count(get_object(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        next((count for name in STORED if (count := _count(details.get(name))) is not None), None),
    )


def get_object(value: Json) -> JsonObject:
    """Return ``value`` if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def _count(value: Json) -> int | None:
    is_count = isinstance(value, int | float) and not isinstance(value, bool)  # some servers write 9.0
    return int(value) if is_count and 0 <= value <= MAX_TOKENS else None
