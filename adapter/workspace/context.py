"""What the operations of one workspace work with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from adapter.tools.operations import Edits
from adapter.workspace.changes.history import History
from adapter.workspace.changes.read_tracker import ReadTracker
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.background import BackgroundCommands
from adapter.workspace.sandbox.sandbox import UNCONFINED, ActiveSandbox


@dataclass(frozen=True, slots=True)
class WorkspaceContext:
    """One workspace's open root, and what else its operations need, made once and closed with it.

    ``owner``: the desk of the session that this one is a part of; what belongs to that one is closed with it.
    """

    root: WorkspaceRoot
    history: History
    seen: ReadTracker = field(default_factory=ReadTracker)
    commands: BackgroundCommands = field(default_factory=BackgroundCommands)
    echo: Callable[[str], object] | None = None
    """Shows the user output as it comes, for tools that ask for it."""
    owner: WorkspaceContext | None = None
    confinement: ActiveSandbox = UNCONFINED
    encoding: str | None = None
    """Of files that are not UTF-8; None guesses it for each."""
    edits: Edits | None = None
    """How exact the user wants edits; None leaves it to each tool."""

    def close(self) -> None:
        self.commands.close()
        if self.owner is None or self.owner.root is not self.root:
            self.confinement.close()
            self.history.close()
            self.root.close()


@contextmanager
def open_context(
    root: str | os.PathLike[str],
    state: str | None = None,
    *,
    edits: Edits | None = None,
    encoding: str | None = None,
) -> Iterator[WorkspaceContext]:
    """The desk of the workspace in the directory ``root``. Raises UsageError when that is none."""
    with WorkspaceRoot(root) as opened:
        desk = WorkspaceContext(opened, History(opened, state), edits=edits, encoding=encoding)
        try:
            yield desk
        finally:
            desk.close()
