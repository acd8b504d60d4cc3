"""Paths that searches leave out: those in ``.gitignore`` files, and directories of generated files."""

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
"""Directories of dependencies, builds and caches, left out at any depth."""

MAX_IGNORE_BYTES = 100_000
"""Maximum number of bytes read from an ignore file; a longer one is noted."""


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """A parsed ``.gitignore``. ``base`` is its directory relative to the root, ending in ``/`` or empty."""

    base: str
    rules: GitIgnoreSpec
    mentions: re.Pattern[str]
    """Matches every path that some rule matches. Most paths match none, so one search decides."""
    keeps: re.Pattern[str]
    """Matches every path that some ``!`` line matches. If none does, the order of the rules does not matter."""

    def verdict(self, path: str) -> bool | None:
        """Return True if ignored, False if kept by a ``!`` line, None if no rule matches. Directories end with
        ``/``."""
        below = path[len(self.base) :]
        if not self.mentions.search(below):
            return None
        return self.rules.check_file(below).include if self.keeps.search(below) else True


def parse_ignore_file(text: str, base: str) -> IgnoreFile:
    """Parse a ``.gitignore``. Invalid patterns are skipped, as git does: one must not disable the others.

    ``simple``: the faster backends reject some patterns, and results must not depend on which are installed.
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
    # pathspec uses a named group, and one expression can define a name only once
    each = [re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern) for pattern in patterns if pattern.regex]
    return re.compile("|".join(each) if each else r"(?!)")


def is_ignored(path: str, files: Sequence[IgnoreFile]) -> bool:
    """Return whether ``path`` is ignored (directories end with ``/``); the deepest matching file decides."""
    for file in reversed(files):
        verdict = file.verdict(path)
        if verdict is not None:
            return verdict
    return False
