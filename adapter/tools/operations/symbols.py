"""Outlines of source files and searches for symbols, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.tools.operations.outcome import Outcome

Section: TypeAlias = Literal[
    "imports", "mods", "consts", "types", "traits", "impls", "classes", "fns", "macros", "tests", "fields"
]
"""The section of an outline that an item belongs to. ``fields`` occurs only within items."""
SymbolContext: TypeAlias = Literal["any", "files", "classes", "functions", "variables"]
"""Kinds of names that a symbol search finds.

``classes`` includes modules, ``functions`` includes methods, ``variables`` includes constants and fields.
"""
SymbolScope: TypeAlias = Literal["project", "module", "directory", "file", "custom"]


@dataclass(frozen=True, slots=True)
class Outline:
    """List the imports, types and signatures of a source file, with their lines."""

    path: str


@dataclass(frozen=True, slots=True)
class FindSymbols:
    """Find files, types, functions and other symbols whose name matches ``pattern``."""

    pattern: str
    """Words that must all occur in the name, or the initials of its words (``FiCh`` for ``FileChange``)."""
    scope: SymbolScope = "project"
    """The files to search: the whole project; the module around ``path`` (the nearest directory with a file such as
    ``pyproject.toml`` or ``package.json``); the directory or file ``path``; or, for ``custom``, the files that match
    one of the comma-separated globs in ``path``."""
    path: str = "."
    file_type: str | None = None
    """A language's name or a file name extension."""
    context: SymbolContext = "any"
    case_sensitive: bool = False
    regex: bool = False
    """True if ``pattern`` is a regular expression, which may match any part of the name."""
    whole_words: bool = False
    """True to reject a match that is followed by a letter, a digit or ``_``."""
    limit: int = 10


@dataclass(frozen=True, slots=True)
class OutlineName:
    """A name that an item declares. ``line`` and ``column`` are 1-based; columns count characters."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """A declaration in lines ``start_line`` to ``end_line``, which include the comments directly above it."""

    section: Section
    text: str
    """The signature, on one line."""
    start_line: int
    end_line: int
    names: tuple[OutlineName, ...] = ()
    members: tuple[OutlineItem, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOutline(Outcome):
    path: str
    language: str
    total_lines: int
    items: tuple[OutlineItem, ...]
    """Items in file order."""
    imports: tuple[str, ...] = ()
    """Full paths of the imports. `adapter.outline.formatter` merges common prefixes."""
    separator: str = ""
    """Separator between the parts of an import path; "" if the language has none."""
    module_doc: tuple[int, int] | None = None
    """First and last line of the comment about the whole file."""


@dataclass(frozen=True, slots=True)
class SymbolMatch:
    """A name that matches the pattern. ``line`` and ``column`` are 1-based; both are 1 for a file's name."""

    path: str
    line: int
    column: int
    name: str
    text: str
    """The line of code that contains the name, or the file's path."""
    context: str
    """Description of the named symbol: ``file``, ``class Parser``, ``method of class Parser`` ..."""


@dataclass(frozen=True, slots=True)
class SymbolMatches(Outcome):
    """Names found by a symbol search."""

    matches: tuple[SymbolMatch, ...]
    """The best matches, best first, up to the limit."""
    total: int
    """Number of matches, including those beyond the limit."""
    files: tuple[tuple[str, int], ...] = ()
    """Path and number of matches for each file with a match."""
