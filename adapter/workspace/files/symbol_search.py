"""Outline source files, and search declarations by name."""

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
from adapter.core.install_advice import build_install_command
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import split_line_texts
from adapter.core.text.safe_regex import compile_pattern
from adapter.core.text.truncate import shorten
from adapter.outline.extractor import extract_outline
from adapter.outline.language import Language
from adapter.outline.languages import LANGUAGES, find_extensions, find_language
from adapter.outline.syntax import MissingGrammar, get_parser
from adapter.tools import operations as ops
from adapter.workspace.changes.text_codec import decode
from adapter.workspace.paths.gitignore import COMMON_DIRECTORIES
from adapter.workspace.paths.globs import GlobMatcher
from adapter.workspace.paths.resolved_path import ResolvedPath, open_regular
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import Walk

MAX_SOURCE_BYTES = 2 * 1024 * 1024
"""Maximum size of a file outlined or searched for symbols, in bytes."""
SEARCH_SECONDS = 10.0
"""Maximum duration of a symbol search, in seconds. The symbols found by then are returned."""
PATTERN_SECONDS = 1.0
"""Maximum processor time to match a pattern with one name, in seconds."""
MAX_LIMIT = 500
"""Maximum number of symbols returned by a search."""
MAX_TEXT = 200
"""Maximum number of characters shown of a symbol's line. A longer line ends with ``...``."""

MODULE_FILES = {
    *("pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml", "CMakeLists.txt"),
    *("build.gradle", "build.gradle.kts", "build.sbt", "composer.json", "Gemfile", "Package.swift", "Makefile"),
}
"""Files that mark the directory of a module, in addition to ``*.iml`` and ``*.csproj``."""

# Patterns of declarations in most languages, for files whose language has no installed grammar.
_DECLARATION = re.compile(
    r"^[ \t]*(?:[\w@#<>\[\]()., ]{0,80}?\s)?"
    r"(class|interface|trait|struct|enum|protocol|record|object|module|namespace|impl|type|typedef"
    r"|def|fun|func|function|fn|sub|const|val|let|var|macro_rules!)"
    r"\s+(?:self\.)?([A-Za-z_$][\w$]*)"
)

_KINDS: dict[ops.Section, str] = {
    "mods": "module", "consts": "constant", "types": "type", "traits": "interface", "impls": "implementation",
    "fns": "function", "classes": "class", "macros": "macro", "fields": "field",
}  # fmt: skip
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


def read_outline(root: WorkspaceRoot, operation: ops.Outline) -> ops.FileOutline:
    """Outline a file. Raises ToolError with the reason and an alternative if the file has no outline."""
    with root.open_file(operation.path) as (descriptor, resolved):
        text = _read_source_text(descriptor, resolved)
        if text is None:
            raise ToolError(
                f"{resolved.display_path} is larger than {MAX_SOURCE_BYTES} bytes and cannot be outlined; "
                "search it, or read a range of its lines"
            )
        language = find_language(resolved.name, text)
        if language is None:
            known = ", ".join(language.name for language in LANGUAGES)
            raise ToolError(
                f"{resolved.display_path} is not in a language that can be outlined ({known}); "
                "read or search the file instead"
            )
        return extract_outline(text, resolved.display_path, language)


def _read_source_text(descriptor: int, resolved: ResolvedPath) -> str | None:
    """Return the file's text, or None if it is too large."""
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(MAX_SOURCE_BYTES + 1)
    return None if len(data) > MAX_SOURCE_BYTES else decode(data, resolved.display_path).text


def find_symbols(root: WorkspaceRoot, operation: ops.FindSymbols) -> ops.SymbolMatches:
    """Return the best matches among file and symbol names, up to the limit, and the number of all matches.

    Ignored files and common build directories are left out. In a language without an installed grammar, lines that look
    like declarations are searched, and a note names the language.
    """
    if operation.limit < 1:
        raise ToolError(f"limit must be at least 1, got {operation.limit}")
    search = _SymbolSearch(_build_ranker(operation), operation)
    start, accepts = _find_scope(root, operation)
    with root.locate(start) as resolved:
        single = resolved.is_file
        if single:
            search.add_file(resolved, resolved.display_path)
    if not single:
        walk = Walk(root, start, skip=COMMON_DIRECTORIES, gitignore=True)
        for node in walk:
            if not node.is_file or not accepts(node.path):
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                search.add_file(node.resolve(walk.parts), "/".join((*walk.parts, node.path)))
            if search.is_over:
                break
        search.notes += walk.notes
    return search.build_result()


def _find_scope(root: WorkspaceRoot, operation: ops.FindSymbols) -> tuple[str, Callable[[str], bool]]:
    """Return the path where the search starts, and a filter for the paths below it."""
    match operation.scope:
        case "project":
            return ".", _accept_all
        case "module":
            return _find_module(root, operation.path), _accept_all
        case "custom":
            globs = [GlobMatcher(part.strip()) for part in operation.path.split(",") if part.strip()]
            return ".", lambda path: any(glob.matches(path) for glob in globs)
        case "file" | "directory" as scope:
            with root.locate(operation.path) as resolved:
                actual = "directory" if resolved.is_directory else "file" if resolved.is_file else scope
            if actual != scope:
                kind = f"{resolved.display_path} is a {actual}, but scope {scope!r} needs a {scope}"
                raise ToolError(f"{kind}; use scope {actual!r}")
            return operation.path, _accept_all


def _accept_all(_: str) -> bool:
    return True


def _find_module(root: WorkspaceRoot, path: str) -> str:
    """Return the nearest directory at or above ``path`` with a module file; the root if none is found."""
    with root.locate(path) as resolved:
        parts = list(resolved.parts if resolved.is_directory else resolved.parts[:-1])
    while parts:
        names = [node.name for node in Walk(root, "/".join(parts), depth=1)]
        if any(name in MODULE_FILES or name.endswith((".iml", ".csproj")) for name in names):
            break
        parts.pop()
    return "/".join(parts) or "."


Ranker = Callable[[str], int | None]
"""Returns the rank of a name: 0 is best, None means no match."""


def _build_ranker(operation: ops.FindSymbols) -> Ranker:
    if not operation.pattern.strip():
        raise ToolError("the pattern is empty; pass a name or part of one")
    flags = 0 if operation.case_sensitive else regex.IGNORECASE
    edges = (r"(?<!\w)(?:", r")(?!\w)") if operation.whole_words else ("", "")
    words = [operation.pattern] if operation.regex else operation.pattern.split()
    patterns = [
        regex.compile(compile_pattern(word if operation.regex else regex.escape(word)).pattern.join(edges), flags)
        for word in words
    ]
    humps = None if operation.regex or operation.whole_words else _compile_humps(operation.pattern)
    return partial(_rank, patterns, humps)


def _compile_humps(pattern: str) -> regex.Pattern[str] | None:
    """Compile a pattern that matches the starts of words: ``FiCh`` matches ``FileChange``, but not ``office_chair``."""
    parts = re.findall(r"[A-Z][a-z0-9]*", pattern)
    if len(parts) < 2 or "".join(parts) != pattern:
        return None
    return regex.compile(r"[a-z0-9]*_*".join(regex.escape(part) for part in parts))


def _rank(patterns: Iterable[regex.Pattern[str]], humps: regex.Pattern[str] | None, name: str) -> int | None:
    try:
        matches = [pattern.search(name, timeout=PATTERN_SECONDS) for pattern in patterns]
    except TimeoutError:
        raise ToolError("the pattern took too long on a name; avoid nested repeats such as (a+)+") from None
    spans = [match.span() for match in matches if match is not None]
    if len(spans) < len(matches):
        return 3 if humps is not None and humps.search(name) else None
    return 0 if spans == [(0, len(name))] else 1 if spans[0][0] == 0 else 2


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: ops.OutlineName
    kind: str
    parent: str


@dataclass(slots=True)
class _SymbolSearch:
    rank: Ranker
    operation: ops.FindSymbols
    matches: list[tuple[int, ops.SymbolMatch]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_over: bool = False
    _missing_grammars: set[str] = field(default_factory=set)
    _deadline: float = field(default_factory=lambda: time.monotonic() + SEARCH_SECONDS)

    def add_file(self, resolved: ResolvedPath, path: str) -> None:
        display_path = escape_for_display(path)
        file_type = self.operation.file_type
        if file_type and resolved.name.rpartition(".")[2].lower() not in find_extensions(file_type):
            return
        if time.monotonic() > self._deadline:
            self.is_over = True
            self.notes.append(f"the search stopped after {SEARCH_SECONDS:g} s at {display_path}; give a narrower scope")
            return
        name = escape_for_display(resolved.name)
        self._add_if_matching("file", ops.SymbolMatch(display_path, 1, 1, name, display_path, "file"))
        language = find_language(resolved.name)
        if language is not None and self.operation.context != "files":
            self._search_symbols(resolved, display_path, language)

    def _search_symbols(self, resolved: ResolvedPath, display_path: str, language: Language) -> None:
        try:
            with open_regular(resolved) as descriptor:
                text = _read_source_text(descriptor, resolved)
        except (ToolError, FileNotFoundError):  # binary; deleted meanwhile
            return
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            self.notes.append(f"{display_path} was not searched for symbols: {reason}")
            return
        if text is None:
            self.notes.append(f"{display_path} is larger than {MAX_SOURCE_BYTES} bytes; its symbols were not searched")
            return
        lines = split_line_texts(text)
        language = find_language(resolved.name, text) or language
        for symbol in self._find_declared_symbols(text, display_path, language, lines):
            name, line = symbol.name, shorten(lines[symbol.name.line - 1].strip(), MAX_TEXT)
            context = f"{symbol.kind} of {symbol.parent}" if symbol.parent else symbol.kind
            shown = escape_for_display(line, keep="\t"), escape_for_display(context)
            match = ops.SymbolMatch(display_path, name.line, name.column, name.text, *shown)
            self._add_if_matching(symbol.kind, match)

    def _add_if_matching(self, kind: str, match: ops.SymbolMatch) -> None:
        context = self.operation.context
        if context == "any" or kind in _CONTEXTS[context]:
            rank = self.rank(match.name)
            if rank is not None:
                self.matches.append((rank, match))

    def _find_declared_symbols(
        self, text: str, display_path: str, language: Language, lines: list[str]
    ) -> Iterator[_Symbol]:
        try:
            get_parser(language)
            yield from _iter_outline_symbols(extract_outline(text, display_path, language).items, "")
            return
        except MissingGrammar:
            self._missing_grammars.add(language.name)
        except ToolError as error:  # took too long
            self.notes.append(f"{display_path}: {error}")
        yield from _guess_symbols(lines)

    def build_result(self) -> ops.SymbolMatches:
        if self._missing_grammars:
            self.notes.append(
                f"{', '.join(sorted(self._missing_grammars))}: only lines that look like declarations were searched, "
                f"because no grammar is installed ({build_install_command('index')})"
            )
        best = sorted(self.matches, key=lambda each: (each[0], each[1].context != "file"))
        files = Counter(match.path for _, match in best)
        limit = min(self.operation.limit, MAX_LIMIT)
        if limit < self.operation.limit and limit < len(best):
            self.notes.append(f"limit {self.operation.limit} is out of range; it was reduced to {MAX_LIMIT}")
        return ops.SymbolMatches(
            tuple(match for _, match in best[:limit]), len(best), tuple(files.items()), notes=tuple(self.notes)
        )


def _iter_outline_symbols(items: Iterable[ops.OutlineItem], parent: str) -> Iterator[_Symbol]:
    for item in items:
        kind = _KINDS.get(item.section)
        if kind is None:
            continue
        kind = "method" if parent and kind == "function" else kind
        for name in item.names:
            yield _Symbol(name, kind, parent)
        first = item.names[0].text if item.names else item.text
        yield from _iter_outline_symbols(item.members, f"{kind} {first}")


def _guess_symbols(lines: Iterable[str]) -> Iterator[_Symbol]:
    for number, line in enumerate(lines, 1):
        if match := _DECLARATION.match(line[:MAX_TEXT]):
            name = ops.OutlineName(match[2], number, match.start(2) + 1)
            yield _Symbol(name, _WORDS_AS_KINDS.get(match[1], "class"), "")
