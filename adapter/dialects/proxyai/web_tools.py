"""ProxyAI's tools that search the web and the documentation of libraries."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from adapter.dialects.proxyai.error_fields import make_error_renderer
from adapter.dialects.tool_class import Parameter, Rendered, ToolClass, ToolMetadata
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import PATTERN

DOCS_CHARACTERS = 10_000
"""Maximum length of a page of documentation, in characters."""


class ProxyAIWebSearch(ToolClass):
    """Search the web. For libraries use ResolveLibraryId and GetLibraryDocs."""

    naming = ToolMetadata("WebSearch", aliases=("GoogleWebSearch", "search_web"), needs="search")
    example = {"query": "python 3.14 release date"}
    query: Annotated[str, Parameter("Search query", *PATTERN)]
    allowed_domains: Annotated[list[str] | None, Parameter("Only results from these domains")] = None
    blocked_domains: Annotated[list[str] | None, Parameter("No results from these domains")] = None

    def to_operation(self) -> ops.Operation:
        allowed, blocked = (tuple(domains or ()) for domains in (self.allowed_domains, self.blocked_domains))
        return ops.SearchWeb(self.query, allowed_domains=allowed, blocked_domains=blocked)

    def render(self, found: ops.SearchHits) -> Rendered:
        sources = [f"[{hit.title}]({hit.url})" for hit in found.hits]
        fields = {"query": self.query, "results": [asdict(hit) for hit in found.hits], "sources": sources}
        if not found.hits:
            return f"No results for {self.query!r}.", fields
        return "\n\n".join(f"{link}\n{hit.content}" for link, hit in zip(sources, found.hits, strict=True)), fields


class ResolveLibraryId(ToolClass):
    """Find the id of a library by its name, for GetLibraryDocs."""

    naming = ToolMetadata(
        "ResolveLibraryId",
        ops.FindLibrary,
        aliases=("resolve-library-id",),
        needs="docs",
        failure=make_error_renderer("error"),
    )
    example = {"library_name": "mongodb"}
    library_name: Annotated[str, Parameter("Name of the library", "libraryName", "name", "query")]

    def render(self, found: ops.Libraries) -> Rendered:
        lines = [
            f"{library.id} {library.title} {library.version}".rstrip()
            + (f": {library.description}" if library.description else "")
            for library in found.libraries
        ]
        libraries = [asdict(library) for library in found.libraries]
        return "\n".join(lines), {"libraryName": self.library_name, "libraries": libraries}


class GetLibraryDocs(ToolClass):
    """Read a page (1 to 10) of a library's documentation, by the id from ResolveLibraryId."""

    naming = ToolMetadata(
        "GetLibraryDocs",
        ops.ReadLibraryDocs,
        aliases=("get-library-docs",),
        needs="docs",
        failure=make_error_renderer("error"),
    )
    example = {"context7CompatibleLibraryID": "/mongodb/docs", "topic": "indexes"}
    context7CompatibleLibraryID: Annotated[
        str, Parameter("Library id: /org/project or /org/project/version", "library_id", "libraryId")
    ]
    mode: Annotated[Literal["code", "info"], Parameter("code: its interface; info: about it")] = "code"
    topic: Annotated[str | None, Parameter("Topic to read about")] = None
    page: Annotated[int, Parameter("Page, 1 to 10")] = 1

    def render(self, docs: ops.LibraryDocs) -> Rendered:
        text = docs.text
        if len(text) > DOCS_CHARACTERS:
            text = text[:DOCS_CHARACTERS] + "\n(truncated; pass a topic, or request the next page)"
        return text, {"libraryId": docs.library_id, "documentation": text, "docMode": docs.mode, "page": docs.page}
