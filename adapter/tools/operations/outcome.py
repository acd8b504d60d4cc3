"""The base class of all outcomes of operations."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an operation. ``notes``: tolerated, assumed and omitted details, one sentence each."""

    _: KW_ONLY
    notes: tuple[str, ...] = ()
