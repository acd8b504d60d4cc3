"""Maki's tools for web pages and searches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import BeforeValidator

from adapter.dialects import result_formatting
from adapter.dialects.maki.command_tools import SECONDS
from adapter.dialects.maki.session_tools import lower_text
from adapter.dialects.tool_class import Parameter, Rendered, ToolClass, ToolMetadata, Unsigned
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import PATTERN


class WebFetch(ToolClass):
    """Fetch the contents of a URL (at most 5 MB). HTTP is upgraded to HTTPS."""

    naming = ToolMetadata(
        "webfetch", ops.FetchPage, aliases=("fetch", "fetch_url", "fetch_webpage", "read_url", "get_url"), needs="web"
    )
    example = {"url": "https://docs.rs/serde", "format": "text"}
    url: Annotated[str, Parameter("URL to fetch", "uri", "link", "href", "address")]
    format: Annotated[ops.PageFormat, Parameter("Output format"), BeforeValidator(lower_text)] = "markdown"
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds", *SECONDS)] = 30


class MakiWebSearch(ToolClass):
    """Search the web for information that is not in the codebase."""

    naming = ToolMetadata(
        "websearch", ops.SearchWeb, aliases=("google_web_search", "search_web", "internet_search"), needs="search"
    )
    example = {"query": "tokio select cancellation", "num_results": 5}
    query: Annotated[str, Parameter("Search query", *PATTERN)]
    num_results: Annotated[Unsigned, Parameter("Number of results", "limit", "max_results", "count", "n")] = 8

    def render(self, found: ops.SearchHits) -> Rendered:
        return result_formatting.format_search(found), [asdict(hit) for hit in found.hits]
