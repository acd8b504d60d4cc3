"""Find the files that a shell command deletes or moves away."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_DELETES = frozenset(["del", "erase", "remove-item", "rd", "rm", "rmdir", "shred", "truncate", "unlink"])
_MOVES = frozenset(["mv", "move", "move-item", "ren", "rename"])
_SEPARATOR = re.compile(r"&&|\|\||[;|&\n]")
_PREFIXES = frozenset(["command", "env", "sudo", "time", "xargs"])


def list_removed_paths(command: str) -> Iterator[str]:
    """Yield the paths and glob patterns that a command deletes or moves away, as they are written in it."""
    for part in _SEPARATOR.split(command):
        try:
            words = shlex.split(part)
        except ValueError:  # an unclosed quotation mark
            words = part.split()
        while words and (words[0] in _PREFIXES or "=" in words[0]):
            del words[0]
        name = PurePosixPath(words[0]).name.lower() if words else ""
        paths = [word for word in words[1:] if not re.match(r"-|/\w\Z", word)]
        if name in _MOVES:
            paths = paths[:-1]  # without the destination
        if name in _DELETES | _MOVES:
            yield from (path.removeprefix("./") for path in paths)


def is_removed(path: str, removed: str) -> bool:
    """Return whether the file ``path`` is, or is inside, the path or glob pattern ``removed``."""
    folder = removed.rstrip("/")
    return folder == "." or path.startswith(f"{folder}/") or fnmatchcase(path, folder)
