"""Convert documents in requests: text documents become message parts, and other documents are rejected with a
reason."""

from __future__ import annotations

import base64
import binascii

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError

_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript")


def build_document(text: str, title: str, context: str = "") -> JsonObject:
    """Return a message part with the text of a document."""
    head = "\n".join(line for line in (f"Document: {title}" if title else "", context) if line)
    return {"type": "text", "text": f"{head}\n\n{text}" if head else text}


def decode_document(kind: str, data: str, title: str, path: str) -> str:
    """Decode a base64 document of the media type ``kind``. Raises RequestError if the document is not text."""
    name = kind.partition(";")[0].strip().lower()
    if not name.startswith("text/") and name not in _TEXTS:
        raise RequestError(
            f"{path} is {title or 'a document'} of type {kind[:80]!r}, but only text is supported; send its text",
            path,
        )
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{path} is not valid UTF-8 text in base64: {error}", path) from error


def build_unsupported_document(kind: str, path: str) -> RequestError:
    """Return the error for a document that the request names by URL or id, without its content."""
    return RequestError(f"{path} is {kind}, which this server does not fetch; send its text", path)
