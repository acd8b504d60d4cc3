"""`adapter probe`: finds the best tool-calling setup for a model."""

from __future__ import annotations

import typer

from adapter.cli.options import takes_settings
from adapter.cli.probe_settings import ProbeSettings


@takes_settings(ProbeSettings)
def probe(settings: ProbeSettings) -> None:
    """Find the best tool-calling setup for a model. The setup is saved as a profile for run, serve and wrap."""
    from adapter.cli.probe_runner import run_probe

    raise typer.Exit(run_probe(settings))
