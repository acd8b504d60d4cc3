"""`adapter eval`: how often a model finishes tasks of several steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.shared_options import CONSTRAINT_HELP, PROFILE_HELP

WHAT, HOW, RESULTS = "What is asked", "How the model writes", "Results"
"""The groups of `adapter eval --help`."""


def evaluate(
    base_url: Annotated[str | None, typer.Option(help="The model server; with --model, found automatically.")] = None,
    model: Annotated[str | None, typer.Option(help="A name on the server, or a GGUF file to load here.")] = None,
    way: Annotated[
        list[str] | None,
        typer.Option(
            help="bare (the server's own tools), ours (wrap) or agent; can be given again; bare and ours by default."
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=URL", help="One more way: a proxy in front of the same model; can be given again."),
    ] = None,
    suite: Annotated[
        str, typer.Option(help="built-in, or a .toml or .py file of yours.", rich_help_panel=WHAT)
    ] = "built-in",
    kind: Annotated[
        list[str] | None, typer.Option(help="Only scenarios of this kind; can be given again.", rich_help_panel=WHAT)
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Only this scenario; can be given again.", rich_help_panel=WHAT)
    ] = None,
    easy: Annotated[bool, typer.Option("--easy", help="Only those for tiny models.", rich_help_panel=WHAT)] = False,
    runs: Annotated[int, typer.Option(min=1, help="Of each scenario in each way.", rich_help_panel=WHAT)] = 1,
    time_limit: Annotated[
        float, typer.Option(min=1, help="Seconds after which what is known counts.", rich_help_panel=WHAT)
    ] = 3600.0,
    show: Annotated[bool, typer.Option("--list", help="Print the scenarios, and stop.", rich_help_panel=WHAT)] = False,
    temperature: Annotated[float, typer.Option(min=0, max=2, help="Of the model.", rich_help_panel=HOW)] = 0.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of an answer.", rich_help_panel=HOW)] = 512,
    seed: Annotated[int, typer.Option(min=0, help="Of the first run; each run has its own.", rich_help_panel=HOW)] = 1,
    constraint: Annotated[str, typer.Option(help=f"For ours: {CONSTRAINT_HELP}", rich_help_panel=HOW)] = "auto",
    profile: Annotated[str, typer.Option(help=f"For ours: {PROFILE_HELP}", rich_help_panel=HOW)] = "auto",
    guardrails: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="For ours and agent: for which faults an answer is asked again: on, off, all, or names.",
            rich_help_panel=HOW,
        ),
    ] = "on",
    retries: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="For ours and agent: at most so often; 2 and 3 by itself.", rich_help_panel=HOW
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Every run, as JSON lines; goes on with those there. By itself eval-MODEL.jsonl.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="The HTML page; else beside the results.", rich_help_panel=RESULTS)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the scores as a JSON object.", rich_help_panel=RESULTS)
    ] = False,
) -> None:
    """Measure how often a model finishes tasks of several steps, with the server's own tools and with ours.

    `adapter probe` chooses settings by single answers; this measures outcomes.
    """
    from adapter.cli.eval_runner import EvalSettings, list_scenarios, run_eval
    from adapter.evaluation.runner import Sampling

    settings = EvalSettings(
        base_url, model, tuple(way or ()), tuple(also or ()), suite, tuple(kind or ()), tuple(scenario or ()), easy,
        runs, time_limit, Sampling(temperature, max_tokens, seed), constraint, profile, guardrails,
        retries, results, page, as_json,
    )  # fmt: skip
    raise typer.Exit(list_scenarios(settings) if show else run_eval(settings))
