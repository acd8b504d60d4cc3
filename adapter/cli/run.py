"""`adapter run`, and what shows it at work: `adapter demo` with the model that `adapter setup` fetches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from adapter.cli import run_options
from adapter.cli.run_options import RunOptions, with_run_options
from adapter.core.errors import UsageError


@with_run_options
def run(task: run_options.Task = None, record: run_options.Record = None, *, options: RunOptions) -> None:
    """Let a model work on a task in a folder; without a task, talk with it (`adapter chat`)."""
    from adapter.cli.run_settings import settings_from
    from adapter.cli.task_runner import read_task, run_task

    if task is None:
        raise typer.Exit(_chat(options, record))
    settings = settings_from(options, record)
    raise typer.Exit(run_task(read_task() if task == "-" else task, settings))


def _chat(options: RunOptions, record: Path | None) -> int:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "give a task in plain words, or - to read it from standard input; there is no terminal to talk"
        )
    if record is not None:
        raise UsageError("--record takes a task: a chat is kept by itself, see `adapter chat --list`, and /save")
    from adapter.cli.chat_loop import start_chat
    from adapter.cli.run_settings import settings_from

    return start_chat(settings_from(options), None, is_continued=False)


def demo(
    keep: Annotated[Path | None, typer.Option(help="Make the sample workspace here and leave it.")] = None,
) -> None:
    """Watch the built-in model edit a file of a sample workspace."""
    from adapter.cli.demo import run_demo

    raise typer.Exit(run_demo(keep))


def setup() -> None:
    """Fetch the built-in model, so that later runs need no network."""
    from adapter.cli.console import Console
    from adapter.cli.model_loading import ensure_builtin_model

    print(ensure_builtin_model(Console()))
