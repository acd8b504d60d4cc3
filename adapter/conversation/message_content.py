"""Read and build the content of a message in OpenAI's format: a string, or a list of parts such as text and images."""

from __future__ import annotations

from typing import TypeAlias

from adapter.core.events import Json, JsonObject

Content: TypeAlias = str | list[Json]

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
"""Fields of a message with its reasoning: of llama.cpp, vLLM, SGLang and DeepSeek; of OpenRouter and newer vLLM; of
Ollama; of GitHub Copilot."""


def concat_content(first: Content, second: Content, between: str) -> Content:
    """Concatenate two contents. Two strings are joined with ``between``; otherwise, the result is a list of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return between.join(text for text in (first, second) if text)
    return [*_list_parts(first), *_list_parts(second)]


def get_text(content: Json) -> str:
    """Return the text of a message's content, without images and other parts. Return "" if the content is invalid."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def get_reasoning(message: JsonObject) -> str:
    """Return the reasoning in a message or in a delta of a stream, in any server's format, or ""."""
    for name in REASONING_FIELDS:
        if isinstance(reasoning := message.get(name), str) and reasoning:
            return reasoning
    details = message.get("reasoning_details")  # OpenRouter's and MiniMax's
    return "".join(map(get_text, [[each] for each in details])) if isinstance(details, list) else ""


def build_image_part(url: str) -> Json:
    """Return a message part for an image. ``url`` may be a data URL."""
    return {"type": "image_url", "image_url": {"url": url}}


def get_image_url(part: Json) -> str | None:
    """Return the URL in an image part, or None for other parts. Some clients send the URL as a string instead of an
    object."""
    image = part.get("image_url") if isinstance(part, dict) else None
    url = image.get("url") if isinstance(image, dict) else image
    return url if isinstance(url, str) else None


def _list_parts(content: Content) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content
