"""Images and audio in messages: convert MCP's notation, and replace unsupported media with a text that names them."""

from __future__ import annotations

from collections.abc import Collection

from adapter.conversation.message_content import build_image_part
from adapter.core.events import Json, JsonObject

IMAGE, AUDIO = "image", "audio"

_KINDS = {"image_url": IMAGE, "input_image": IMAGE, "image": IMAGE, "input_audio": AUDIO, "audio": AUDIO}
_LEFT_OUT = {
    IMAGE: "[An image was left out here: this model cannot see images.]",
    AUDIO: "[Audio was left out here: this model cannot hear audio.]",
}


def adapt_media(messages: Json, unsupported: Collection[str], start: int = 0) -> Json:
    """Return the messages with media in OpenAI's format, or the same list if no content is a list of parts.

    ``unsupported`` names the kinds of media that the model does not accept; they are replaced by a text. ``start`` is
    the index of the first message to convert.
    """
    if not isinstance(messages, list) or not any(map(_has_parts, messages[start:])):
        return messages
    return [_convert_message(each, unsupported) if _has_parts(each) else each for each in messages]


def _has_parts(message: Json) -> bool:
    return isinstance(message, dict) and isinstance(message.get("content"), list)


def _convert_message(message: JsonObject, unsupported: Collection[str]) -> JsonObject:
    return {**message, "content": [_convert_part(part, unsupported) for part in message["content"]]}


def _convert_part(part: Json, unsupported: Collection[str]) -> Json:
    kind = _KINDS.get(str(part.get("type"))) if isinstance(part, dict) else None
    if kind in unsupported:
        return {"type": "text", "text": _LEFT_OUT[kind]} if kind else part
    match part:
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            return build_image_part(f"data:{media_type};base64,{data}")
        case {"type": "audio", "data": str(data), "mimeType": str(media_type)}:
            return {"type": "input_audio", "input_audio": {"data": data, "format": media_type.rpartition("/")[2]}}
    return part
