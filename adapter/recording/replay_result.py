"""Define the result of a replay."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The counts of one replay, and the first ``difference`` from the recording, or "" if everything was equal."""

    name: str
    turns: int
    calls: int
    results: int
    difference: str = ""
    is_unreadable: bool = False
    """True if the file is not a recording or cannot be replayed. ``difference`` then contains the reason."""

    @property
    def is_equal(self) -> bool:
        return not self.difference
