"""Totals of a batch run."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.core.events import JsonObject


@dataclass(slots=True)
class BatchStats:
    """Counts of ``rows``, ``calls`` and ``invalid`` calls, of rows with repairs (``fixed``), and of rows that could not
    be parsed (``errors``). ``first_error``: the reason for the first error."""

    rows: int = 0
    calls: int = 0
    fixed: int = 0
    invalid: int = 0
    errors: int = 0
    first_error: str = ""

    def add(self, columns: JsonObject) -> None:
        """Count a row, given its result columns."""
        self.rows += 1
        self.calls += len(columns["tool_calls"] or ())
        self.fixed += bool(columns["fixes"])
        self.invalid += len(columns["invalid"] or ())
        self.errors += columns["error"] is not None
        self.first_error = self.first_error or columns["error"] or ""

    def __add__(self, other: BatchStats) -> BatchStats:
        return BatchStats(
            self.rows + other.rows,
            self.calls + other.calls,
            self.fixed + other.fixed,
            self.invalid + other.invalid,
            self.errors + other.errors,
            self.first_error or other.first_error,
        )
