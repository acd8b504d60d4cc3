"""Operations on the names declared in source code, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Section: TypeAlias = Literal[
    "imports", "mods", "consts", "types", "traits", "impls", "classes", "fns", "macros", "tests", "fields"
]
"""Section of an item in an outline; ``fields`` only within another item."""

SymbolContext: TypeAlias = Literal["any", "files", "classes", "functions", "variables"]
"""Kinds of names in a symbol search: file names, types and modules, functions and methods, constants and fields, or
all."""

SymbolScope: TypeAlias = Literal["project", "module", "directory", "file", "custom"]


@dataclass(frozen=True, slots=True)
class Outline:
    """Outline one source file: imports, types and signatures with their lines."""

    path: str


@dataclass(frozen=True, slots=True)
class FindSymbols:
    """Find files, types, functions and other symbols whose *name* matches ``pattern``.

    ``pattern``: words that must all occur in the name (or its capitals, ``FiCh`` for ``FileChange``); with ``regex`` a
    regular expression searched in the name. ``whole_words``: no letter, digit or ``_`` may follow the match.
    ``scope``: the project; the module around ``path`` (the nearest directory with a ``pyproject.toml``,
    ``package.json``
    or the like); the directory or file ``path``; or, for custom, the files that match one of the comma-separated globs
    in
    ``path``. ``file_type``: a language's name or a file name extension.
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
    """A name that an item declares; ``line`` and ``column`` are 1-based, columns count characters."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """One declaration: lines ``start_line`` to ``end_line``, including the comments directly above it."""

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
    """Items in file order."""
    imports: tuple[str, ...] = ()
    """Full paths of the imports; they are merged by common prefixes for display."""
    separator: str = ""
    """Separator of the components of an import; empty if they do not share one."""
    module_doc: tuple[int, int] | None = None
    """First and last line of the comment about the whole file."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SymbolMatch:
    """A matching name. ``line`` and ``column`` are 1-based; a file's own name is at 1, 1."""

    path: str
    line: int
    column: int
    name: str
    text: str
    """The line of code, or the file's path."""
    context: str
    """Kind of the named thing: ``file``, ``class Parser``, ``method of class Parser`` ..."""


@dataclass(frozen=True, slots=True)
class SymbolMatches:
    """The best ``matches`` first, at most the limit; ``total`` and ``files`` (path, matches) count all of them."""

    matches: tuple[SymbolMatch, ...]
    total: int
    files: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
