"""Where a change takes place: its paths, resolved anew for each step, and the directories in which names change."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.changes.journal import ChangeRecord, ChangeStep, lock, sync_directory
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.resolved_path import ResolvedPath, missing_sentence
from adapter.workspace.paths.resolver import RootGoneError, WorkspaceRoot


class PathGoneError(Exception):
    """A path of a change that cannot be reached any more."""


class ChangePaths:
    """The places of one change."""

    def __init__(self, root: WorkspaceRoot, record: ChangeRecord) -> None:
        self._root = root
        self._steps = record.steps

    @contextmanager
    def at(self, path: str) -> Iterator[ResolvedPath]:
        """The place that was resolved when the change was planned. Raises ToolError when a link leads there now."""
        with self._root.locate(f"./{path}", follow=False) as place:
            if "/".join(place.parts) != path:
                raise ToolError(f"{escape_for_display(path)} changed into a link in the meantime; try again")
            yield place

    @contextmanager
    def again(self, path: str) -> Iterator[ResolvedPath]:
        """The same for a repair. Raises Gone when the directory it was in is not there."""
        with ExitStack() as stack:
            try:
                place = stack.enter_context(self._root.locate(f"./{path}", follow=False, parents="imagine"))
            except RootGoneError:
                raise
            except ToolError as error:
                raise PathGoneError(str(error)) from error
            if place.dirfd < 0 or "/".join(place.parts) != path:
                raise PathGoneError(missing_sentence(place))
            yield place

    def _directories(self) -> list[tuple[str, ...]]:
        """The directories in which names change, each once."""
        paths = [step.path for step in self._steps if step.kind != "directory"]
        paths += [step.destination for step in self._steps if step.kind == "move"]
        return sorted({tuple(path.split("/")[:-1]) for path in paths})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody who locks writes into them: also a workspace above or below this one, or of another user."""
        opened: list[tuple[int, int, int, str]] = []
        with ExitStack() as stack:
            for parts in self._directories():
                with suppress(ToolError), self._root.open_directory("/".join((".", *parts))) as (descriptor, place):
                    own = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=descriptor)  # a lock belongs to one open()
                    stack.callback(os.close, own)
                    status = os.fstat(own)
                    opened.append((status.st_dev, status.st_ino, own, place.shown))
            for _, _, descriptor, shown in sorted(opened):  # everybody in the same order
                lock(descriptor, shown)
            yield

    def sync(self) -> None:
        """The names in them are on disk."""
        for parts in self._directories():
            with suppress(ToolError), self._root.open_directory("/".join((".", *parts))) as (descriptor, _):
                sync_directory(descriptor)


def remove_empty(place: ResolvedPath) -> None:
    """Remove a directory that the change made, unless somebody has put something into it."""
    try:
        os.rmdir(place.name, dir_fd=place.dirfd)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise


def transfer(name: str, dirfd: int, kept: str, store: int) -> None:
    """Move into the store, on another file system by copying; never half."""
    try:
        os.rename(name, kept, src_dir_fd=dirfd, dst_dir_fd=store)
    except OSError as error:
        if error.errno not in tree_ops.NO_HARD_LINKS:
            raise
        part = f"{kept}.part"
        tree_ops.remove(part, store)
        tree_ops.clone(name, dirfd, part, store)
        os.rename(part, kept, src_dir_fd=store, dst_dir_fd=store)


def missing_directories(root: WorkspaceRoot, parents: Sequence[tuple[str, ...]]) -> list[ChangeStep]:
    """The steps that make the directories that are not there, from the top down."""
    missing: list[str] = []
    for parts in parents:
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            if path in missing:
                continue
            with root.locate(f"./{path}", follow=False, parents="imagine") as place:
                if place.status is None:
                    missing.append(path)
    return [ChangeStep(kind="directory", path=path) for path in missing]
