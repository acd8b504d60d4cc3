"""The result of locating one patch: resolved edits or a rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.editing.matching.strategies import TextMatch

RejectionKind: TypeAlias = Literal[
    "not found", "ambiguous", "already applied", "no change", "overlapping", "dependent", "breaks syntax", "invalid"
]
NEEDLESS: tuple[RejectionKind, ...] = ("already applied", "no change")
"""The kinds of rejection for patches that would not change the file."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected patch. ``message`` explains the reason and the next step to the model."""

    kind: RejectionKind
    message: str
    places: tuple[int, ...] = ()
    """The 0-based first lines of the matches, if there are several."""


@dataclass(frozen=True, slots=True)
class ResolvedEdit:
    """A match and the text that replaces it. ``notes`` describe the tolerated differences and the decisions."""

    match: TextMatch
    replacement: str
    notes: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    """The 0-based first lines of all matches, if a line number selected this one."""


Resolution: TypeAlias = tuple[ResolvedEdit, ...] | Rejection
"""At least one edit for a patch, or the patch's rejection."""
