"""Operations on web pages, search services and library documentation, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.tools.operations.outcome import Outcome

PageFormat: TypeAlias = Literal["markdown", "text", "html"]
DocsMode: TypeAlias = Literal["code", "info"]


@dataclass(frozen=True, slots=True)
class FetchPage:
    url: str
    format: PageFormat = "markdown"
    timeout_s: float = 30.0
    """Maximum total time, including redirects, in seconds."""


@dataclass(frozen=True, slots=True)
class Page(Outcome):
    """A web page. ``url``: final URL after redirects. ``status``: HTTP status."""

    url: str
    content_type: str
    text: str
    status: int = 200


@dataclass(frozen=True, slots=True)
class SearchWeb:
    """Search the web. A domain includes its subdomains. Blocked domains take precedence over allowed ones."""

    query: str
    limit: int = 8
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchHit:
    title: str
    url: str
    content: str


@dataclass(frozen=True, slots=True)
class SearchHits(Outcome):
    query: str
    hits: tuple[SearchHit, ...]


@dataclass(frozen=True, slots=True)
class FindLibrary:
    name: str


@dataclass(frozen=True, slots=True)
class Library:
    """A library. ``id`` is ``/org/project`` or ``/org/project/version``, the argument of `ReadLibraryDocs`."""

    id: str
    title: str
    description: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Libraries(Outcome):
    name: str
    libraries: tuple[Library, ...]


@dataclass(frozen=True, slots=True)
class ReadLibraryDocs:
    """Read the documentation of a library. ``page``: 1-based page number."""

    library_id: str
    mode: DocsMode = "code"
    topic: str | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class LibraryDocs(Outcome):
    library_id: str
    text: str
    mode: DocsMode
    page: int
