"""Settings of `adapter eval`: one field for each option."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from adapter.cli import options
from adapter.cli.options import define_option_group, option

WAYS_HELP = "bare (the server's own), ours (this program's, through `adapter.wrap`) or agent (`adapter run`)"

_scenarios = define_option_group("Scenarios")
_sampling = define_option_group("Sampling and retries")
_results = define_option_group("Results")


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """The options of `adapter eval`."""

    base_url: options.BaseUrl = None
    model: options.Model = None
    ways: Annotated[
        list[str] | None,
        option(
            "NAME", f"Evaluate this tool-calling method: {WAYS_HELP}; repeatable.", "--way", show_default="bare, ours"
        ),
    ] = None
    also: Annotated[
        list[str] | None,
        option(
            "NAME=URL", "Also evaluate the proxy at URL, which serves the same model, and call it NAME; repeatable."
        ),
    ] = None
    suite: Annotated[str, _scenarios("FILE", "Run these scenarios: built-in, or those in a .toml or .py file.")] = (
        "built-in"
    )
    kinds: Annotated[
        list[str] | None,
        _scenarios("KIND", "Run only scenarios of this kind, as listed by `--list`; repeatable.", "--kind"),
    ] = None
    names: Annotated[
        list[str] | None, _scenarios("NAME", "Run only this scenario, as listed by `--list`; repeatable.", "--scenario")
    ] = None
    easy: Annotated[bool, _scenarios("", "Run only scenarios that suit very small models.", "--easy")] = False
    runs: Annotated[int, _scenarios("N", "Run each scenario N times with each method.", min=1)] = 1
    time_limit: Annotated[
        float, _scenarios("SECONDS", "Stop after this time and report the results so far.", min=1)
    ] = 3600.0
    temperature: Annotated[float, _sampling("X", "Let the model sample at this temperature.", min=0, max=2)] = 0.0
    max_tokens: Annotated[int, _sampling("N", "Limit each response of the model to N tokens.", min=1)] = 512
    seed: Annotated[
        int, _sampling("N", "Use this random seed for the first run of each scenario; each further run adds 1.", min=0)
    ] = 1
    constraint: Annotated[str, _sampling("MODE", f"{options.CONSTRAINT_HELP} Not for `--way bare`.")] = "auto"
    profile: Annotated[str, _sampling("NAME", f"{options.PROFILE_HELP} Only for `--way ours`.")] = "auto"
    guardrails: Annotated[str, _sampling("NAMES", f"{options.GUARDRAILS_HELP} Not for `--way bare`.")] = "on"
    retries: Annotated[
        int | None,
        _sampling("N", options.RETRIES_HELP, min=0, show_default="2 for `--way ours`, 3 for agent"),
    ] = None
    results: Annotated[
        Path | None,
        _results(
            "FILE",
            "Append every run to this .jsonl file, and skip runs that it already contains.",
            show_default="eval-MODEL.jsonl",
        ),
    ] = None
    page: Annotated[
        Path | None, _results("FILE", "Write the report to this HTML file.", show_default="next to the results")
    ] = None
    as_json: Annotated[bool, _results("", "Print the scores as a JSON object.", "--json")] = False
