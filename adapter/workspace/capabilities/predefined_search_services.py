"""The addresses and request formats of search services that users select by name. `HttpSearch` sends the requests.

Sources: Exa, https://exa.ai/docs/reference/search; Brave, https://api-dashboard.search.brave.com/api-reference/web;
SearXNG, https://docs.searxng.org/dev/search_api (its ``search.formats`` must allow ``json``).
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.workspace.capabilities.http_search_and_docs import MAX_CONTENT, HttpSearch


@dataclass(frozen=True, slots=True)
class SearchService:
    """A search service. ``server``: address, or "" if users run the service themselves. ``path``: path and query of the
    address.

    The other fields are those of `HttpSearch`.
    """

    server: str
    path: str
    key_variable: str | None = None
    key_header: str = "Authorization"
    body: JsonObject | None = None
    results: str = "results"
    most: int | None = None


SERVICES = {
    "exa": SearchService(
        "https://api.exa.ai",
        "/search",
        key_variable="EXA_API_KEY",
        key_header="x-api-key",
        body={
            "query": "{query}",
            "numResults": "{limit}",
            "includeDomains": "{allowed_domains}",
            "excludeDomains": "{blocked_domains}",
            "contents": {"text": {"maxCharacters": MAX_CONTENT}},
        },
        most=100,
    ),
    "brave": SearchService(
        "https://api.search.brave.com",
        "/res/v1/web/search?q={query}{sites}&count={limit}&text_decorations=false",
        key_variable="BRAVE_API_KEY",
        key_header="X-Subscription-Token",
        results="web.results",
        most=20,
    ),
    "searxng": SearchService("", "/search?format=json&q={query}"),
}
"""The services by their names in the configuration."""


def get_search_service(name: str, server: str | None = None, key_variable: str | None = None) -> HttpSearch:
    """Return the service called ``name``.

    ``server``: address of the service, such as the user's SearXNG; None means the public server. ``key_variable``:
    environment variable that contains the key; None means the default variable. Raises UsageError if the name is
    unknown or the server is missing.
    """
    service = SERVICES.get(name)
    if service is None:
        raise UsageError(
            f"unknown search service {name!r}; expected one of: {', '.join(SERVICES)}. For any other service, "
            "pass its url, with {query} as a placeholder"
        )
    address = server or service.server
    if not address:
        raise UsageError(
            f"the search service {name!r} needs the address of your own server, such as http://localhost:8888"
        )
    return HttpSearch(
        address.rstrip("/") + service.path,
        key_variable=key_variable or service.key_variable,
        key_header=service.key_header,
        body=service.body,
        results=service.results,
        most=service.most,
    )
