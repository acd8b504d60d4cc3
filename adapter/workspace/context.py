"""What the operations of one workspace work with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from adapter.tools.operations import Edits
from adapter.workspace.changes.history import History
from adapter.workspace.changes.read_tracker import Seen
from adapter.workspace.paths.resolver import Root
from adapter.workspace.sandbox.background import BackgroundCommands
from adapter.workspace.sandbox.sandbox import UNCONFINED, Confinement


@dataclass(frozen=True, slots=True)
class Desk:
    """One workspace's open root, and what else its operations need, made once and closed with it.

    ``owner``: the desk of the session that this one is a part of; what belongs to that one is closed with it.
    """

    root: Root
    history: History
    seen: Seen = field(default_factory=Seen)
    commands: BackgroundCommands = field(default_factory=BackgroundCommands)
    echo: Callable[[str], object] | None = None
    """Shows the user output as it comes, for tools that ask for it."""
    owner: Desk | None = None
    confinement: Confinement = UNCONFINED
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
def open_desk(
    root: str | os.PathLike[str],
    state: str | None = None,
    *,
    edits: Edits | None = None,
    encoding: str | None = None,
) -> Iterator[Desk]:
    """The desk of the workspace in the directory ``root``. Raises UsageError when that is none."""
    with Root(root) as opened:
        desk = Desk(opened, History(opened, state), edits=edits, encoding=encoding)
        try:
            yield desk
        finally:
            desk.close()
