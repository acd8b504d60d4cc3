"""Git's own data wherever it is: by what a folder holds, whatever it is called.

Git takes a folder for a repository when it finds these in it (setup.c, `is_git_directory`)::

    HEAD, objects and refs      a repository: bare, `git init --separate-git-dir`, or a copy of a `.git`
    HEAD and commondir          the data of a linked worktree

and then runs what its `config` and `hooks` say. What a configuration names in the workspace (`core.hooksPath`,
`core.fsmonitor`, `include.path`, filters) counts as its data, too.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

MAX_ENTRIES = 5_000
"""Of a folder that is moved or copied; a larger one counts as holding a repository."""
MAX_SEEN = 10_000
"""Entries of the workspace that are looked at for repositories, the nearest first: some 10 ms, with each command."""
MAX_REPOSITORIES = 50
"""That are told of, the nearest ones: each is a mount or more, of 2 ms."""
MAX_CONFIG_BYTES = 64 << 10
"""At the beginning of a configuration of git's that are looked at."""

_RUNS = re.compile(
    r"^[ \t]*(?:path|hookspath|fsmonitor|sshcommand|gitproxy|clean|smudge|process|textconv|command|driver|helper|editor"
    r"|pager|askpass|program|cmd)[ \t]*=[ \t]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
SETTINGS = frozenset({".gitmodules", ".gitconfig"})
_WORD = re.compile(r"[^\s\"';]+")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def is_repository(folder: str, made: str = "") -> bool:
    """Whether git would take ``folder`` for a repository, or will once ``made`` is in it."""

    def has(name: str) -> bool:
        return name.casefold() == made.casefold() or os.path.lexists(f"{folder}/{name}")

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def is_git_data(top: str, parts: Sequence[str]) -> bool:
    """Whether a change of ``parts`` below ``top`` would be one of git's data, or make its folder a repository."""
    folder = top
    if parts and parts[-1].casefold() in SETTINGS:
        return True
    for place, name in enumerate(parts):
        below = f"{'/'.join(parts[place:])}/"
        if is_repository(folder, name) or any(below.startswith(f"{named}/") for named in paths_run_by_git(folder)):
            return True
        folder = f"{folder}/{name}"
    return is_repository(folder)


def holds_repository(folder: str) -> bool:
    """Whether ``folder``, or one in it, is a repository, or too large to tell."""
    seen = 0
    for inner, folders, names in os.walk(folder):
        seen += len(folders) + len(names)
        if seen > MAX_ENTRIES or is_repository(inner):
            return True
    return False


def repositories_in(top: str) -> list[str]:
    """Git's own data in ``top``, at any depth, also what is not called `.git`; as it is now.

    The nearest ones of very many, or of a very large folder: see `MAX_REPOSITORIES` and `MAX_SEEN`.
    """
    found = [f"{top}/{name}" for name in ("config", "hooks")] if is_repository(top) else []
    count = 0
    for folder, names in _folders(top):
        if folder != top and _is_repository_with(names):
            found.append(folder)
        elif ".git" in names:
            named = (f"{folder}/{path}" for path in paths_run_by_git(folder))
            data = (f"{folder}/.git", git_folder(folder) or "", *named)
            found += [path for path in data if path.startswith(f"{top}/")]
        else:
            continue
        count += 1
        if count == MAX_REPOSITORIES:
            break
    return [path for path in dict.fromkeys(found) if os.path.exists(path) and not os.path.islink(path)]  # noqa: PTH110, PTH114


def _folders(top: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The folders in ``top``, the nearest first, with the names in each; what is git's own is not entered."""
    pending, left = deque([top]), MAX_SEEN
    while pending and left > 0:
        folder, names = pending.popleft(), list[str]()
        inner: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, left):
                names.append(entry.name)
                if entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    inner.append(entry.path)
        left -= len(names) + 1
        known = frozenset(names)
        if folder == top or not _is_repository_with(known):
            pending += sorted(inner)
        yield folder, known


def _is_repository_with(names: frozenset[str]) -> bool:
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def paths_run_by_git(top: str) -> Iterator[str]:
    """The paths below ``top`` that the configuration of its repository names as what to run or to read."""
    folder = git_folder(top)
    if folder is None:
        return
    common = os.path.join(folder, _read(f"{folder}/commondir").strip())  # noqa: PTH118 - of a linked worktree
    for file in (f"{common}/config", f"{folder}/config.worktree"):
        text = _read(file)
        for value in _RUNS.findall(text):
            for word in _words(value):
                for start in (top, common):  # a program from the work tree, an included file from the config
                    path = os.path.normpath(os.path.join(start, word))  # noqa: PTH118
                    if path.startswith(f"{top}/"):
                        yield os.path.relpath(path, top)


def _words(value: str) -> Iterator[str]:
    """Yield a value's possible paths: all of it, which may have spaces, its quoted parts, and its words."""
    plain = value.replace('\\"', '"').strip()
    yield plain.strip('"')
    for pattern in (_QUOTED, _WORD):
        yield from (found[0].strip("\"'") for found in islice(pattern.finditer(plain), 20))


def git_folder(top: str) -> str | None:
    """The folder of the repository that ``top`` is the work tree of."""
    entry = f"{top}/.git"
    with suppress(OSError, ValueError):
        if os.path.isdir(entry):  # noqa: PTH112
            return os.path.realpath(entry)
        words = _read(entry)
        if words.startswith("gitdir:"):
            return os.path.realpath(os.path.join(top, words.removeprefix("gitdir:").strip()))  # noqa: PTH118
    return None


def _read(file: str) -> str:
    """The beginning of a regular file; "" where there is none."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return opened.read(MAX_CONFIG_BYTES).decode("utf-8", "replace")
    return ""
