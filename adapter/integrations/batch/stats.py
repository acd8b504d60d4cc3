"""Count the rows, calls, repairs and errors of a batch run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.core.events import JsonObject


@dataclass(slots=True)
class BatchStats:
    """Counts for a batch of rows."""

    rows: int = 0
    calls: int = 0
    fixed: int = 0
    """Number of rows with repairs."""
    invalid: int = 0
    """Number of invalid calls."""
    errors: int = 0
    """Number of rows that could not be parsed."""
    first_error: str = ""
    """The reason for the first error, or ""."""
    formats: dict[str, int] = field(default_factory=dict)
    """Number of rows with calls, by the format of the first call."""
    fixes: dict[str, int] = field(default_factory=dict)
    """Number of uses of each repair."""
    size: int = 0
    """Size of the input files, in bytes."""

    def add(self, columns: JsonObject) -> None:
        """Count a row, given its result columns."""
        self.rows += 1
        self.calls += len(columns["tool_calls"] or ())
        self.fixed += bool(columns["fixes"])
        self.invalid += len(columns["invalid"] or ())
        self.errors += columns["error"] is not None
        self.first_error = self.first_error or columns["error"] or ""
        self.fixes = _sum(self.fixes, Counter(columns["fixes"] or ()))
        self.formats = _sum(self.formats, {columns["format"]: 1} if columns["format"] else {})

    def __add__(self, other: BatchStats) -> BatchStats:
        return BatchStats(
            self.rows + other.rows,
            self.calls + other.calls,
            self.fixed + other.fixed,
            self.invalid + other.invalid,
            self.errors + other.errors,
            self.first_error or other.first_error,
            _sum(self.formats, other.formats),
            _sum(self.fixes, other.fixes),
            self.size + other.size,
        )


def _sum(first: dict[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return first | {name: first.get(name, 0) + number for name, number in second.items()}
