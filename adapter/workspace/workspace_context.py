"""State shared by a workspace's operations: its open root, history, background commands and sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from adapter.tools.operations import Edits
from adapter.workspace.changes.history import History
from adapter.workspace.changes.read_tracker import ReadTracker
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.background_commands import BackgroundCommands
from adapter.workspace.sandbox.sandbox import UNSANDBOXED, ActiveSandbox


@dataclass(frozen=True, slots=True)
class WorkspaceContext:
    """State shared by the operations of one workspace, and closed with the workspace.

    ``owner``: context of the parent session, which closes the objects that both sessions use; None if there is no
    parent.
    """

    root: WorkspaceRoot
    history: History
    read_tracker: ReadTracker = field(default_factory=ReadTracker)
    commands: BackgroundCommands = field(default_factory=BackgroundCommands)
    echo: Callable[[str], object] | None = None
    """Function that receives command output as it arrives, from tools that show it to the user."""
    owner: WorkspaceContext | None = None
    sandbox: ActiveSandbox = UNSANDBOXED
    encoding: str | None = None
    """Encoding of files that are not UTF-8; None detects it per file."""
    edits: Edits | None = None
    """Strictness of edits, "exact" or "tolerant"; None uses each tool's default."""

    def close(self) -> None:
        self.commands.close()
        if self.owner is None or self.owner.root is not self.root:
            self.sandbox.close()
            self.history.close()
            self.root.close()


@contextmanager
def open_context(
    root: str | os.PathLike[str], state: str | None = None, *, edits: Edits | None = None, encoding: str | None = None
) -> Iterator[WorkspaceContext]:
    """Open the workspace in the directory ``root``. Raises UsageError if that is not a directory."""
    with WorkspaceRoot(root) as opened:
        context = WorkspaceContext(opened, History(opened, state), edits=edits, encoding=encoding)
        try:
            yield context
        finally:
            context.close()
