"""Outlines of source files, and searches for what they declare by name."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import regex

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import line_texts
from adapter.core.text.safe_regex import compile_pattern
from adapter.outline.extractor import outline
from adapter.outline.language import Language
from adapter.outline.languages import LANGUAGES, extensions_of, language_of
from adapter.outline.syntax import MissingGrammar, parser_for
from adapter.tools.operations import (
    FileOutline,
    FindSymbols,
    Outline,
    OutlineItem,
    OutlineName,
    Section,
    SymbolMatch,
    SymbolMatches,
)
from adapter.workspace.changes.text_codec import decode
from adapter.workspace.paths.gitignore import COMMON_DIRECTORIES
from adapter.workspace.paths.globs import GlobMatcher
from adapter.workspace.paths.resolved_path import ResolvedPath, open_regular
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import Walk

MAX_SOURCE_BYTES = 2 * 1024 * 1024
"""Of a file that is outlined or searched for symbols."""
SEARCH_SECONDS = 10.0
"""For a search for symbols; what was found until then is given."""
PATTERN_SECONDS = 1.0
"""Processor time of a pattern for symbols."""
MAX_LIMIT = 500
"""Symbols that one search gives."""
MAX_TEXT = 200
"""Characters of a symbol's line that are shown; a longer one ends in ``...``."""

MODULE_FILES = frozenset(
    {
        *("pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml", "CMakeLists.txt"),
        *("build.gradle", "build.gradle.kts", "build.sbt", "composer.json", "Gemfile", "Package.swift", "Makefile"),
    }
)
"""What the directory of a module holds; also ``*.iml`` and ``*.csproj``."""

# What a declaration looks like in most languages; used where no grammar is installed.
_DECLARATION = re.compile(
    r"^[ \t]*(?:[\w@#<>\[\]()., ]{0,80}?\s)?"
    r"(class|interface|trait|struct|enum|protocol|record|object|module|namespace|impl|type|typedef"
    r"|def|fun|func|function|fn|sub|const|val|let|var|macro_rules!)"
    r"\s+(?:self\.)?([A-Za-z_$][\w$]*)"
)

_KINDS: dict[Section, str] = {
    "mods": "module",
    "consts": "constant",
    "types": "type",
    "traits": "interface",
    "impls": "implementation",
    "fns": "function",
    "classes": "class",
    "macros": "macro",
    "fields": "field",
}
_WORDS_AS_KINDS = {
    **dict.fromkeys(("def", "fun", "func", "function", "fn", "sub"), "function"),
    **dict.fromkeys(("const", "val", "let", "var"), "constant"),
    "macro_rules!": "macro",
}
_CONTEXTS: dict[str, frozenset[str]] = {
    "files": frozenset({"file"}),
    "classes": frozenset({"class", "type", "interface", "implementation", "module"}),
    "functions": frozenset({"function", "method", "macro"}),
    "variables": frozenset({"constant", "field"}),
}


def read_outline(root: WorkspaceRoot, operation: Outline) -> FileOutline:
    """The file's skeleton. Raises ToolError that says why there is none and what to do instead."""
    with root.open_file(operation.path) as (descriptor, place):
        text = _source_text(descriptor, place)
        if text is None:
            raise ToolError(
                f"{place.shown} is larger than {MAX_SOURCE_BYTES} bytes and is not outlined; "
                "search it, or read a range of its lines"
            )
        language = language_of(place.name, text)
        if language is None:
            known = ", ".join(language.name for language in LANGUAGES)
            raise ToolError(
                f"{place.shown} is in no language that can be outlined ({known}); read the file instead, or search it"
            )
        return outline(text, place.shown, language)


def _source_text(descriptor: int, place: ResolvedPath) -> str | None:
    """The file's text, None when it is too large."""
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(MAX_SOURCE_BYTES + 1)
    return None if len(data) > MAX_SOURCE_BYTES else decode(data, place.shown).text


def find_symbols(root: WorkspaceRoot, operation: FindSymbols) -> SymbolMatches:
    """Names that fit, the closest first: files and symbols alike. Counts all, gives at most the limit.

    Ignored files and the usual build directories are left out. Where a grammar is
    missing, lines that look like declarations serve instead, and a note says so.
    """
    if operation.limit < 1:
        raise ToolError(f"limit {operation.limit} shows nothing; give 1 or more")
    search = _SymbolSearch(_fitness(operation), operation)
    start, accepts = _scope(root, operation)
    with root.locate(start) as place:
        single = place.is_file
        if single:
            search.look_at(place, place.shown)
    if not single:
        walk = Walk(root, start, skip=COMMON_DIRECTORIES, gitignore=True)
        for node in walk:
            if not node.is_file or not accepts(node.path):
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                search.look_at(node.place(walk.parts), "/".join((*walk.parts, node.path)))
            if search.is_over:
                break
        search.notes += walk.notes
    return search.result()


def _scope(root: WorkspaceRoot, operation: FindSymbols) -> tuple[str, Callable[[str], bool]]:
    """Where the search starts, and which paths below it belong to the scope."""
    match operation.scope:
        case "project":
            return ".", _everything
        case "module":
            return _module(root, operation.path), _everything
        case "custom":
            globs = [GlobMatcher(part.strip()) for part in operation.path.split(",") if part.strip()]
            return ".", lambda path: any(glob.matches(path) for glob in globs)
        case _:
            with root.locate(operation.path) as place:
                if operation.scope == "file" and place.is_directory:
                    raise ToolError(f"{place.shown} is a directory; the scope file needs a file, or use directory")
                if operation.scope == "directory" and place.is_file:
                    raise ToolError(f"{place.shown} is a file; the scope directory needs a directory, or use file")
            return operation.path, _everything


def _everything(_: str) -> bool:
    return True


def _module(root: WorkspaceRoot, path: str) -> str:
    """The nearest directory at or above ``path`` that holds a module's file; the root when there is none."""
    with root.locate(path) as place:
        parts = list(place.parts if place.is_directory else place.parts[:-1])
    while parts:
        names = [node.name for node in Walk(root, "/".join(parts), depth=1)]
        if any(name in MODULE_FILES or name.endswith((".iml", ".csproj")) for name in names):
            break
        parts.pop()
    return "/".join(parts) or "."


Fitness = Callable[[str], int | None]
"""How well a name fits, 0 best, None not at all."""


def _fitness(operation: FindSymbols) -> Fitness:
    if not operation.pattern.strip():
        raise ToolError("the pattern is empty; give a name or a part of one")
    flags = 0 if operation.case_sensitive else regex.IGNORECASE
    edges = (r"(?<!\w)(?:", r")(?!\w)") if operation.whole_words else ("", "")
    words = [operation.pattern] if operation.regex else operation.pattern.split()
    patterns = [
        regex.compile(compile_pattern(word if operation.regex else regex.escape(word)).pattern.join(edges), flags)
        for word in words
    ]
    humps = None
    if not operation.regex and not operation.whole_words:
        humps = _humps(operation.pattern)
    return partial(_fit, patterns, humps)


def _humps(pattern: str) -> regex.Pattern[str] | None:
    """``FiCh`` as the beginnings of the words of a name: ``FileChange``, not ``office_chair``."""
    parts = re.findall(r"[A-Z][a-z0-9]*", pattern)
    if len(parts) < 2 or "".join(parts) != pattern:
        return None
    return regex.compile(r"[a-z0-9]*_*".join(regex.escape(part) for part in parts))


def _fit(patterns: Iterable[regex.Pattern[str]], humps: regex.Pattern[str] | None, name: str) -> int | None:
    found = []
    for pattern in patterns:
        try:
            match = pattern.search(name, timeout=PATTERN_SECONDS)
        except TimeoutError:
            raise ToolError("the pattern took too long on a name; avoid nested repeats such as (a+)+") from None
        if match is None:
            return 3 if humps is not None and humps.search(name) else None
        found.append(match)
    if len(found) == 1 and found[0].span() == (0, len(name)):
        return 0
    return 1 if found[0].start() == 0 else 2


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: OutlineName
    kind: str
    parent: str


@dataclass(slots=True)
class _SymbolSearch:
    fits: Fitness
    operation: FindSymbols
    found: list[tuple[int, SymbolMatch]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_over: bool = False
    _without: set[str] = field(default_factory=set)
    _deadline: float = field(default_factory=lambda: time.monotonic() + SEARCH_SECONDS)

    def look_at(self, place: ResolvedPath, path: str) -> None:
        shown = escape_for_display(path)
        wanted = self.operation.file_type
        if wanted and place.name.rpartition(".")[2].lower() not in extensions_of(wanted):
            return
        if time.monotonic() > self._deadline:
            self.is_over = True
            self.notes.append(f"the search stopped after {SEARCH_SECONDS:g} s at {shown}; give a narrower scope")
            return
        self._take(
            escape_for_display(place.name),
            "file",
            SymbolMatch(shown, 1, 1, escape_for_display(place.name), shown, "file"),
        )
        language = language_of(place.name)
        if language is not None and self.operation.context != "files":
            self._look_into(place, shown, language)

    def _look_into(self, place: ResolvedPath, shown: str, language: Language) -> None:
        try:
            with open_regular(place) as descriptor:
                text = _source_text(descriptor, place)
        except (ToolError, FileNotFoundError):  # binary; deleted meanwhile
            return
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            self.notes.append(f"{shown} was not looked into for symbols: {reason}")
            return
        if text is None:
            self.notes.append(f"{shown} is larger than {MAX_SOURCE_BYTES} bytes; its symbols were not searched")
            return
        lines = line_texts(text)
        for symbol in self._symbols(text, shown, language_of(place.name, text) or language, lines):
            name, line = symbol.name, _clipped(lines[symbol.name.line - 1].strip())
            context = f"{symbol.kind} of {symbol.parent}" if symbol.parent else symbol.kind
            match = SymbolMatch(
                shown,
                name.line,
                name.column,
                name.text,
                escape_for_display(line, keep="\t"),
                escape_for_display(context),
            )
            self._take(name.text, symbol.kind, match)

    def _take(self, name: str, kind: str, match: SymbolMatch) -> None:
        context = self.operation.context
        if context != "any" and kind not in _CONTEXTS[context]:
            return
        fitness = self.fits(name)
        if fitness is not None:
            self.found.append((fitness, match))

    def _symbols(self, text: str, shown: str, language: Language, lines: list[str]) -> Iterator[_Symbol]:
        try:
            parser_for(language)
            yield from _declared(outline(text, shown, language).items, "")
        except MissingGrammar:
            self._without.add(language.name)
            yield from _guessed(lines)
        except ToolError as error:  # took too long
            self.notes.append(f"{shown}: {error}")
            yield from _guessed(lines)

    def result(self) -> SymbolMatches:
        if self._without:
            self.notes.append(
                f"{', '.join(sorted(self._without))}: only lines that look like declarations were searched, because "
                "no grammar is installed (pip install 'toolcall-adapter[index]')"
            )
        best = sorted(self.found, key=lambda each: (each[0], each[1].context != "file"))
        files = Counter(match.path for _, match in best)
        limit = min(self.operation.limit, MAX_LIMIT)
        if limit < self.operation.limit and limit < len(best):
            self.notes.append(f"the limit {self.operation.limit} was cut to {MAX_LIMIT}, the most that is possible")
        return SymbolMatches(
            tuple(match for _, match in best[:limit]), len(best), tuple(files.items()), tuple(self.notes)
        )


def _clipped(line: str) -> str:
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 3]}..."


def _declared(items: Iterable[OutlineItem], parent: str) -> Iterator[_Symbol]:
    for item in items:
        kind = _KINDS.get(item.section)
        if kind is None:
            continue
        kind = "method" if parent and kind == "function" else kind
        for name in item.names:
            yield _Symbol(name, kind, parent)
        first = item.names[0].text if item.names else item.text
        yield from _declared(item.members, f"{kind} {first}")


def _guessed(lines: Iterable[str]) -> Iterator[_Symbol]:
    for number, line in enumerate(lines, 1):
        found = _DECLARATION.match(line[:MAX_TEXT])
        if found:
            yield _Symbol(OutlineName(found[2], number, found.start(2) + 1), _WORDS_AS_KINDS.get(found[1], "class"), "")
