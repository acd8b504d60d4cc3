"""Provide library documentation without a network, from the packages installed in this Python environment.

Ids are ``/pypi/NAME`` or ``/pypi/NAME/VERSION``. No package is imported: descriptions come from the metadata,
signatures and docstrings from the source.
"""

from __future__ import annotations

import ast
import email
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from rapidfuzz import fuzz, process

from adapter.core.errors import ToolError
from adapter.tools.operations import DocsMode, Library
from adapter.workspace.capabilities.local_search import DocSection, rank_sections, split_sections

PAGE_CHARACTERS = 10_000
"""Length of a documentation page, in characters."""
MAX_FOUND = 5
"""Maximum number of libraries returned by a search."""
MIN_SIMILARITY = 75
"""Minimum similarity of names, in percent. With it, a search for ``react`` does not return ``tenacity``."""
MAX_SOURCE_BYTES = 1_000_000
"""Maximum size of a source file that is read, in bytes."""
MAX_FILES = 400
"""Maximum number of source files read per library."""
_NAME = re.compile(r"^Name:[ \t]*(\S+)", re.MULTILINE)
_ID = re.compile(r"/pypi/([A-Za-z0-9._-]+)(?:/([^/]+))?/?")


class InstalledDocs:
    """Documentation of the packages in this Python environment."""

    def find(self, name: str) -> list[Library]:
        installed = {_normalize(found): found for found in _list_names()}
        key = _normalize(name)
        near = process.extract(key, list(installed), scorer=fuzz.ratio, limit=MAX_FOUND, score_cutoff=MIN_SIMILARITY)
        inside = [other for other in installed if key and key in other][:MAX_FOUND]
        chosen = dict.fromkeys([*([key] if key in installed else []), *inside, *(match for match, *_ in near)])
        return [_describe_library(metadata.distribution(installed[each])) for each in list(chosen)[:MAX_FOUND]]

    def read(self, library_id: str, mode: DocsMode, topic: str | None, page: int) -> str:
        distribution = _find_distribution(library_id)
        sections, unread = ([*_read_readme(distribution)], []) if mode == "info" else _read_code(distribution)
        if topic:
            sections = rank_sections(sections, topic)
        if not sections:
            other = "code" if mode == "info" else "info"
            about = f" about {topic!r}" if topic else ""
            raise ToolError(f"{library_id} has no documentation{about} here; try mode {other!r}, or another topic")
        text = "\n\n".join([section.text for section in sections] + unread)
        pages = [text[start : start + PAGE_CHARACTERS] for start in range(0, len(text), PAGE_CHARACTERS)]
        if page > len(pages):
            raise ToolError(f"{library_id} has {len(pages)} pages here; page {page} does not exist")
        return pages[page - 1] + (f"\n\n(page {page} of {len(pages)})" if len(pages) > 1 else "")


def _list_names() -> list[str]:
    """Return the sorted names of the installed packages, without parsing their readmes as `importlib.metadata` does."""
    heads = (found.read_text("METADATA") or found.read_text("PKG-INFO") or "" for found in metadata.distributions())
    return sorted({name[1] for head in heads if (name := _NAME.search(head)) is not None})


def _normalize(name: str) -> str:
    """Normalize a package name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _describe_library(distribution: metadata.Distribution) -> Library:
    name, version = str(distribution.metadata["Name"]), distribution.version
    return Library(f"/pypi/{_normalize(name)}/{version}", name, str(distribution.metadata["Summary"] or ""), version)


def _find_distribution(library_id: str) -> metadata.Distribution:
    match = _ID.fullmatch(library_id)
    if not match:
        raise ToolError(
            f"{library_id!r} is not a known library id: expected one like /pypi/NAME; look up the library by name"
        )
    try:
        package = metadata.distribution(match[1])
    except metadata.PackageNotFoundError:
        raise ToolError(f"{match[1]!r} is not installed here; look up the library by name") from None
    if match[2] and match[2] != package.version:
        raise ToolError(
            f"{match[1]} {match[2]} is not installed here, but version {package.version} is; "
            f"use {_describe_library(package).id}"
        )
    return package


def _read_readme(distribution: metadata.Distribution) -> Iterator[DocSection]:
    message = email.message_from_string(distribution.read_text("METADATA") or "")
    text = message["Description"] or message.get_payload()
    yield from split_sections(str(text), str(distribution.metadata["Name"]))


def _read_code(distribution: metadata.Distribution) -> tuple[list[DocSection], list[str]]:
    """Return sections for the public modules, classes and functions with docstrings, and notes on files not read."""
    modules, sections, too_large = _list_modules(distribution), list[DocSection](), 0
    for file in modules[:MAX_FILES]:
        path = Path(str(file.locate()))
        if not path.is_file():
            continue
        if path.stat().st_size > MAX_SOURCE_BYTES:
            too_large += 1
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # the file is unreadable or for another Python version
        module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        sections += _iter_sections(tree, module, str(file))
    notes = [f"({too_large} files larger than {MAX_SOURCE_BYTES:,} bytes were not read)"] if too_large else []
    if len(modules) > MAX_FILES:
        notes.append(f"(only the first {MAX_FILES} of {len(modules)} files were read)")
    return sections, notes


def _list_modules(distribution: metadata.Distribution) -> list[metadata.PackagePath]:
    """Return the files of the public modules, the least nested first."""
    modules = [file for file in distribution.files or () if file.suffix == ".py"]
    public = [file for file in modules if not any(_is_private(part) for part in file.with_suffix("").parts)]
    return sorted(public, key=lambda file: (len(file.parts), str(file)))


def _is_private(part: str) -> bool:
    return (part.startswith("_") and part != "__init__") or part in ("tests", "test", "..")


def _iter_sections(tree: ast.Module, module: str, path: str) -> Iterator[DocSection]:
    if text := ast.get_docstring(tree):
        yield DocSection(module, path, 1, f"# {module}\n\n{text}")
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or _is_private(node.name):
            continue
        parts = [node, *(item for item in getattr(node, "body", ()) if isinstance(node, ast.ClassDef))]
        for item in parts:
            if not isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or _is_private(item.name):
                continue
            name = f"{module}.{node.name}" + (f".{item.name}" if item is not node else "")
            if text := ast.get_docstring(item):
                yield DocSection(name, path, item.lineno, f"## {name}{_format_signature(item)}\n\n{text}")


def _format_signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if isinstance(node, ast.ClassDef):
        return f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(node.args)}){returns}"
