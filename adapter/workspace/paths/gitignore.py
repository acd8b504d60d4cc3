"""What a search leaves out: what ``.gitignore`` files name, and directories nobody wrote by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

COMMON_DIRECTORIES = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj"),
        *("node_modules", "bower_components", "vendor", "Pods"),
        *("__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
        *(".hypothesis", ".eggs", "site-packages"),
        *("target", "dist", "build", ".next", ".nuxt", ".gradle", ".zig-cache", "zig-out"),
        *(".cache", ".cargo", ".rustup", ".idea", ".vscode", "coverage", "htmlcov"),
    }
)
"""Directories of dependencies, builds and caches, left out wherever they are."""

MAX_IGNORE_BYTES = 100_000
"""Read of an ignore file; that there is more is noted."""


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """One ``.gitignore``: ``base`` is its directory, relative to the root, with a closing ``/`` or empty."""

    base: str
    rules: GitIgnoreSpec
    mentions: re.Pattern[str]
    """Matches every path that some rule does: most paths match none, which one look then tells."""
    keeps: re.Pattern[str]
    """Matches every path that some ``!`` line does. Without one the order of the rules says nothing."""

    def verdict(self, path: str) -> bool | None:
        """True ignored, False kept by a ``!`` line, None not mentioned. Directories end with ``/``."""
        below = path[len(self.base) :]
        if not self.mentions.search(below):
            return None
        return self.rules.check_file(below).include if self.keeps.search(below) else True


def parse_ignore_file(text: str, base: str) -> IgnoreFile:
    """Lines that are no pattern are left out, as git does; one must not disable the others.

    ``simple``: the faster backends refuse some patterns, and whether they are installed must not matter.
    """
    from pathspec import GitIgnoreSpec

    patterns: list[GitIgnoreSpecPattern] = []
    for line in text.split("\n"):
        try:
            patterns += GitIgnoreSpec.from_lines([line.removesuffix("\r")], backend="simple").patterns
        except (ValueError, re.error):
            continue
    kept = [pattern for pattern in patterns if pattern.include is False]
    return IgnoreFile(base, GitIgnoreSpec(patterns, backend="simple"), _any_of(patterns), _any_of(kept))


def _any_of(patterns: Iterable[GitIgnoreSpecPattern]) -> re.Pattern[str]:
    # pathspec names a group in its expressions, which one expression can have only once
    each = [re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern) for pattern in patterns if pattern.regex]
    return re.compile("|".join(each) if each else r"(?!)")


def is_ignored(path: str, files: Sequence[IgnoreFile]) -> bool:
    """Whether ``path`` (directories end with ``/``) is ignored; the deepest file that mentions it decides."""
    for file in reversed(files):
        verdict = file.verdict(path)
        if verdict is not None:
            return verdict
    return False
