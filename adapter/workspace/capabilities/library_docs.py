"""Library documentation without a network: what the packages of this Python environment bring with them.

Ids are ``/pypi/NAME`` or ``/pypi/NAME/VERSION``. Nothing is imported: descriptions
come from the metadata, signatures and docstrings from the source.
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
from adapter.workspace.capabilities.local_search import DocSection, rank_sections, sections_of

PAGE_CHARACTERS = 10_000
"""Of a page of documentation."""
MAX_FOUND = 5
"""Libraries that are named for a search."""
MAX_SOURCE_BYTES = 1_000_000
"""Read of one source file of a library."""
MAX_FILES = 400
"""Source files of a library that are read."""
_NAME = re.compile(r"^Name:[ \t]*(\S+)", re.MULTILINE)
_ID = re.compile(r"/pypi/([A-Za-z0-9._-]+)(?:/([^/]+))?/?")


class InstalledDocs:
    """Answers about the packages that are installed beside this one."""

    def find(self, name: str) -> list[Library]:
        installed = {_plain(found): found for found in _names()}
        wanted = _plain(name)
        near = process.extract(wanted, list(installed), scorer=fuzz.ratio, limit=MAX_FOUND, score_cutoff=60)
        inside = [plain for plain in installed if wanted and wanted in plain][:MAX_FOUND]
        chosen = dict.fromkeys([*([wanted] if wanted in installed else []), *inside, *(match for match, *_ in near)])
        return [_library(metadata.distribution(installed[plain])) for plain in list(chosen)[:MAX_FOUND]]

    def read(self, library_id: str, mode: DocsMode, topic: str | None, page: int) -> str:
        distribution = _distribution(library_id)
        sections = list(_readme(distribution) if mode == "info" else _code(distribution))
        if topic:
            sections = rank_sections(sections, topic)
        if not sections:
            other = "code" if mode == "info" else "info"
            about = f" about {topic!r}" if topic else ""
            raise ToolError(f"{library_id} has no documentation{about} here; try mode {other!r}, or another topic")
        unread = _unread(distribution) if mode == "code" else []
        text = "\n\n".join([section.text for section in sections] + unread)
        pages = [text[start : start + PAGE_CHARACTERS] for start in range(0, len(text), PAGE_CHARACTERS)]
        if page > len(pages):
            raise ToolError(f"{library_id} has {len(pages)} pages here; there is no page {page}")
        return pages[page - 1] + (f"\n\n(page {page} of {len(pages)})" if len(pages) > 1 else "")


def _names() -> list[str]:
    """Read from the heads of the files alone: `metadata` would take whole readmes apart, half a second of them."""
    heads = (found.read_text("METADATA") or found.read_text("PKG-INFO") or "" for found in metadata.distributions())
    return sorted({named[1] for head in heads if (named := _NAME.search(head)) is not None})


def _plain(name: str) -> str:
    """The name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _library(distribution: metadata.Distribution) -> Library:
    name, version = str(distribution.metadata["Name"]), distribution.version
    return Library(f"/pypi/{_plain(name)}/{version}", name, str(distribution.metadata["Summary"] or ""), version)


def _distribution(library_id: str) -> metadata.Distribution:
    match = _ID.fullmatch(library_id)
    if not match:
        raise ToolError(f"{library_id!r} is not known here: ids look like /pypi/NAME; look the library up by its name")
    try:
        found = metadata.distribution(match[1])
    except metadata.PackageNotFoundError:
        raise ToolError(f"{match[1]!r} is not installed here; look the library up by its name") from None
    if match[2] and match[2] != found.version:
        raise ToolError(f"{match[1]} {match[2]} is not installed here, but {found.version} is: {_library(found).id}")
    return found


def _readme(distribution: metadata.Distribution) -> Iterator[DocSection]:
    message = email.message_from_string(distribution.read_text("METADATA") or "")
    text = message["Description"] or message.get_payload()
    yield from sections_of(str(text), str(distribution.metadata["Name"]))


def _code(distribution: metadata.Distribution) -> Iterator[DocSection]:
    """A section for each public class and function with a docstring, and for each module that has one."""
    for file in _modules(distribution)[:MAX_FILES]:
        path = Path(str(file.locate()))
        if not _is_readable(path):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # not there, or for another Python
        module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        yield from _sections(tree, module, str(file))


def _modules(distribution: metadata.Distribution) -> list[metadata.PackagePath]:
    """The public ones, those of the package itself first."""
    modules = [file for file in distribution.files or () if file.suffix == ".py"]
    public = [file for file in modules if not any(_is_private(part) for part in file.with_suffix("").parts)]
    return sorted(public, key=lambda file: (len(file.parts), str(file)))


def _is_readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= MAX_SOURCE_BYTES


def _unread(distribution: metadata.Distribution) -> list[str]:
    """What of the source is left out because there is so much, in words."""
    modules = _modules(distribution)
    files = [Path(str(file.locate())) for file in modules[:MAX_FILES]]
    large = sum(path.is_file() and not _is_readable(path) for path in files)
    return [
        *([f"({large} files larger than {MAX_SOURCE_BYTES:,} bytes were not read)"] if large else []),
        *([f"(of {len(modules)} files the first {MAX_FILES} were read)"] if len(modules) > MAX_FILES else []),
    ]


def _is_private(part: str) -> bool:
    return (part.startswith("_") and part != "__init__") or part in ("tests", "test", "..")


def _sections(tree: ast.Module, module: str, path: str) -> Iterator[DocSection]:
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
                yield DocSection(name, path, item.lineno, f"## {name}{_signature(item)}\n\n{text}")


def _signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if isinstance(node, ast.ClassDef):
        return f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(node.args)}){returns}"
