"""Expand import statements to single paths, and merge paths with a common prefix for display.

``std::{fs, io::{self, Read}}`` expands to ``std::fs``, ``std::io::self`` and ``std::io::Read``. Merging restores the
braces for all of a file's statements at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_NESTING = 20
"""Maximum nesting of braces in an import statement."""
MAX_COMPONENTS = 50
"""Maximum number of components into which an import path is split."""


def expand_import(path: str, separator: str) -> list[str]:
    """Return all single paths in ``path``. A part with unbalanced braces is returned unchanged."""
    if not separator:
        return [path] if path else []
    return list(_expand(path, 0))


def _expand(path: str, depth: int) -> Iterator[str]:
    for part in _split(path):
        start = part.find("{")
        if start < 0 or not part.endswith("}") or depth > MAX_NESTING:
            yield part
            continue
        for rest in _expand(part[start + 1 : -1], depth + 1):
            yield part[:start] + rest


def _split(text: str) -> list[str]:
    """Split ``text`` at commas outside braces."""
    parts: list[str] = []
    level = start = 0
    for position, character in enumerate(text):
        if character == "{":
            level += 1
        elif character == "}":
            level -= 1
        elif character == "," and level == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


class _Branch(dict[str, "_Branch"]):
    """A node in the tree of import paths: maps each next component to its node. ``ends`` is true if a path ends
    here."""

    ends = False


def merge_imports(paths: Iterable[str], separator: str) -> list[str]:
    """Merge paths that begin with the same component, as in ``std::{fs, io}``. Return one entry per first component, in
    order of appearance."""
    root = _Branch()
    for path in paths:
        branch = root
        for part in _split_components(path, separator):
            branch = branch.setdefault(part, _Branch())
        branch.ends = True
    return [entry for name, branch in root.items() for entry in _render_branch(name, branch, separator)]


def _split_components(path: str, separator: str) -> list[str]:
    if not separator:
        return [path]
    dots = path[: len(path) - len(path.lstrip(separator))]  # Python's relative imports begin with separators
    parts = path[len(dots) :].split(separator, MAX_COMPONENTS)
    return [dots + parts[0], *parts[1:]]


def _render_branch(name: str, branch: _Branch, separator: str) -> list[str]:
    own = [name] if branch.ends or not branch else []
    nested = [entry for child, rest in branch.items() for entry in _render_branch(child, rest, separator)]
    if not nested:
        return own
    joiner = "" if name.endswith(separator) else separator
    return [*own, name + joiner + (nested[0] if len(nested) == 1 else "{" + ", ".join(nested) + "}")]
