"""`adapter probe`: finds out how a model calls tools best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def probe(
    base_url: Annotated[str | None, typer.Option(help="The model server; with --model, found automatically.")] = None,
    model: Annotated[str | None, typer.Option(help="A name on the server, or a GGUF file to load here.")] = None,
    format: Annotated[
        str, typer.Option(help="How the model writes calls; auto goes by its template and name.")
    ] = "auto",
    output: Annotated[Path | None, typer.Option(help="Write the profile here; else where the others find it.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the HTML page here; else beside the profile.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Add each answer to this .jsonl file, without keys; `adapter view` shows it.")
    ] = None,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds after which what is known counts.")] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as a JSON object.")] = False,
) -> None:
    """Find out how a model calls tools best, and keep it as a profile for run, serve and wrap."""
    from adapter.cli.probe_runner import ProbeSettings, run_probe

    chosen = None if format == "auto" else format
    raise typer.Exit(run_probe(ProbeSettings(base_url, model, chosen, output, page, record, time_limit, as_json)))
