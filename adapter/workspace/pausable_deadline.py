"""Deadlines that pause while the program waits for the user's answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from adapter.core.errors import ToolError
from adapter.tools.operations import FetchPage, Operation, RunCommand


class Deadline:
    """A deadline that expires after ``seconds`` of wall-clock time, not counting pauses."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds
        self._paused_since: float | None = None

    @property
    def remaining(self) -> float:
        """Remaining seconds; zero or less after the deadline has expired."""
        return self._ends - (time.monotonic() if self._paused_since is None else self._paused_since)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Pause the deadline during the ``with`` body. Pauses must not be nested or started in several threads."""
        began = self._paused_since = time.monotonic()
        try:
            yield
        finally:
            self._ends += time.monotonic() - began
            self._paused_since = None


def with_deadline(operation: Operation, deadline: Deadline | None) -> Operation:
    """Return the operation with its timeout limited to the remaining time of its caller."""
    if deadline is not None and isinstance(operation, RunCommand | FetchPage):
        return replace(operation, timeout_s=max(min(operation.timeout_s, deadline.remaining), 0.1))
    return operation


def limit_timeout(timeout_s: float, max_s: float) -> tuple[float, tuple[str, ...]]:
    """Return the timeout, at most ``max_s``, and a note if it was reduced. Raises ToolError unless it is positive."""
    if timeout_s <= 0:
        raise ToolError(f"the timeout must be more than 0 and at most {max_s:g} seconds, got {timeout_s:g}")
    return min(timeout_s, max_s), () if timeout_s <= max_s else (f"the timeout was reduced to {max_s:g} s",)
