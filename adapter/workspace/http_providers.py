"""Search and library documentation from HTTP services, for a `Host`.

An address is a template: ``{query}``, ``{limit}``, ``{name}``, ``{id}``, ``{mode}``, ``{topic}`` and ``{page}`` become
the call's values, ``{key}`` the key. The key comes from the environment and is never shown. Read as
JSON: a list, or an object with the list under ``results``, of objects whose fields have the usual names.

::

    HttpSearch("http://localhost:8888/search?format=json&q={query}")                         # SearXNG
    HttpDocs("https://context7.com/api/v1/search?query={name}",
             "https://context7.com/api/v1{id}?type=txt&topic={topic}&page={page}", key_variable="CONTEXT7_API_KEY")
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from urllib.parse import quote

from adapter.errors import ToolError, UsageError
from adapter.events import Json, JsonObject
from adapter.operations import DocsMode, Library, SearchHit, SearchWeb

TIMEOUT_S = 25.0
"""For an answer of a search or documentation service."""
MAX_BYTES = 2_000_000
"""Of an answer of a search or documentation service."""
MAX_CONTENT = 2_000
"""Characters of a hit."""
MAX_DOCS = 10_000
"""Characters of a page of documentation."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class _Service:
    def __init__(self, key_variable: str | None) -> None:
        self._key_variable = key_variable

    def _get(self, template: str, values: dict[str, str]) -> bytes:
        """The body. Raises ToolError without address and key: both are the user's."""
        import httpx2

        headers = {"Accept": "application/json, text/plain", "User-Agent": "toolcall-adapter"}
        key = self._key()
        if key and "{key}" not in template:
            headers["Authorization"] = f"Bearer {key}"
        url = _filled(template, values | {"key": key})
        try:
            with (
                httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as client,
                client.stream("GET", url, headers=headers) as response,
            ):
                if response.status_code != 200:
                    raise ToolError(f"the service answered with HTTP status {response.status_code}; go on without it")
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise ToolError(f"the service's answer is larger than {MAX_BYTES:,} bytes; ask for less")
                return body
        except httpx2.HTTPError as error:
            raise ToolError(f"the service does not answer ({type(error).__name__}); go on without it") from None

    def _key(self) -> str:
        if self._key_variable is None:
            return ""
        key = os.environ.get(self._key_variable, "")
        if not key:
            raise ToolError(f"the service needs a key and {self._key_variable} is not set; the user has to set it")
        return key


class HttpSearch(_Service):
    """A search service. ``url`` must hold ``{query}``."""

    def __init__(self, url: str, *, key_variable: str | None = None) -> None:
        super().__init__(key_variable)
        _check_template(url, "query")
        self._url = url

    def search(self, wanted: SearchWeb) -> Sequence[SearchHit]:
        rows = _rows(self._get(self._url, {"query": wanted.query, "limit": str(wanted.limit)}))
        return [
            SearchHit(
                _field(row, "title", "name"),
                _field(row, "url", "link", "href"),
                _field(row, "content", "text", "snippet", "description", "summary")[:MAX_CONTENT],
            )
            for row in rows
        ]


class HttpDocs(_Service):
    """A documentation service: ``find_url`` must hold ``{name}``, ``read_url`` ``{id}`` (which begins with ``/``)."""

    def __init__(self, find_url: str, read_url: str, *, key_variable: str | None = None) -> None:
        super().__init__(key_variable)
        _check_template(find_url, "name")
        _check_template(read_url, "id")
        self._find_url, self._read_url = find_url, read_url

    def find(self, name: str) -> Sequence[Library]:
        rows = _rows(self._get(self._find_url, {"name": name}))
        return [
            Library(
                _field(row, "id"),
                _field(row, "title", "name"),
                _field(row, "description")[:MAX_CONTENT],
                _field(row, "version"),
            )
            for row in rows
            if _field(row, "id")
        ]

    def read(self, library_id: str, mode: DocsMode, topic: str | None, page: int) -> str:
        values = {"id": library_id, "mode": mode, "topic": topic or "", "page": str(page)}
        text = self._get(self._read_url, values).decode("utf-8", "replace")
        if not text.strip():
            raise ToolError(f"the service has nothing on page {page} about {library_id}; try another topic or page")
        return (
            text if len(text) <= MAX_DOCS else f"{text[:MAX_DOCS]}\n(cut at {MAX_DOCS} characters; see the next page)"
        )


def _check_template(url: str, needed: str) -> None:
    if not url.startswith(("http://", "https://")) or f"{{{needed}}}" not in url:
        raise UsageError(f"{url!r} is no address template; expected http(s)://... with {{{needed}}} in it")


def _filled(template: str, values: dict[str, str]) -> str:
    """The values stand in the address as text and can add nothing to it; only an id keeps its slashes."""
    safe = {"id": "/"}
    return _PLACEHOLDER.sub(lambda match: quote(values.get(match[1], ""), safe=safe.get(match[1], "")), template)


def _rows(body: bytes) -> list[JsonObject]:
    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        raise ToolError("the service's answer is not JSON; go on without it") from None
    rows = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise ToolError("the service's answer has no list of results; go on without it")
    return [row for row in rows if isinstance(row, dict)]


def _field(row: JsonObject, *names: str) -> str:
    return next((str(row[name]) for name in names if row.get(name)), "")
