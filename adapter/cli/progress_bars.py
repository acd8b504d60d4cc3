"""Create progress bars on stderr."""

from __future__ import annotations

from rich.console import Console as Rich
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def create_progress_bar(*columns: ProgressColumn, transient: bool = False) -> Progress:
    """Return a progress bar on stderr. It is disabled if stderr is not a terminal."""
    stderr = Rich(stderr=True)
    return Progress(*columns, console=stderr, disable=not stderr.is_terminal, transient=transient)


def create_task_progress() -> Progress:
    """Return a progress bar that counts tasks, and disappears at the end."""
    text = TextColumn("{task.description}", markup=False)
    times = TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()
    return create_progress_bar(text, BarColumn(), MofNCompleteColumn(), *times, transient=True)
