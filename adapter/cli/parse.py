"""`adapter parse`: tool calls out of a model's raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.cli import parse_output
from adapter.cli.shared_options import POLICY_HELP, ExcludeTools, IncludeTools


def parse(
    file: Annotated[str, typer.Argument(help="A file with the model's text, or - for standard input.")] = "-",
    format: Annotated[
        str, typer.Option(help="The format to read; auto recognises any; from-template derives it from --template.")
    ] = "auto",
    template: Annotated[Path | None, typer.Option(help="With --format from-template: the chat template.")] = None,
    dialect: Annotated[str, typer.Option(help="The tools that may be called; none for no matching.")] = "blade",
    tools: Annotated[
        str | None,
        typer.Option(help="JSON file with tool definitions, instead of a dialect; with promptly, its base name."),
    ] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    finish_reason: Annotated[str | None, typer.Option(help="What the server said: stop, length, ...")] = None,
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "safe",
    exchange: Annotated[
        int | None,
        typer.Option(
            help="The file is one of `adapter serve --record`: read the answer of this exchange, from 1.", min=1
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each piece of the text was taken for, and why.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read tool calls out of a model's raw text."""
    parse_output.print_parse_result(
        file,
        format=format,
        template=template,
        dialect=dialect,
        tools=tools,
        include_tools=include_tools,
        exclude_tools=exclude_tools,
        finish_reason=finish_reason,
        policy=policy,
        exchange=exchange,
        explain=explain,
        as_json=as_json,
    )
