"""Operations that list directories and search for files or text, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.tools.operations.outcome import Outcome

TreeOrder: TypeAlias = Literal["path", "directories_first"]
FileOrder: TypeAlias = Literal["path", "newest"]
"""Order of files. ``newest``: by modification time, latest first."""


@dataclass(frozen=True, slots=True)
class Tree:
    """List a directory and its contents, ``depth`` levels deep, at most ``limit`` entries."""

    path: str = "."
    depth: int = 1
    limit: int = 2000
    skip_common: bool = False
    """True to skip common build and cache directories."""
    gitignore: bool = False
    """True to skip entries that ``.gitignore`` files exclude."""
    ignore: tuple[str, ...] = ()
    """Globs for entries to skip, matched against an entry's name and its path relative to ``path``."""
    order: TreeOrder = "path"
    details: bool = False
    """True to include the size and modification time of each entry."""


@dataclass(frozen=True, slots=True)
class FindByName:
    """Find files and directories whose name contains ``text``, or matches it if it is a glob."""

    text: str
    path: str = "."
    max_depth: int | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Glob:
    """Find files whose path relative to ``path`` matches a glob (``**`` matches any number of directories).

    ``directories``: whether to also find directories.
    """

    pattern: str
    path: str = "."
    case_sensitive: bool = False
    limit: int = 200
    gitignore: bool = False
    order: FileOrder = "path"
    directories: bool = False


@dataclass(frozen=True, slots=True)
class Grep:
    """Find lines that match a regular expression in files that ``.gitignore`` does not exclude."""

    pattern: str
    path: str = "."
    file_patterns: tuple[str, ...] = ()
    """Globs for the names or relative paths of the files to search; empty for all files."""
    context_lines: int = 0
    max_results: int | None = None
    case_sensitive: bool = True
    order: FileOrder = "path"
    """Order of the files. A file's lines stay together."""
    leave_out: tuple[str, ...] = ()
    """Globs for files to skip."""
    ignored: bool = False
    """True to also search files that ``.gitignore`` excludes."""


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One line of a listing. ``path``: relative to the listed directory, with ``/``.

    With details: ``size`` in bytes, and ``modified`` in local time, as ``2026-01-31 12:00``.
    """

    path: str
    depth: int
    is_directory: bool
    size: int | None = None
    modified: str = ""


@dataclass(frozen=True, slots=True)
class Listing(Outcome):
    path: str
    entries: tuple[ListingEntry, ...]
    omitted: int = 0
    """Number of entries beyond the limit."""


@dataclass(frozen=True, slots=True)
class PathList(Outcome):
    """Paths relative to the workspace root, with ``/``. ``truncated``: whether a limit cut off the list."""

    paths: tuple[str, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class GrepMatch:
    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepResult(Outcome):
    hits: tuple[GrepMatch, ...]
    total: int
    """Number of all matches. ``hits`` has at most ``max_results`` of them."""
    files: tuple[tuple[str, int], ...] = ()
    """Each file with its number of matches, even if none of them is in ``hits``."""
