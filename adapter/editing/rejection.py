"""Why an edit was rejected, and the edits that were not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.editing.matching.strategies import TextMatch

RejectionKind: TypeAlias = Literal[
    "not found", "ambiguous", "already applied", "no change", "overlapping", "dependent", "breaks syntax", "invalid"
]


@dataclass(frozen=True, slots=True)
class Rejection:
    """``message`` is for the model: why nothing was changed, and what to send instead."""

    kind: RejectionKind
    message: str


@dataclass(frozen=True, slots=True)
class ResolvedEdit:
    """A match and the text that replaces it. ``notes`` say what was tolerated or decided."""

    match: TextMatch
    replacement: str
    notes: tuple[str, ...] = ()


Resolution: TypeAlias = tuple[ResolvedEdit, ...] | Rejection
"""The edits that one patch makes, at least one, or why it makes none."""
