"""What a model server counted in a request and its answer, in whichever of their ways it says so."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.values.events import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Usage:
    """In tokens. ``reused``: of the prompt, those that the server had read before; None: unsaid."""

    prompt: int
    written: int = 0
    reused: int | None = None


def usage_of(chunk: JsonObject) -> Usage | None:
    """Of an event of a stream or a whole completion; None where it says nothing."""
    usage, timings = chunk.get("usage"), chunk.get("timings")  # llama.cpp says timings without being asked
    if isinstance(timings, dict) and isinstance(read := timings.get("prompt_n"), int):
        reused = timings.get("cache_n")
        reused = reused if isinstance(reused, int) else None
        return Usage(read + (reused or 0), _count(timings.get("predicted_n")), reused)
    if isinstance(usage, dict) and isinstance(prompt := usage.get("prompt_tokens"), int):
        details = usage.get("prompt_tokens_details")
        reused = details.get("cached_tokens") if isinstance(details, dict) else None
        return Usage(prompt, _count(usage.get("completion_tokens")), reused if isinstance(reused, int) else None)
    return None


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0
