"""`adapter run`: lets a model work on a task in a folder."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.options import option, takes_settings
from adapter.cli.run_settings import RunSettings
from adapter.core.errors import UsageError


@takes_settings(RunSettings)
def run(
    settings: RunSettings,
    task: Annotated[
        str | None,
        typer.Argument(help="Work on this task; - reads it from standard input. Without a task, a chat starts."),
    ] = None,
    record: Annotated[Path | None, option("FILE", "Write a transcript of the run to this .jsonl file.")] = None,
) -> None:
    """Let a model work on a task in a folder."""
    if task is None:
        raise typer.Exit(_start_chat(settings, record))
    from adapter.cli.run_task import read_task, run_task

    raise typer.Exit(run_task(read_task() if task == "-" else task, replace(settings, record=record)))


def _start_chat(settings: RunSettings, record: Path | None) -> int:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "no task was given, and a chat cannot start because standard input or standard error is not a terminal; "
            "pass a task, or - to read one from standard input"
        )
    if record is not None:
        raise UsageError(
            "--record needs a task; add one. Chats are saved automatically (see `adapter chat --list` and /save)"
        )
    from adapter.cli.chat_loop import start_chat

    return start_chat(settings, None, is_continued=False)
