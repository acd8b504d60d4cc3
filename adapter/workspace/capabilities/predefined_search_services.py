"""The addresses and request formats of search services that users select by name. `HttpSearch` sends the requests.

Sources: Exa, https://exa.ai/docs/reference/search; Brave, https://api-dashboard.search.brave.com/api-reference/web;
SearXNG, https://docs.searxng.org/dev/search_api (its ``search.formats`` must allow ``json``).
"""

from __future__ import annotations

from typing import Any

from adapter.core.errors import UsageError
from adapter.workspace.capabilities.http_search_and_docs import MAX_CONTENT, HttpSearch

_EXA_BODY = {
    "query": "{query}",
    "numResults": "{limit}",
    "includeDomains": "{allowed_domains}",
    "excludeDomains": "{blocked_domains}",
    "contents": {"text": {"maxCharacters": MAX_CONTENT}},
}
_BRAVE_PATH = "/res/v1/web/search?q={query}{sites}&count={limit}&text_decorations=false"

SERVICES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "exa": (
        *("https://api.exa.ai", "/search"),
        {
            "key_variable": "EXA_API_KEY",
            "key_header": "x-api-key",
            "body": _EXA_BODY,
            "results": "results",
            "most": 100,
        },
    ),
    "brave": (
        *("https://api.search.brave.com", _BRAVE_PATH),
        {"key_variable": "BRAVE_API_KEY", "key_header": "X-Subscription-Token", "results": "web.results", "most": 20},
    ),
    "searxng": ("", "/search?format=json&q={query}", {"results": "results"}),
}
"""For each service's name in the configuration: its address, or "" if users run the service themselves; the path and
query of a search; and further arguments of `HttpSearch`."""


def get_search_service(name: str, server: str | None = None, key_variable: str | None = None) -> HttpSearch:
    """Return the service called ``name``.

    ``server``: address of the service, such as the user's SearXNG; None means the public server. ``key_variable``:
    environment variable that contains the key; None means the default variable. Raises UsageError if the name is
    unknown or the server is missing.
    """
    if name not in SERVICES:
        raise UsageError(
            f"unknown search service {name!r}; expected one of: {', '.join(SERVICES)}. For any other service, "
            "pass its url, with {query} as a placeholder"
        )
    public, path, options = SERVICES[name]
    if not (address := server or public):
        raise UsageError(
            f"the search service {name!r} needs the address of your own server, such as http://localhost:8888"
        )
    return HttpSearch(address.rstrip("/") + path, **options | ({"key_variable": key_variable} if key_variable else {}))
