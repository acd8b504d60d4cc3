"""Maki's tools for the web."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import BeforeValidator, Field

from adapter.dialects import result_formatting
from adapter.dialects.maki.parameters import lower_text
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, Unsigned, render_as, require_outcome
from adapter.tools.argument_synonyms import PATTERN
from adapter.tools.operations import FetchPage, Operation, Outcome, Page, PageFormat, SearchHits, SearchWeb


class WebFetch(ToolClass):
    """Fetch the contents of a URL (at most 5 MB). HTTP is upgraded to HTTPS."""

    naming = ToolMetadata(
        "webfetch",
        aliases=("fetch", "fetch_url", "fetch_webpage", "read_url", "get_url"),
        effect="network",
        example={"url": "https://docs.rs/serde", "format": "text"},
        needs="web",
    )
    url: Annotated[str, Field(description="URL to fetch"), Aliases("uri", "link", "href", "address")]
    format: Annotated[PageFormat, Field(description="Output format"), BeforeValidator(lower_text)] = "markdown"
    timeout: Annotated[
        Unsigned, Field(description="Timeout in seconds"), Aliases("timeout_s", "timeout_secs", "timeout_seconds")
    ] = 30

    def to_operation(self) -> Operation:
        return FetchPage(self.url, self.format, float(self.timeout))

    render = render_as(Page, result_formatting.format_page)


class MakiWebSearch(ToolClass):
    """Search the web, for what is not in the codebase."""

    naming = ToolMetadata(
        "websearch",
        aliases=("google_web_search", "search_web", "internet_search"),
        example={"query": "tokio select cancellation", "num_results": 5},
        needs="search",
    )
    query: Annotated[str, Field(description="Search query"), Aliases(*PATTERN)]
    num_results: Annotated[
        Unsigned, Field(description="Number of results"), Aliases("limit", "max_results", "count", "n")
    ] = 8

    def to_operation(self) -> Operation:
        return SearchWeb(self.query, self.num_results)

    def render(self, outcome: Outcome) -> Rendered:
        found = require_outcome(outcome, SearchHits)
        return result_formatting.format_search(found), [asdict(hit) for hit in found.hits]
