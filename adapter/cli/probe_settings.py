"""Settings of `adapter probe`: one field for each option."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adapter.cli import options
from adapter.cli.options import setting


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """The options of `adapter probe`."""

    base_url: options.BaseUrl = None
    model: options.Model = None
    format: str = setting(
        "auto", "NAME", "Assume that the model writes this tool-call format; auto detects the format."
    )
    output: Path | None = setting(
        None, "FILE", "Write the profile to this file.", show_default="where `run` and `serve` find it"
    )
    page: Path | None = setting(None, "FILE", "Write the report to this HTML file.", show_default="next to the profile")
    share: Path | None = setting(
        None,
        "FILE",
        "Write the scores, without personal names and paths, to this .json file, so that you can publish them.",
    )
    record: Path | None = setting(
        None, "FILE", "Append every answer to this .jsonl file for `adapter view`; API keys are removed."
    )
    time_limit: float = setting(600.0, "SECONDS", "Stop after this time and use the results so far.", min=1)
    as_json: bool = setting(False, "", "Print the results as a JSON object.", "--json")
