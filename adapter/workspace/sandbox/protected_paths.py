"""Find the paths in a workspace that a command must not move, change or see: git's data, and files that rules deny."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from adapter.core.errors import ToolError
from adapter.workspace.paths.git_data_detection import find_repositories
from adapter.workspace.sandbox.bubblewrap import MAX_HIDDEN, find_identity

MAX_SEARCHED = 200_000
"""Maximum number of workspace entries checked against the rules that deny paths to commands."""

IsDenied: TypeAlias = Callable[[str], bool]
"""Returns whether rules deny a path, which is relative to the workspace root."""
_IdentifiedPaths: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of a path and its identity (``device:inode``)."""


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """The paths that a command must not move (``pinned``), change (``frozen``) or see (``hidden``)."""

    pinned: _IdentifiedPaths
    frozen: _IdentifiedPaths
    hidden: tuple[str, ...]


def find_protected_paths(
    workspace: str,
    may_write: Callable[[str], bool],
    data_directory: str | None,
    *,
    hidden: IsDenied | None,
    frozen: IsDenied | None,
) -> ProtectedPaths:
    """Return the paths in ``workspace`` to protect from a command, except paths that it ``may_write``.

    ``data_directory`` contains this package's data, if it is in the workspace. Directories that contain git's data must
    not be moved, or a command could replace the data. Raises ToolError if there are too many paths.
    """
    kept = [path for path in find_repositories(workspace) if not may_write(path)]
    holding = {str(directory) for path in kept for directory in PurePosixPath(path).parents}
    pinned = sorted(directory for directory in holding if directory.startswith(f"{workspace}/"))
    unseen = [] if data_directory is None else [f"{workspace}/{data_directory}"]
    if hidden or frozen:
        _add_denied(workspace, hidden, frozen, kept, unseen)
    if len(kept) + len(unseen) > MAX_HIDDEN:
        raise ToolError(
            f"{len(kept) + len(unseen)} paths are denied by rules, but at most {MAX_HIDDEN} can be hidden "
            "from a command. Nothing was run; the user can deny their directory instead: 'secrets/'"
        )

    def identify(paths: Iterable[str]) -> _IdentifiedPaths:
        known = ((path, find_identity(workspace, path)) for path in paths if not may_write(path))
        return tuple((path, identity) for path, identity in known if identity)

    return ProtectedPaths(identify(pinned), identify(kept), tuple(unseen))


def _add_denied(
    workspace: str, hidden: IsDenied | None, frozen: IsDenied | None, kept: list[str], unseen: list[str]
) -> None:
    """Add the paths that rules deny to ``kept`` and ``unseen``. Raises ToolError if there are too many to check."""
    pending, seen = [""], 0
    while pending:
        directory = pending.pop()
        with suppress(OSError), os.scandir(f"{workspace}/{directory}") as entries:
            for entry in entries:
                seen += 1
                path = f"{directory}/{entry.name}" if directory else entry.name
                if entry.is_symlink():
                    continue
                if hidden and hidden(path):
                    unseen.append(entry.path)
                    continue
                if frozen and frozen(path):
                    kept.append(entry.path)  # entries in it may still be hidden
                if entry.is_dir():
                    pending.append(path)
        if seen > MAX_SEARCHED:
            raise ToolError(
                f"the workspace has more than {MAX_SEARCHED:,} entries, so they cannot all be checked against path "
                "rules for commands; nothing was run. The user can start in a smaller directory, "
                "or without such rules"
            )
