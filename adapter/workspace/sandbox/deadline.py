"""Time given to something, which stands still while a person is thinking."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from adapter.tools.operations import FetchPage, Operation, RunCommand


class Deadline:
    """Runs out after ``seconds`` of wall time, pauses not counted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds
        self._paused_since: float | None = None

    @property
    def remaining(self) -> float:
        """Seconds left; not positive when the time is up."""
        return self._ends - (time.monotonic() if self._paused_since is None else self._paused_since)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Not to be nested, and one thread at a time: there is one person to wait for."""
        began = self._paused_since = time.monotonic()
        try:
            yield
        finally:
            self._ends += time.monotonic() - began
            self._paused_since = None


def with_deadline(operation: Operation, clock: Deadline | None) -> Operation:
    """The operation with no more time than its caller has."""
    if clock is not None and isinstance(operation, RunCommand | FetchPage):
        return replace(operation, timeout_s=max(min(operation.timeout_s, clock.remaining), 0.1))
    return operation
