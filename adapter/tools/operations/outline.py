"""Operations that look at code by its names, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Section: TypeAlias = Literal[
    "imports", "mods", "consts", "types", "traits", "impls", "classes", "fns", "macros", "tests", "fields"
]
"""Where an item stands in an outline; ``fields`` only within another item."""

SymbolContext: TypeAlias = Literal["any", "files", "classes", "functions", "variables"]
"""Which names a symbol search looks at: file names, types and modules, functions and
methods, constants and fields, or all of them."""

SymbolScope: TypeAlias = Literal["project", "module", "directory", "file", "custom"]


@dataclass(frozen=True, slots=True)
class Outline:
    """The skeleton of one source file: imports, types, signatures, with their lines."""

    path: str


@dataclass(frozen=True, slots=True)
class FindSymbols:
    """Files, types, functions and other symbols whose *name* fits ``pattern``.

    ``pattern``: words that must all be in the name (or its capitals, ``FiCh`` for
    ``FileChange``); with ``regex`` a regular expression searched in the name.
    ``whole_words``: what fits must not continue in the name's letters, digits or ``_``.
    ``scope``: the project; the module around ``path`` (the nearest directory with a
    ``pyproject.toml``, ``package.json`` or the like); the directory or the file ``path``;
    or, for custom, the files that one of the comma-separated globs in ``path`` matches.
    ``file_type``: a language's name or a file name extension.
    """

    pattern: str
    scope: SymbolScope = "project"
    path: str = "."
    file_type: str | None = None
    context: SymbolContext = "any"
    case_sensitive: bool = False
    regex: bool = False
    whole_words: bool = False
    limit: int = 10


@dataclass(frozen=True, slots=True)
class OutlineName:
    """A name that an item gives; ``line`` and ``column`` are 1-based, columns count characters."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """One declaration: lines ``start_line`` to ``end_line``, comments directly above it included."""

    section: Section
    text: str
    """The signature, on one line."""
    start_line: int
    end_line: int
    names: tuple[OutlineName, ...] = ()
    members: tuple[OutlineItem, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOutline:
    path: str
    language: str
    total_lines: int
    items: tuple[OutlineItem, ...]
    """In the order of the file."""
    imports: tuple[str, ...] = ()
    """What the file imports, one full path each, merged by common beginnings for display."""
    separator: str = ""
    """Between the components of an import; empty when they have none in common."""
    module_doc: tuple[int, int] | None = None
    """First and last line of the comment about the file as a whole."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SymbolMatch:
    """A name that fits. ``line`` and ``column`` are 1-based; a file's own name stands at 1, 1."""

    path: str
    line: int
    column: int
    name: str
    text: str
    """The line of code, or the file's path."""
    context: str
    """What is named: ``file``, ``class Parser``, ``method of class Parser`` ..."""


@dataclass(frozen=True, slots=True)
class SymbolMatches:
    """The best ``matches`` first, at most the limit; ``total`` and ``files`` (path, matches) count all of them."""

    matches: tuple[SymbolMatch, ...]
    total: int
    files: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
