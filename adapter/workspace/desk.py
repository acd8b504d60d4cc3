"""What the operations of one workspace work with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.workspace.background import BackgroundCommands
from adapter.workspace.gate import Root
from adapter.workspace.history import History
from adapter.workspace.sandbox import UNCONFINED, Confinement
from adapter.workspace.seen import Seen

if TYPE_CHECKING:
    from adapter.workspace.hosted import Hosted


@dataclass(frozen=True, slots=True)
class Desk:
    """One workspace's open root, and what else its operations need, made once and closed with it.

    ``hosted`` is None where there is no session. ``owner``: the desk of the session that this one
    is a part of; what belongs to that one is closed with it.
    """

    root: Root
    history: History
    seen: Seen = field(default_factory=Seen)
    commands: BackgroundCommands = field(default_factory=BackgroundCommands)
    echo: Callable[[str], object] | None = None
    """Shows the user output as it comes, for tools that ask for it."""
    hosted: Hosted | None = None
    owner: Desk | None = None
    confinement: Confinement = UNCONFINED

    def close(self) -> None:
        self.commands.close()
        if self.hosted is not None:
            self.hosted.close()
        if self.owner is None or self.owner.root is not self.root:
            self.confinement.close()
            self.history.close()
            self.root.close()


@contextmanager
def open_desk(root: str | os.PathLike[str], state: str | None = None) -> Iterator[Desk]:
    """The desk of the workspace in the directory ``root``. Raises UsageError when that is none."""
    with Root(root) as opened:
        desk = Desk(opened, History(opened, state))
        try:
            yield desk
        finally:
            desk.close()
