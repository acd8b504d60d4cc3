"""Documents that clients put into a conversation: their text where they are text, and else a refusal that says why."""

from __future__ import annotations

import base64
import binascii

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError

_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript")


def document(text: str, title: str, context: str = "") -> JsonObject:
    """A part of a message that holds the text of a document."""
    head = "\n".join(line for line in (f"Document: {title}" if title else "", context) if line)
    return {"type": "text", "text": f"{head}\n\n{text}" if head else text}


def decoded(kind: str, data: str, title: str, place: str) -> str:
    """The text of a document in base64, ``kind`` its media type. Raises RequestError for one that is no text."""
    name = kind.partition(";")[0].strip().lower()
    if not name.startswith("text/") and name not in _TEXTS:
        raise RequestError(
            f"{place} is {title or 'a document'} of the type {kind[:80]!r}: only text can be read here; send its text",
            place,
        )
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{place} is no text in base64 and UTF-8: {error}", place) from error


def unsupported_document(what: str, place: str) -> RequestError:
    """For documents that stand somewhere else: at an address, or among the files of an account."""
    return RequestError(f"{place} is {what}, which is not fetched from here; send its text", place)
