"""Convert images, audio and documents in messages to OpenAI's chat format.

The notations of MCP and of the Responses API are converted. Media that the model does not accept are replaced by a
note. Text documents become message parts; other documents are rejected with a reason.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection

from adapter.conversation.message_content import build_image_part
from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import RequestError

IMAGE, AUDIO = "image", "audio"

_KINDS = {"image_url": IMAGE, "input_image": IMAGE, "image": IMAGE, "input_audio": AUDIO, "audio": AUDIO}
_LEFT_OUT = {
    IMAGE: "[An image was left out here: this model cannot see images.]",
    AUDIO: "[Audio was left out here: this model cannot hear audio.]",
}


def adapt_media(messages: Json, unsupported: Collection[str], start: int = 0) -> Json:
    """Return the messages with media in OpenAI's format, or the same list if no content is a list of parts.

    ``unsupported`` names the kinds of media that the model does not accept (`IMAGE`, `AUDIO`). ``start`` is the index
    of the first message to convert.
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
        case {"type": "input_text" | "output_text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return build_image_part(url)
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            return build_image_part(f"data:{media_type};base64,{data}")
        case {"type": "audio", "data": str(data), "mimeType": str(media_type)}:
            return {"type": "input_audio", "input_audio": {"data": data, "format": media_type.rpartition("/")[2]}}
    return part


_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript")


def build_document(text: str, title: str, context: str = "") -> JsonObject:
    """Return a message part with the text of a document, preceded by its title and ``context``, a note about it."""
    head = "\n".join(line for line in (f"Document: {title}" if title else "", context) if line)
    return {"type": "text", "text": f"{head}\n\n{text}" if head else text}


def decode_document(kind: str, data: str, title: str, path: str) -> str:
    """Decode a base64 document of the media type ``kind``. Raises RequestError if the document is not UTF-8 text.
    ``path`` is its location in the request, for the error."""
    name = kind.partition(";")[0].strip().lower()
    if not name.startswith("text/") and name not in _TEXTS:
        raise RequestError(
            f"{path} is {title or 'a document'} of type {kind[:80]!r}, but only text is supported; send its text", path
        )
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{path} is not valid UTF-8 text in base64: {error}", path) from error


def build_unfetched_error(kind: str, path: str, advice: str = "send its text") -> RequestError:
    """Return the error for a document or image that the request names by URL or id, without its content."""
    return RequestError(f"{path} is {kind}, which this server does not fetch; {advice}", path)
