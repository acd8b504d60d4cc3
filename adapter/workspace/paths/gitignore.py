"""Decide which paths searches leave out: ignored files and directories of generated files."""

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
"""Maximum number of bytes read from an ignore file; a note reports a longer file."""


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """A parsed ``.gitignore``. ``base``: its directory relative to the root, empty or ending in ``/``."""

    base: str
    rules: GitIgnoreSpec
    mentions: re.Pattern[str]
    """All rules combined into one pattern, so that a single search rules out most paths."""
    keeps: re.Pattern[str]
    """All ``!`` lines combined into one pattern. For a path that matches none, the order of rules does not matter."""

    def decide(self, path: str) -> bool | None:
        """Return True if ``path`` is ignored, False if a ``!`` line keeps it, None if no rule matches it.

        The path of a directory ends with ``/``.
        """
        below = path[len(self.base) :]
        if not self.mentions.search(below):
            return None
        return self.rules.check_file(below).include if self.keeps.search(below) else True


def parse_ignore_file(text: str, base: str) -> IgnoreFile:
    """Parse a ``.gitignore``. Like git, skip invalid patterns, so that they do not disable the valid ones.

    The backend is always ``simple``: faster backends reject some patterns, and the result must not depend on the
    backends that are installed.
    """
    from pathspec import GitIgnoreSpec

    patterns: list[GitIgnoreSpecPattern] = []
    for line in text.split("\n"):
        try:
            patterns += GitIgnoreSpec.from_lines([line.removesuffix("\r")], backend="simple").patterns
        except (ValueError, re.error):
            continue
    kept = [pattern for pattern in patterns if pattern.include is False]
    return IgnoreFile(base, GitIgnoreSpec(patterns, backend="simple"), _compile_any(patterns), _compile_any(kept))


def _compile_any(patterns: Iterable[GitIgnoreSpecPattern]) -> re.Pattern[str]:
    # pathspec uses a named group, and one expression can define a name only once
    each = [re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern) for pattern in patterns if pattern.regex]
    return re.compile("|".join(each) if each else r"(?!)")


def is_ignored(path: str, files: Sequence[IgnoreFile]) -> bool:
    """Return whether ``path`` (with ``/`` after a directory) is ignored; the deepest matching ignore file decides."""
    for file in reversed(files):
        verdict = file.decide(path)
        if verdict is not None:
            return verdict
    return False
