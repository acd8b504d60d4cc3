"""What a message says: text, or a list of parts of which some are no text, as OpenAI's interface has them."""

from __future__ import annotations

from typing import TypeAlias

from adapter.core.events import Json

Content: TypeAlias = str | list[Json]


def concat_content(first: Content, second: Content, between: str) -> Content:
    """Both, one after the other; a text as long as both are."""
    if isinstance(first, str) and isinstance(second, str):
        return between.join(text for text in (first, second) if text)
    return [*_parts(first), *_parts(second)]


def image_part(url: str) -> Json:
    """The part that shows an image; ``url`` may be a data URL that holds it."""
    return {"type": "image_url", "image_url": {"url": url}}


def image_url(part: Json) -> str | None:
    """The address of the image that a part shows; None for other parts. Some clients leave out the object around it."""
    shown = part.get("image_url") if isinstance(part, dict) else None
    url = shown.get("url") if isinstance(shown, dict) else shown
    return url if isinstance(url, str) else None


def _parts(content: Content) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content
