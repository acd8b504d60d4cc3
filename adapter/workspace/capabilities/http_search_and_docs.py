"""Provide search and library documentation from HTTP services, for a `Host`.

Addresses are templates. The values of the call replace ``{query}``, ``{limit}``, ``{sites}``, ``{name}``, ``{id}``,
``{mode}``, ``{topic}`` and ``{page}``; the key replaces ``{key}``. The key comes from the environment and is never
shown, even if the service repeats it.

A search with a ``body`` sends it as JSON by POST. Its strings are also templates: a string that is only ``{limit}``
becomes a number, ``{allowed_domains}`` and ``{blocked_domains}`` become lists, and empty lists are left out. Responses
are JSON: a list of objects with common field names, or an object that contains the list.

::

    HttpSearch("http://localhost:8888/search?format=json&q={query}")
    HttpDocs("https://context7.com/api/v1/search?query={name}",
             "https://context7.com/api/v1{id}?type=txt&topic={topic}&page={page}", key_variable="CONTEXT7_API_KEY")

Predefined search services: `adapter.workspace.capabilities.predefined_search_services`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import shorten
from adapter.tools.operations import DocsMode, Library, SearchHit, SearchWeb

TIMEOUT_S = 25.0
"""Timeout of a search or documentation service, in seconds."""
MAX_BYTES = 2_000_000
"""Maximum size of a response, in bytes."""
MAX_CONTENT = 2_000
"""Maximum number of characters kept of a hit. A longer hit ends with ``...``."""
MAX_DOCS = 10_000
"""Maximum number of characters kept of a documentation page."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NEXT_STEPS = {
    400: "it rejected the query; make it shorter or simpler",
    401: "the user has to check its key",
    402: "the user's account there has no credit left; continue without it",
    403: "the user has to check its key, and that it returns JSON",
    422: "it rejected the query; make it shorter or simpler",
    429: "it received too many requests; try again later, or continue without it",
}


class _Service:
    def __init__(self, key_variable: str | None, key_header: str = "Authorization") -> None:
        self.key_variable = key_variable
        self._key_header = key_header

    def _send_request(self, template: str, values: Mapping[str, str], body: Json = None) -> bytes:
        """Send a request, and return the body of the response. Raises ToolError on failure; its message contains
        neither the address nor the key."""
        import httpx2

        headers = {"Accept": "application/json, text/plain", "User-Agent": "toolcall-adapter"}
        key = self._find_key()
        if key and "{key}" not in template:
            headers[self._key_header] = f"Bearer {key}" if self._key_header == "Authorization" else key
        try:
            url = _fill_url(template, {**values, "key": key})
            with (
                httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as client,
                client.stream("GET" if body is None else "POST", url, headers=headers, json=body) as response,
            ):
                status = response.status_code
                if status != 200:
                    step = _NEXT_STEPS.get(status, "continue without it")
                    raise ToolError(f"the service returned HTTP status {status}; {step}")
                answer = b""
                for chunk in response.iter_bytes():
                    answer += chunk
                    if len(answer) > MAX_BYTES:
                        raise ToolError(f"the service's response is larger than {MAX_BYTES:,} bytes; request less")
                return _redact_key(key, answer)
        except (httpx2.InvalidURL, UnicodeEncodeError) as error:
            raise ToolError(f"the query makes an invalid request ({error}); make it shorter or simpler") from None
        except httpx2.HTTPError as error:
            raise ToolError(f"the service does not respond ({type(error).__name__}); continue without it") from None

    def _find_key(self) -> str:
        if self.key_variable is None:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ToolError(f"the service needs a key, but {self.key_variable} is not set; the user has to set it")
        if not key.isascii():
            raise ToolError(f"the key in {self.key_variable} has characters beyond ASCII; the user has to correct it")
        return key


class HttpSearch(_Service):
    """A search service; ``url`` or ``body`` must contain ``{query}``.

    Args:
        key_header: Header that carries the key; in ``Authorization``, the word ``Bearer`` precedes it.
        results: Path of the result list in the response, such as ``web.results``.
        most: Maximum number of results per request.
    """

    def __init__(
        self,
        url: str,
        *,
        key_variable: str | None = None,
        key_header: str = "Authorization",
        body: JsonObject | None = None,
        results: str = "",
        most: int | None = None,
    ) -> None:
        super().__init__(key_variable, key_header)
        _check_template(url, "query", json.dumps(body) if body else url)
        self._url, self._body, self._results, self.most = url, body, results, most

    def search(self, request: SearchWeb) -> Sequence[SearchHit]:
        limit = request.limit if self.most is None else min(request.limit, self.most)
        sites = " OR ".join(f"site:{domain}" for domain in request.allowed_domains)
        excluded = "".join(f" -site:{domain}" for domain in request.blocked_domains)
        values = {"query": request.query, "limit": str(limit), "sites": (f" {sites}" if sites else "") + excluded}
        objects: JsonObject = {
            **values,
            "limit": limit,
            "allowed_domains": list(request.allowed_domains),
            "blocked_domains": list(request.blocked_domains),
        }
        body = None if self._body is None else _fill_body(self._body, objects)
        return [
            SearchHit(
                _find_field(row, "title", "name"),
                _find_field(row, "url", "link", "href"),
                shorten(_find_field(row, "content", "text", "snippet", "description", "summary"), MAX_CONTENT),
            )
            for row in _parse_rows(self._send_request(self._url, values, body), self._results)
        ]


class HttpDocs(_Service):
    """A documentation service. ``find_url`` must contain ``{name}``, and ``read_url`` must contain ``{id}``.

    Ids start with ``/``.
    """

    def __init__(self, find_url: str, read_url: str, *, key_variable: str | None = None) -> None:
        super().__init__(key_variable)
        _check_template(find_url, "name", find_url)
        _check_template(read_url, "id", read_url)
        self._find_url, self._read_url = find_url, read_url

    def find(self, name: str) -> Sequence[Library]:
        rows = _parse_rows(self._send_request(self._find_url, {"name": name}))
        return [
            Library(
                _find_field(row, "id"),
                _find_field(row, "title", "name"),
                shorten(_find_field(row, "description"), MAX_CONTENT),
                _find_field(row, "version"),
            )
            for row in rows
            if _find_field(row, "id")
        ]

    def read(self, library_id: str, mode: DocsMode, topic: str | None, page: int) -> str:
        values = {"id": library_id, "mode": mode, "topic": topic or "", "page": str(page)}
        text = self._send_request(self._read_url, values).decode("utf-8", "replace")
        if not text.strip():
            raise ToolError(f"the service has no page {page} about {library_id}; try another topic or page")
        more = f"\n(cut at {MAX_DOCS} characters; see the next page)" if len(text) > MAX_DOCS else ""
        return text[:MAX_DOCS] + more


def _check_template(url: str, placeholder: str, template: str) -> None:
    if not url.startswith(("http://", "https://")) or f"{{{placeholder}}}" not in template:
        raise UsageError(f"invalid address template {url!r}: expected an http(s) address with {{{placeholder}}} in it")


def _fill_url(template: str, values: Mapping[str, str]) -> str:
    """Insert the values with percent-encoding, so that they cannot change the address. Only ids keep their slashes."""
    safe = {"id": "/"}
    return _PLACEHOLDER.sub(lambda match: quote(values.get(match[1], ""), safe=safe.get(match[1], "")), template)


def _fill_body(template: Json, values: JsonObject) -> Json:
    """Insert the values in the strings of the body. Members whose value becomes an empty list are left out."""
    match template:
        case dict():
            filled = {name: _fill_body(inner, values) for name, inner in template.items()}
            return {name: inner for name, inner in filled.items() if inner != []}
        case list():
            return [_fill_body(inner, values) for inner in template]
        case str() if (alone := _PLACEHOLDER.fullmatch(template)) and alone[1] in values:
            return values[alone[1]]
        case str():
            return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), template)
        case _:
            return template


def _redact_key(key: str, answer: bytes) -> bytes:
    """Remove the key from the response, in any encoding that the service may use."""
    for spelling in {key, quote(key, safe=""), json.dumps(key)[1:-1]} - {""}:
        answer = answer.replace(spelling.encode(), b"[redacted]")
    return answer


def _parse_rows(answer: bytes, path: str = "") -> list[JsonObject]:
    try:
        rows: Json = json.loads(answer)
    except (ValueError, RecursionError):
        raise ToolError("the service's response is not valid JSON; continue without it") from None
    if isinstance(rows, dict):
        for name in path.split(".") if path else ["results" if "results" in rows else "data"]:
            rows = rows.get(name) if isinstance(rows, dict) else None
    if not isinstance(rows, list):
        raise ToolError("the service's response has no list of results; continue without it")
    return [row for row in rows if isinstance(row, dict)]


def _find_field(row: JsonObject, *names: str) -> str:
    return next((str(row[name]) for name in names if row.get(name)), "")
