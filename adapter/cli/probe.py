"""`adapter probe`: finds the best tool-calling setup for a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from adapter.cli import options
from adapter.cli.options import option_group, takes_settings

_option = option_group()


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """The options of `adapter probe`."""

    base_url: options.BaseUrl = None
    model: options.Model = None
    format: Annotated[str, _option("NAME", "Tool-call format of the model, or auto (detected).")] = "auto"
    output: Annotated[
        Path | None, _option("FILE", "Write the profile to this file.", show_default="where `run` and `serve` find it")
    ] = None
    page: Annotated[
        Path | None, _option("FILE", "Write the report to this HTML file.", show_default="next to the profile")
    ] = None
    record: Annotated[
        Path | None, _option("FILE", "Append every response to this .jsonl file, without keys, for `adapter view`.")
    ] = None
    time_limit: Annotated[float, _option("SECONDS", "Stop after this long and use partial results.", min=1)] = 600.0
    as_json: Annotated[bool, _option("", "Print the results as a JSON object.", "--json")] = False


@takes_settings(ProbeSettings)
def probe(settings: ProbeSettings) -> None:
    """Find the best tool-calling setup for a model. It is saved as a profile for run, serve and wrap."""
    from adapter.cli.probe_runner import run_probe

    raise typer.Exit(run_probe(settings))
