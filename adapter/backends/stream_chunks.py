"""What a model server streams, read into chunks of text, whatever its dialect of the OpenAI interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.core.events import Json, JsonObject
from adapter.protocols.template_prompt import as_chat
from adapter.protocols.usage import Usage, parse_usage

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

INCOMPLETE = "incomplete"
"""The finish reason of a stream that just stopped: a call in it must be taken as cut off."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer. The last ones have the ``finish_reason`` and, where the server counts, the ``usage``.
    ``raw`` is the server's own event. ``reading``: before the answer, how many tokens of the prompt are read, of how
    many; only llama.cpp tells."""

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    raw: JsonObject | None = None
    usage: Usage | None = None
    reading: tuple[int, int] | None = None


def parse_chunk(event: ChatCompletionChunk | JsonObject) -> Chunk:
    """One server event, in whatever dialect of the OpenAI interface it is, or a line of Ollama's own."""
    raw: JsonObject = event if isinstance(event, dict) else {}
    if hasattr(event, "model_dump"):
        raw = event.model_dump(exclude_unset=True, warnings=False)
    raw = as_chat(raw)
    choices = raw.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    # llama.cpp, vLLM, SGLang and DeepSeek say reasoning_content; OpenRouter and newer vLLM reasoning.
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    return Chunk(
        _text(delta.get("content")), _text(reasoning), choice.get("finish_reason"), raw, parse_usage(raw), _reading(raw)
    )


def _reading(raw: JsonObject) -> tuple[int, int] | None:
    """llama.cpp's ``prompt_progress``; what it had in its cache counts as read."""
    progress = raw.get("prompt_progress")
    done, total = (progress.get("processed"), progress.get("total")) if isinstance(progress, dict) else (None, None)
    return (done, total) if isinstance(done, int) and isinstance(total, int) else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
