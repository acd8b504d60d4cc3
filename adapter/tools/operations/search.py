"""Operations that list and search, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

TreeOrder: TypeAlias = Literal["path", "directories_first"]
FileOrder: TypeAlias = Literal["path", "newest"]
"""``newest``: by the time of the last change, the latest first."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory and what is below it, ``depth`` levels deep, at most ``limit`` entries."""

    path: str = "."
    depth: int = 1
    limit: int = 2000
    skip_common: bool = False
    """Leave out the usual build and cache directories."""
    gitignore: bool = False
    """Leave out what ``.gitignore`` files name."""
    ignore: tuple[str, ...] = ()
    """Leave out entries whose name, or path below ``path``, matches one of these globs."""
    order: TreeOrder = "path"
    details: bool = False
    """Say how large each entry is and when it was changed."""


@dataclass(frozen=True, slots=True)
class FindByName:
    """Files and directories whose name contains ``text``."""

    text: str
    path: str = "."
    max_depth: int | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Glob:
    """Files, with ``directories`` those too, whose path below ``path`` matches a glob (``**`` crosses directories)."""

    pattern: str
    path: str = "."
    case_sensitive: bool = False
    limit: int = 200
    gitignore: bool = False
    order: FileOrder = "path"
    directories: bool = False


@dataclass(frozen=True, slots=True)
class Grep:
    """Lines that match a regular expression, in files that ``.gitignore`` does not name, with ``ignored`` in all.

    ``file_patterns``: only files whose name or relative path matches one of these globs; ``leave_out``: none of these.
    """

    pattern: str
    path: str = "."
    file_patterns: tuple[str, ...] = ()
    context_lines: int = 0
    max_results: int | None = None
    case_sensitive: bool = True
    order: FileOrder = "path"
    """Of the files; the lines of one file stay together."""
    leave_out: tuple[str, ...] = ()
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One line of a listing; ``path`` is relative to the listed directory, with ``/``.

    With details: ``size`` in bytes, and when it was ``modified`` in local time, as ``2026-01-31 12:00``.
    """

    path: str
    depth: int
    is_directory: bool
    size: int | None = None
    modified: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    path: str
    entries: tuple[ListingEntry, ...]
    omitted: int = 0
    """Entries beyond the limit."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathList:
    """Paths relative to the workspace root, with ``/``; ``truncated`` when a limit cut them."""

    paths: tuple[str, ...]
    truncated: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepMatch:
    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepResult:
    hits: tuple[GrepMatch, ...]
    total: int
    """Matches found, of which ``hits`` holds at most ``max_results``."""
    files: tuple[tuple[str, int], ...] = ()
    """Every file with a match, and how many it has, also those that ``hits`` has no room for."""
    notes: tuple[str, ...] = ()
