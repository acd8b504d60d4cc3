"""How it came out to run a recording again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How running one transcript again came out. ``difference`` is empty when all was equal."""

    name: str
    turns: int
    calls: int
    results: int
    difference: str = ""
    is_unreadable: bool = False
    """The file is no recording, or cannot be run: ``difference`` says why."""

    @property
    def is_equal(self) -> bool:
        return not self.difference
