"""Operations on web pages, web searches and library documentation, and the outcomes of these operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PageFormat: TypeAlias = Literal["markdown", "text", "html"]
DocsMode: TypeAlias = Literal["code", "info"]


@dataclass(frozen=True, slots=True)
class FetchPage:
    url: str
    format: PageFormat = "markdown"
    timeout_s: float = 30.0
    """Maximum total time, including redirects, in seconds."""


@dataclass(frozen=True, slots=True)
class Page:
    """A web page. ``url``: final URL after redirects. ``status``: HTTP status."""

    url: str
    content_type: str
    text: str
    status: int = 200
    notes: tuple[str, ...] = ()


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
class SearchHits:
    query: str
    hits: tuple[SearchHit, ...]
    notes: tuple[str, ...] = ()


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
class Libraries:
    name: str
    libraries: tuple[Library, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadLibraryDocs:
    """Read the documentation of a library. ``page``: 1-based page number."""

    library_id: str
    mode: DocsMode = "code"
    topic: str | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class LibraryDocs:
    library_id: str
    text: str
    mode: DocsMode
    page: int
    notes: tuple[str, ...] = ()
