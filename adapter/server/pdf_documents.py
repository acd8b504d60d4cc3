"""Replace PDFs in requests by their text, because inference engines cannot read documents.

Source: https://platform.openai.com/docs/guides/pdf-files (``input_file``), and
https://docs.anthropic.com/en/docs/build-with-claude/pdf-support (``document``).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from functools import partial

from starlette.requests import Request as HttpRequest

from adapter.core.errors import ToolError
from adapter.core.events import Json, JsonObject
from adapter.core.json.load import load_json
from adapter.core.text.text_cache import TextCache
from adapter.protocols.request_body_parsing import MAX_TEXT
from adapter.protocols.request_errors import RequestError
from adapter.server.request_body import read_json_body
from adapter.server.translation_threads import TranslationThreads
from adapter.workspace.files.media import read_pdf_text

PDF = "application/pdf"
_DATA_URL = f"data:{PDF};base64,"

MAX_PDFS = 20
"""Maximum number of PDFs in a request."""
MAX_CACHED_CHARACTERS = 20_000_000
"""Maximum total length of the texts in the cache, in characters. Every turn of a conversation repeats its PDFs."""


class PdfReader:
    """Reads the PDFs in requests. It reads one PDF at a time, because each needs a process for up to `PDF_SECONDS`."""

    def __init__(self) -> None:
        self._texts = TextCache(MAX_CACHED_CHARACTERS)
        self._one_at_a_time = asyncio.Semaphore(1)

    async def read_body(self, http: HttpRequest, work: TranslationThreads) -> tuple[int, JsonObject]:
        """Return the size of a request body in bytes, and the body with its PDFs replaced by their text.

        Raises RequestError if a PDF contains no text.
        """
        content, body = await read_json_body(http, work)
        size, text_size = len(content), 0
        if PDF.encode() in content:
            body = await work.run(size, partial(load_json, content))  # a copy, because known messages are shared
            found = await work.run(size, partial(_find_pdfs, body))
            if len(found) > MAX_PDFS:
                raise RequestError(f"a request can contain at most {MAX_PDFS} PDFs, got {len(found)}; send fewer")
            for part, title in found:
                text = await self._read_document_text(_get_data(part), title or "the document")
                text_size += len(text)
                if text_size > MAX_TEXT:
                    raise RequestError(f"the PDFs contain more than {MAX_TEXT:,} characters of text; send fewer PDFs")
                _replace(part, text)
        return size + text_size, body

    async def _read_document_text(self, data: str, title: str) -> str:
        key = hashlib.sha256(data.encode()).hexdigest()
        if (text := self._texts.find(key)) is None:
            async with self._one_at_a_time:
                text = await asyncio.to_thread(_read_text, data, title)
            self._texts.store(key, text, len(key))
        return text


def _find_pdfs(value: Json) -> list[tuple[JsonObject, str]]:
    """Return each object that contains a PDF, with the title of its document."""
    found: list[tuple[JsonObject, str]] = []
    waiting: list[tuple[Json, str]] = [(value, "")]
    while waiting:
        each, title = waiting.pop()
        if isinstance(each, dict):
            title = str(each.get("filename") or each.get("title") or "")
            found.append((each, title))
            source = each.get("source")
            waiting += [(inner, "") for name, inner in each.items() if name != "source"]
            if isinstance(source, dict):
                found.append((source, title))
        elif isinstance(each, list):
            waiting += [(inner, "") for inner in each]
    return [(part, title) for part, title in found if _get_data(part)]


def _get_data(part: JsonObject) -> str:
    match part:
        case {"type": "input_file", "file_data": str(url)} if url.startswith(_DATA_URL):
            return url.removeprefix(_DATA_URL)
        case {"type": "base64", "media_type": str(kind), "data": str(data)} if kind == PDF:
            return data
    return ""


def _replace(part: JsonObject, text: str) -> None:
    if part["type"] == "base64":
        part.update(type="text", media_type="text/plain", data=text)
    else:
        part["file_data"] = "data:text/plain;base64," + base64.b64encode(text.encode()).decode()


def _read_text(data: str, title: str) -> str:
    try:
        text, _ = read_pdf_text(base64.b64decode(data, validate=True), title)
    except binascii.Error as error:
        raise RequestError(f"{title} is not valid base64: {error}") from error
    except ToolError as error:
        raise RequestError(str(error)) from error
    return text.encode("utf-8", "replace").decode()
