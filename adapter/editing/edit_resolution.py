"""Result of locating one patch: resolved edits or a rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.editing.matching.strategies import TextMatch

RejectionKind: TypeAlias = Literal[
    "not found", "ambiguous", "already applied", "no change", "overlapping", "dependent", "breaks syntax", "invalid"
]
NEEDLESS: tuple[RejectionKind, ...] = ("already applied", "no change")
"""Kinds of rejection for patches that would change nothing."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected patch. ``message`` explains the reason and the next step to the model."""

    kind: RejectionKind
    message: str
    places: tuple[int, ...] = ()
    """First lines (0-based) of the matches, if there are several."""


@dataclass(frozen=True, slots=True)
class ResolvedEdit:
    """A match and its replacement. ``notes`` describe the tolerated differences and the decisions."""

    match: TextMatch
    replacement: str
    notes: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    """First lines (0-based) of all matches, if a line number selected this one."""


Resolution: TypeAlias = tuple[ResolvedEdit, ...] | Rejection
"""The edits of a patch, at least one, or its rejection."""
