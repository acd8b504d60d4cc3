"""`adapter parse`: extracts tool calls from a model's raw text."""

from __future__ import annotations

from typing import Annotated

import typer

from adapter.cli import options, parse_output
from adapter.cli.options import flag, option


def parse(
    file: Annotated[str, typer.Argument(help="Read the model's text from this file; - means standard input.")] = "-",
    format: options.Format = "auto",
    template: options.FormatTemplate = None,
    dialect: Annotated[
        str, option("NAME", "Match calls to the tools of this dialect: blade, maki, promptly, proto, proxyai or none.")
    ] = "blade",
    tools: Annotated[
        str | None,
        option(
            "FILE",
            "Match calls to the tool definitions in this JSON file. With `--dialect promptly`, FILE is the "
            "name, without .json, of the files to read instead of tools.json.",
        ),
    ] = None,
    include_tools: options.IncludeTools = None,
    exclude_tools: options.ExcludeTools = None,
    finish_reason: Annotated[
        str | None,
        option(
            "NAME", "Treat the text as an answer with this finish reason: length if it was cut off, otherwise stop."
        ),
    ] = None,
    policy: options.PolicyOption = "safe",
    exchange: Annotated[
        int | None,
        option("N", "Parse exchange N, counted from 1, of a recording that `adapter serve --record` wrote.", min=1),
    ] = None,
    explain: Annotated[bool, flag("Show how each part of the text was parsed, and why.", "--explain")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Extract tool calls from a model's raw text."""
    parse_output.print_parse_result(**locals())  # all parameters
