"""Detect git's data by the contents of a directory, not by its name.

Git recognizes a repository by these entries (setup.c, `is_git_directory`)::

    HEAD, objects and refs      a repository: bare, `git init --separate-git-dir`, or a copy of a `.git`
    HEAD and commondir          the data of a linked worktree

Git then runs the programs named in its `config` and `hooks`. Paths in the workspace that a configuration names
(`core.hooksPath`, `core.fsmonitor`, `include.path`, filters) therefore also count as git's data.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from adapter.workspace.paths.open_flags import OPEN_ANY_FILE

MAX_ENTRIES = 5_000
"""Maximum number of entries checked in a directory to move or copy; a larger directory counts as a repository."""
MAX_SEEN = 10_000
"""Maximum number of workspace entries searched for repositories. The search takes about 10 ms before each command."""
MAX_REPOSITORIES = 50
"""Maximum number of repositories returned, nearest first. Each needs at least one mount, which takes 2 ms."""
MAX_CONFIG_BYTES = 64 << 10
"""Maximum number of bytes read from the start of a git configuration."""

_RUNS = re.compile(
    r"^[ \t]*(?:path|hookspath|fsmonitor|sshcommand|gitproxy|clean|smudge|process|textconv|command|driver|helper|editor"
    r"|pager|askpass|program|cmd)[ \t]*=[ \t]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
SETTINGS = frozenset({".gitmodules", ".gitconfig"})
_WORD = re.compile(r"[^\s\"';]+")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def is_repository(directory: str, new_name: str = "") -> bool:
    """Return whether git recognizes ``directory`` as a repository, or would do so if ``new_name`` existed in it."""

    def has(name: str) -> bool:
        return name.casefold() == new_name.casefold() or os.path.lexists(f"{directory}/{name}")

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def is_git_data(top: str, parts: Sequence[str]) -> bool:
    """Return whether a file is git's own data, or would turn its directory into a repository. ``parts``: its path below
    ``top``."""
    directory = top
    if parts and parts[-1].casefold() in SETTINGS:
        return True
    for index, name in enumerate(parts):
        below = _normalize_path("/".join(parts[index:]))
        if is_repository(directory, name) or any(
            f"{below}/".startswith(f"{path}/") for path in find_paths_run_by_git(directory)
        ):
            return True
        directory = f"{directory}/{name}"
    return is_repository(directory)


def holds_repository(directory: str) -> bool:
    """Return whether ``directory`` is or contains a repository, or has too many entries to search."""
    seen = 0
    for inner, directories, names in os.walk(directory):
        seen += len(directories) + len(names)
        if seen > MAX_ENTRIES or is_repository(inner):
            return True
    return False


def find_repositories(top: str) -> list[str]:
    """Return the paths of all git data below ``top``, including repositories whose directory is not named ``.git``.

    The search is breadth first and limited: see `MAX_REPOSITORIES` and `MAX_SEEN`.
    """
    paths = [f"{top}/{name}" for name in ("config", "hooks")] if is_repository(top) else []
    count = 0
    for directory, names in _walk_directories(top):
        if directory != top and _is_repository_with(names):
            paths.append(directory)
        elif ".git" in names:
            named = (f"{directory}/{path}" for path in find_paths_run_by_git(directory))
            data = (f"{directory}/.git", find_git_directory(directory) or "", *named)
            paths += [path for path in data if path.startswith(f"{top}/")]
        else:
            continue
        count += 1
        if count == MAX_REPOSITORIES:
            break
    return [path for path in dict.fromkeys(paths) if os.path.exists(path) and not os.path.islink(path)]  # noqa: PTH110, PTH114


def _walk_directories(top: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the directories below ``top`` breadth first, each with the names in it. Git's data is not entered."""
    pending, left = deque([top]), MAX_SEEN
    while pending and left > 0:
        directory, names = pending.popleft(), list[str]()
        inner: list[str] = []
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in islice(entries, left):
                names.append(entry.name)
                if entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    inner.append(entry.path)
        left -= len(names) + 1
        known = frozenset(names)
        if directory == top or not _is_repository_with(known):
            pending += sorted(inner)
        yield directory, known


def _is_repository_with(names: frozenset[str]) -> bool:
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def find_paths_run_by_git(top: str) -> Iterator[str]:
    """Yield the paths below ``top`` that the configuration of its repository runs as programs or includes."""
    directory = find_git_directory(top)
    if directory is None:
        return
    common = os.path.join(directory, _read(f"{directory}/commondir").strip())  # noqa: PTH118 - for linked worktrees
    above = f"{_normalize_path(top)}/"
    for file in (f"{common}/config", f"{directory}/config.worktree"):
        text = _read(file)
        for value in _RUNS.findall(text):
            for word in _split_words(value):
                for start in (top, common):  # a program from the work tree, an included file from the config
                    path = _normalize_path(os.path.join(start, word))  # noqa: PTH118
                    if path.startswith(above):
                        yield path.removeprefix(above)


def _normalize_path(path: str) -> str:
    """Return the path in one spelling: without ``..``, and on Windows with slashes and in lower case."""
    return os.path.normcase(os.path.normpath(path)).replace(os.sep, "/")


def _split_words(value: str) -> Iterator[str]:
    """Yield the possible paths in a value: the whole value (a path may have spaces), quoted parts, and words."""
    plain = value.replace('\\"', '"').strip()
    yield plain.strip('"')
    for pattern in (_QUOTED, _WORD):
        yield from (found[0].strip("\"'") for found in islice(pattern.finditer(plain), 20))


def find_git_directory(top: str) -> str | None:
    """Return the repository directory of the work tree ``top``, or None if it has none."""
    entry = f"{top}/.git"
    with suppress(OSError, ValueError):
        if os.path.isdir(entry):  # noqa: PTH112
            return os.path.realpath(entry)
        words = _read(entry)
        if words.startswith("gitdir:"):
            return os.path.realpath(os.path.join(top, words.removeprefix("gitdir:").strip()))  # noqa: PTH118
    return None


def _read(file: str) -> str:
    """Return the start of a regular file; "" if ``file`` is anything else."""
    with suppress(OSError):
        descriptor = os.open(file, OPEN_ANY_FILE)
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return opened.read(MAX_CONFIG_BYTES).decode("utf-8", "replace")
    return ""
