"""Settings of `adapter eval`: one field for each option."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adapter.cli import options
from adapter.cli.options import define_settings_group, setting

WAYS_HELP = "bare (the server's own), ours (this program's, through `adapter.wrap`) or agent (`adapter run`)"

_scenarios = define_settings_group("Scenarios")
_sampling = define_settings_group("Sampling and retries")
_results = define_settings_group("Results")


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """The options of `adapter eval`."""

    base_url: options.BaseUrl = None
    model: options.Model = None
    ways: list[str] | None = setting(
        None, "NAME", f"Evaluate this tool-calling method: {WAYS_HELP}; repeatable.", "--way", show_default="bare, ours"
    )
    also: list[str] | None = setting(
        None, "NAME=URL", "Also evaluate the proxy at URL, which serves the same model, and call it NAME; repeatable."
    )
    suite: str = _scenarios(
        "built-in", "FILE", "Run these scenarios: built-in, or the scenarios in a .toml or .py file."
    )
    kinds: list[str] | None = _scenarios(
        None, "KIND", "Run only scenarios of this kind, as listed by `--list`; repeatable.", "--kind"
    )
    names: list[str] | None = _scenarios(
        None, "NAME", "Run only this scenario, as listed by `--list`; repeatable.", "--scenario"
    )
    easy: bool = _scenarios(False, "", "Run only scenarios that suit very small models.", "--easy")
    runs: int = _scenarios(1, "N", "Run each scenario N times with each method.", min=1)
    time_limit: float = _scenarios(3600.0, "SECONDS", "Stop after this time and report the results so far.", min=1)
    temperature: float = _sampling(0.0, "X", "Let the model sample at this temperature.", min=0, max=2)
    max_tokens: int = _sampling(512, "N", "Limit each model answer to N tokens.", min=1)
    seed: int = _sampling(
        1, "N", "Use this random seed for the first run of each scenario; each further run adds 1.", min=0
    )
    constraint: str = _sampling("auto", "MODE", f"{options.CONSTRAINT_HELP} Not for `--way bare`.")
    profile: str = _sampling("auto", "NAME", f"{options.PROFILE_HELP} Only for `--way ours`.")
    guardrails: str = _sampling("on", "NAMES", f"{options.GUARDRAILS_HELP} Not for `--way bare`.")
    retries: int | None = _sampling(
        None, "N", options.RETRIES_HELP, min=0, show_default="2 for `--way ours`, 3 for agent"
    )
    results: Path | None = _results(
        None,
        "FILE",
        "Append every run to this .jsonl file, and skip runs that it already contains.",
        show_default="eval-MODEL.jsonl",
    )
    page: Path | None = _results(
        None, "FILE", "Write the report to this HTML file.", show_default="next to the results"
    )
    as_json: bool = _results(False, "", "Print the scores as a JSON object.", "--json")
