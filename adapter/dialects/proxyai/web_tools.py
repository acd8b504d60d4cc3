"""ProxyAI's tools for the web and library documentation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adapter.core.errors import ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.argument_synonyms import PATTERN
from adapter.tools.operations import (
    FindLibrary,
    Libraries,
    LibraryDocs,
    Operation,
    Outcome,
    ReadLibraryDocs,
    SearchHits,
    SearchWeb,
)

DOCS_CHARACTERS = 10_000
"""Maximum length of a page of documentation, in characters."""


def _render_error(_arguments: JsonObject, error: ToolError) -> Json:
    return {"error": str(error)}


class ProxyAIWebSearch(ToolClass):
    """Search the web in general. For libraries use ResolveLibraryId and GetLibraryDocs."""

    naming = ToolMetadata(
        "WebSearch",
        aliases=("GoogleWebSearch", "search_web"),
        example={"query": "python 3.14 release date"},
        needs="search",
    )
    query: Annotated[str, Field(description="Search query"), Aliases(*PATTERN)]
    allowed_domains: Annotated[list[str] | None, Field(description="Only results from these domains")] = None
    blocked_domains: Annotated[list[str] | None, Field(description="No results from these domains")] = None

    def to_operation(self) -> Operation:
        return SearchWeb(
            self.query,
            allowed_domains=tuple(self.allowed_domains or ()),
            blocked_domains=tuple(self.blocked_domains or ()),
        )

    def render(self, outcome: Outcome) -> Rendered:
        found = require_outcome(outcome, SearchHits)
        sources = [f"[{hit.title}]({hit.url})" for hit in found.hits]
        fields = {
            "query": self.query,
            "results": [{"title": hit.title, "url": hit.url, "content": hit.content} for hit in found.hits],
            "sources": sources,
        }
        if not found.hits:
            return f"No results for {self.query!r}.", fields
        return "\n\n".join(f"{link}\n{hit.content}" for link, hit in zip(sources, found.hits, strict=True)), fields


class ResolveLibraryId(ToolClass):
    """Find the id of a library by its name, for GetLibraryDocs."""

    naming = ToolMetadata(
        "ResolveLibraryId",
        aliases=("resolve-library-id",),
        example={"library_name": "mongodb"},
        needs="docs",
        failure=_render_error,
    )
    library_name: Annotated[str, Field(description="Name of the library"), Aliases("libraryName", "name", "query")]

    def to_operation(self) -> Operation:
        return FindLibrary(self.library_name)

    def render(self, outcome: Outcome) -> Rendered:
        found = require_outcome(outcome, Libraries)
        lines = [
            f"{library.id} {library.title} {library.version}".rstrip()
            + (f": {library.description}" if library.description else "")
            for library in found.libraries
        ]
        libraries = [
            {
                "id": library.id,
                "title": library.title,
                "description": library.description,
                "version": library.version,
            }
            for library in found.libraries
        ]
        return "\n".join(lines), {"libraryName": self.library_name, "libraries": libraries}


class GetLibraryDocs(ToolClass):
    """Read a page (1 to 10) of a library's documentation, by the id that ResolveLibraryId gave."""

    naming = ToolMetadata(
        "GetLibraryDocs",
        aliases=("get-library-docs",),
        example={"context7CompatibleLibraryID": "/mongodb/docs", "topic": "indexes"},
        needs="docs",
        failure=_render_error,
    )
    context7CompatibleLibraryID: Annotated[
        str, Field(description="Library id: /org/project or /org/project/version"), Aliases("library_id", "libraryId")
    ]
    mode: Annotated[Literal["code", "info"], Field(description="code: its interface; info: about it")] = "code"
    topic: Annotated[str | None, Field(description="Only text about this")] = None
    page: Annotated[int, Field(description="Page, 1 to 10")] = 1

    def to_operation(self) -> Operation:
        return ReadLibraryDocs(self.context7CompatibleLibraryID, self.mode, self.topic, self.page)

    def render(self, outcome: Outcome) -> Rendered:
        docs = require_outcome(outcome, LibraryDocs)
        text = docs.text
        if len(text) > DOCS_CHARACTERS:
            text = text[:DOCS_CHARACTERS] + "\n(truncated; pass a topic, or request the next page)"
        return text, {"libraryId": docs.library_id, "documentation": text, "docMode": docs.mode, "page": docs.page}
