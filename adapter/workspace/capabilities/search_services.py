"""The search services that are known by name, and how each is asked.

Sources: Exa, https://exa.ai/docs/reference/search; Brave, https://api-dashboard.search.brave.com/api-reference/web;
SearXNG, https://docs.searxng.org/dev/search_api (its ``search.formats`` must allow ``json``).
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.workspace.capabilities.http_providers import MAX_CONTENT, HttpSearch


@dataclass(frozen=True, slots=True)
class SearchService:
    """``server`` is empty where users run one of their own; ``path`` follows it, the rest is as in `HttpSearch`."""

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
"""By the name that a configuration gives."""


def search_service(name: str, server: str | None = None, key_variable: str | None = None) -> HttpSearch:
    """The service of that name, or what answers like it at ``server``, such as a SearXNG of one's own.

    ``key_variable``: the environment variable that holds the key, where it is not the usual one.
    Raises UsageError for an unknown name, and where there is no server.
    """
    service = SERVICES.get(name)
    if service is None:
        raise UsageError(
            f"no search service {name!r} is known; there are: {', '.join(SERVICES)}; of any other give the url, "
            "with {query} in it"
        )
    address = server or service.server
    if not address:
        raise UsageError(f"{name} runs on a server of one's own; give its address, such as http://localhost:8888")
    return HttpSearch(
        address.rstrip("/") + service.path,
        key_variable=key_variable or service.key_variable,
        key_header=service.key_header,
        body=service.body,
        results=service.results,
        most=service.most,
    )
