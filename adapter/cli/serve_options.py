"""The options of `adapter serve`, in the groups of its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adapter.cli.shared_options import (
    CONSTRAINT_HELP,
    GUIDE_HELP,
    POLICY_HELP,
    PROFILE_HELP,
    PROMPT_HELP,
    TEMPLATE_HELP,
)

SERVER, MODEL, CLIENTS, AGAIN, RUNNING = "The model server", "The model", "Clients", "Asking again", "Running it"
"""The groups of `adapter serve --help`."""

View = Annotated[
    bool, typer.Option("--view", help="Show what happens, while it does, on a page; its address is printed.")
]


def _server(metavar: str, help: str, **limits: float) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=SERVER, **limits)  # type: ignore[arg-type]


def _model(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=MODEL)


def _clients(metavar: str, help: str, **limits: float) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=CLIENTS, **limits)  # type: ignore[arg-type]


Record = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Add what the model is sent and writes to this .jsonl file, without keys."),
]

Upstream = Annotated[str | None, _server("URL", "The model server; found by itself when left out.")]
Patience = Annotated[float, _server("SECONDS", "That the model server may stay silent.", min=0.05)]
Retry = Annotated[float, _server("SECONDS", "In which one that loads or is busy is asked again.", min=0)]
MaxStreams = Annotated[int, _server("N", "Requests that it answers at a time; more wait for their turn.", min=1)]
MaxWaiting = Annotated[int, _server("N", "Requests that may wait; one more is refused (503).", min=0)]
PassAdmin = Annotated[
    bool,
    typer.Option("--pass-admin", rich_help_panel=SERVER, help="Pass on what manages the model server, too."),
]

Format = Annotated[
    str, _model("NAME", "How the model writes calls; auto goes by its template and name, from-template derives it.")
]
Style = Annotated[
    str, _model("NAME", "How the prompt describes tools: trained, full, compact, args, small or bare; auto decides.")
]
Prompts = Annotated[Path | None, _model("DIR", "A folder with prompt templates of your own.")]
Prompt = Annotated[str, _model("MODE", PROMPT_HELP)]
Template = Annotated[Path | None, _model("FILE", TEMPLATE_HELP)]
Policy = Annotated[str, _model("NAME", POLICY_HELP)]
Constraint = Annotated[str, _model("MODE", CONSTRAINT_HELP)]
Guide = Annotated[str, _model("MODE", GUIDE_HELP)]
MaxTools = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        rich_help_panel=MODEL,
        help="Of more tools describe those most like the request, and one that finds the others; all when left out.",
    ),
]
Profile = Annotated[str, _model("NAME", PROFILE_HELP)]
Grounded = Annotated[
    bool,
    typer.Option(
        "--grounded",
        rich_help_panel=MODEL,
        help="Enforced calls take paths, patterns and commands from the conversation.",
    ),
]


def _again(metavar: str, help: str, **limits: float) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=AGAIN, **limits)  # type: ignore[arg-type]


Guardrails = Annotated[
    str, _again("NAMES", "For which faults an answer is asked again: on, off, all, or names; -name leaves one out.")
]
Retries = Annotated[int, _again("N", "Answers of one request that are asked again; 0: none.", min=0)]
RetryTokens = Annotated[int, _again("N", "Of such answers, beyond which none is asked again.", min=0)]
RetrySeconds = Annotated[float, _again("SECONDS", "From a request on, after which none is asked again.", min=0)]

Host = Annotated[
    str, _clients("NAME", "Where to listen; with another address than this machine's, clients need a key.")
]
Port = Annotated[int, _clients("N", "0 takes a free one.", min=0, max=65535)]
ApiKey = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        rich_help_panel=CLIENTS,
        envvar="ADAPTER_API_KEY",
        help="What clients must send; made up when left out and --host is not this machine.",
    ),
]
AllowOrigin = Annotated[
    list[str] | None, _clients("URL", "Pages that may ask, http://localhost:3000 say; can be given again.")
]
StreamArguments = Annotated[
    bool,
    typer.Option("--stream-arguments", rich_help_panel=CLIENTS, help="Send a call's arguments while they are written."),
]
StoreFile = Annotated[
    Path | None, _clients("FILE", "Keep answers that clients come back to here, without keys; else in memory.")
]
KeepAlive = Annotated[float, _clients("SECONDS", "Of silence before a sign of life.", min=0.05)]
Stall = Annotated[float, _clients("SECONDS", "In which a client may take nothing.", min=0.05)]


def _running(metavar: str, help: str, **limits: float) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=RUNNING, **limits)  # type: ignore[arg-type]


Workers = Annotated[int, _running("N", "Processes that share the address, each with all the limits.", min=1, max=256)]
DrainSeconds = Annotated[float, _running("SECONDS", "In which answers may end after SIGTERM.", min=0)]
Metrics = Annotated[
    bool, typer.Option("--metrics", rich_help_panel=RUNNING, help="Answer /metrics for Prometheus (extra metrics).")
]
Otel = Annotated[
    bool | None,
    typer.Option(
        "--otel/--no-otel",
        rich_help_panel=RUNNING,
        help="Send traces where OTEL_* variables say (extra otel); by itself where they do.",
    ),
]
LogJson = Annotated[
    bool, typer.Option("--log-json", rich_help_panel=RUNNING, help="Say all in lines of JSON, and one a request.")
]
