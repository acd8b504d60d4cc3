"""Search and library documentation from HTTP services, for a `Host`.

An address is a template: ``{query}``, ``{limit}``, ``{sites}``, ``{name}``, ``{id}``, ``{mode}``, ``{topic}`` and
``{page}`` become the call's values, ``{key}`` the key. A search with a ``body`` is a POST of that JSON, whose texts are
templates, too: one that is only ``{limit}`` becomes a number, ``{allowed_domains}`` and ``{blocked_domains}`` lists,
and what would be an empty list is left out. The key comes from the environment and is never shown, not even where the
service repeats it. Answers are JSON: a list of objects whose fields have the usual names, or an object that holds it.

::

    HttpSearch("http://localhost:8888/search?format=json&q={query}")
    HttpDocs("https://context7.com/api/v1/search?query={name}",
             "https://context7.com/api/v1{id}?type=txt&topic={topic}&page={page}", key_variable="CONTEXT7_API_KEY")

Search services that are known by name: `adapter.workspace.capabilities.search_services`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.tools.operations import DocsMode, Library, SearchHit, SearchWeb

TIMEOUT_S = 25.0
"""For an answer of a search or documentation service."""
MAX_BYTES = 2_000_000
"""Of an answer of a search or documentation service."""
MAX_CONTENT = 2_000
"""Characters of a hit; a longer one ends in ``...``."""
MAX_DOCS = 10_000
"""Characters of a page of documentation."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NEXT_STEPS = {
    400: "it takes no such query; make it shorter or simpler",
    401: "the user has to check its key",
    402: "the user's account there has no credit left; go on without it",
    403: "the user has to check its key, and whether it answers in JSON",
    422: "it takes no such query; make it shorter or simpler",
    429: "it was asked too often; ask again later, or go on without it",
}


class _Service:
    def __init__(self, key_variable: str | None, key_header: str = "Authorization") -> None:
        self.key_variable = key_variable
        self._key_header = key_header

    def _ask(self, template: str, values: Mapping[str, str], body: Json = None) -> bytes:
        """What the service answers. Raises ToolError without address and key: both are the user's."""
        import httpx2

        headers = {"Accept": "application/json, text/plain", "User-Agent": "toolcall-adapter"}
        key = self._key()
        if key and "{key}" not in template:
            headers[self._key_header] = f"Bearer {key}" if self._key_header == "Authorization" else key
        url = _filled(template, {**values, "key": key})
        try:
            with (
                httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as client,
                client.stream("GET" if body is None else "POST", url, headers=headers, json=body) as response,
            ):
                status = response.status_code
                if status != 200:
                    step = _NEXT_STEPS.get(status, "go on without it")
                    raise ToolError(f"the service answered with HTTP status {status}; {step}")
                answer = b""
                for chunk in response.iter_bytes():
                    answer += chunk
                    if len(answer) > MAX_BYTES:
                        raise ToolError(f"the service's answer is larger than {MAX_BYTES:,} bytes; ask for less")
                return _without(key, answer)
        except httpx2.HTTPError as error:
            raise ToolError(f"the service does not answer ({type(error).__name__}); go on without it") from None

    def _key(self) -> str:
        if self.key_variable is None:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ToolError(f"the service needs a key and {self.key_variable} is not set; the user has to set it")
        return key


class HttpSearch(_Service):
    """A search service. ``url``, or with a ``body`` that, must hold ``{query}``.

    ``key_header``: where the key goes, after ``Bearer`` when it is ``Authorization``. ``results``: where in the answer
    the list is, ``web.results`` for one in an object ``web``. ``most``: results that the service gives at once.
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

    def search(self, wanted: SearchWeb) -> Sequence[SearchHit]:
        limit = wanted.limit if self.most is None else min(wanted.limit, self.most)
        sites = " OR ".join(f"site:{domain}" for domain in wanted.allowed_domains)
        without = "".join(f" -site:{domain}" for domain in wanted.blocked_domains)
        values = {"query": wanted.query, "limit": str(limit), "sites": (f" {sites}" if sites else "") + without}
        objects: JsonObject = {
            **values,
            "limit": limit,
            "allowed_domains": list(wanted.allowed_domains),
            "blocked_domains": list(wanted.blocked_domains),
        }
        body = None if self._body is None else _with_values(self._body, objects)
        return [
            SearchHit(
                _field(row, "title", "name"),
                _field(row, "url", "link", "href"),
                _clipped(_field(row, "content", "text", "snippet", "description", "summary")),
            )
            for row in _rows(self._ask(self._url, values, body), self._results)
        ]


class HttpDocs(_Service):
    """A documentation service: ``find_url`` must hold ``{name}``, ``read_url`` ``{id}`` (which begins with ``/``)."""

    def __init__(self, find_url: str, read_url: str, *, key_variable: str | None = None) -> None:
        super().__init__(key_variable)
        _check_template(find_url, "name", find_url)
        _check_template(read_url, "id", read_url)
        self._find_url, self._read_url = find_url, read_url

    def find(self, name: str) -> Sequence[Library]:
        rows = _rows(self._ask(self._find_url, {"name": name}))
        return [
            Library(
                _field(row, "id"),
                _field(row, "title", "name"),
                _clipped(_field(row, "description")),
                _field(row, "version"),
            )
            for row in rows
            if _field(row, "id")
        ]

    def read(self, library_id: str, mode: DocsMode, topic: str | None, page: int) -> str:
        values = {"id": library_id, "mode": mode, "topic": topic or "", "page": str(page)}
        text = self._ask(self._read_url, values).decode("utf-8", "replace")
        if not text.strip():
            raise ToolError(f"the service has nothing on page {page} about {library_id}; try another topic or page")
        return (
            text if len(text) <= MAX_DOCS else f"{text[:MAX_DOCS]}\n(cut at {MAX_DOCS} characters; see the next page)"
        )


def _check_template(url: str, needed: str, template: str) -> None:
    if not url.startswith(("http://", "https://")) or f"{{{needed}}}" not in template:
        raise UsageError(f"{url!r} is no address template; expected http(s)://... with {{{needed}}} in it")


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The values stand in the address as text and can add nothing to it; only an id keeps its slashes."""
    safe = {"id": "/"}
    return _PLACEHOLDER.sub(lambda match: quote(values.get(match[1], ""), safe=safe.get(match[1], "")), template)


def _with_values(template: Json, values: JsonObject) -> Json:
    """The body with the values in its texts; members that would be empty lists are left out."""
    match template:
        case dict():
            filled = {name: _with_values(inner, values) for name, inner in template.items()}
            return {name: inner for name, inner in filled.items() if inner != []}
        case list():
            return [_with_values(inner, values) for inner in template]
        case str() if (alone := _PLACEHOLDER.fullmatch(template)) and alone[1] in values:
            return values[alone[1]]
        case str():
            return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), template)
        case _:
            return template


def _without(key: str, answer: bytes) -> bytes:
    """The answer without the key, however the service writes it."""
    for spelling in {key, quote(key, safe=""), json.dumps(key)[1:-1]} - {""}:
        answer = answer.replace(spelling.encode(), b"[redacted]")
    return answer


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_CONTENT else f"{text[: MAX_CONTENT - 3]}..."


def _rows(answer: bytes, place: str = "") -> list[JsonObject]:
    try:
        rows: Json = json.loads(answer)
    except (ValueError, RecursionError):
        raise ToolError("the service's answer is not JSON; go on without it") from None
    if isinstance(rows, dict):
        for name in place.split(".") if place else ["results" if "results" in rows else "data"]:
            rows = rows.get(name) if isinstance(rows, dict) else None
    if not isinstance(rows, list):
        raise ToolError("the service's answer has no list of results; go on without it")
    return [row for row in rows if isinstance(row, dict)]


def _field(row: JsonObject, *names: str) -> str:
    return next((str(row[name]) for name in names if row.get(name)), "")
