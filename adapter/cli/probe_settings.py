"""Settings of `adapter probe`: one field for each option."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from adapter.cli import options
from adapter.cli.options import option


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """The options of `adapter probe`."""

    base_url: options.BaseUrl = None
    model: options.Model = None
    format: Annotated[
        str, option("NAME", "Assume that the model writes this tool-call format; auto detects the format.")
    ] = "auto"
    output: Annotated[
        Path | None, option("FILE", "Write the profile to this file.", show_default="where `run` and `serve` find it")
    ] = None
    page: Annotated[
        Path | None, option("FILE", "Write the report to this HTML file.", show_default="next to the profile")
    ] = None
    share: Annotated[
        Path | None,
        option(
            "FILE",
            "Write the scores, without personal names and paths, to this .json file, so that you can publish them.",
        ),
    ] = None
    record: Annotated[
        Path | None,
        option("FILE", "Append every response to this .jsonl file for `adapter view`; API keys are removed."),
    ] = None
    time_limit: Annotated[float, option("SECONDS", "Stop after this time and use the results so far.", min=1)] = 600.0
    as_json: Annotated[bool, option("", "Print the results as a JSON object.", "--json")] = False
