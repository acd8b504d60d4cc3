"""`adapter eval`: measures how often a model completes multi-step tasks."""

from __future__ import annotations

from typing import Annotated

import typer

from adapter.cli.eval_settings import EvalSettings
from adapter.cli.options import flag, takes_settings


@takes_settings(EvalSettings)
def evaluate(
    settings: EvalSettings, list_: Annotated[bool, flag("List the scenarios and exit.", "--list")] = False
) -> None:
    """Measure how often a model completes multi-step tasks.

    By default, the server's own tool calling is compared with this program's.
    """
    from adapter.cli.eval_runner import list_scenarios, run_eval

    raise typer.Exit(list_scenarios(settings) if list_ else run_eval(settings))
