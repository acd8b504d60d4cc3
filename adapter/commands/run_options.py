"""The options of `adapter run`, in the groups of its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adapter.commands.options import (
    APPROVE_HELP,
    CONSTRAINT_HELP,
    EDITS_HELP,
    ENCODING_HELP,
    EXCLUDE_HELP,
    GUIDE_HELP,
    INCLUDE_HELP,
    PROFILE_HELP,
    PROMPT_HELP,
    TEMPLATE_HELP,
)

MODEL, TOOLS, ALLOWED = "The model", "Its tools", "What may happen"
"""The groups of `adapter run --help`."""


def _model(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=MODEL)


def _tools(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=TOOLS)


def _allowed(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=ALLOWED)


Task = Annotated[str, typer.Argument(help="What to do, in plain words; - reads it from standard input.")]
Workspace = Annotated[Path, typer.Option("--workspace", "-w", metavar="DIR", help="The folder to work in.")]
MaxTurns = Annotated[int, typer.Option(min=1, metavar="N", help="Answers asked of the model.")]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a transcript to this .jsonl file.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A configuration instead of the user's config.toml.")]
BaseUrl = Annotated[str | None, _model("URL", "The model server; found by itself when left out.")]
Model = Annotated[str | None, _model("NAME", "A name on the server, or a GGUF file to load here.")]
Format = Annotated[
    str, _model("NAME", "How calls are written: auto (by template and name), from-template, or one by name.")
]
Style = Annotated[
    str, _model("NAME", "The system prompt: compact, args, full or trained; auto: the profile's, or compact.")
]
Prompts = Annotated[Path | None, _model("DIR", "A folder with prompt templates of your own.")]
Prompt = Annotated[str, _model("MODE", PROMPT_HELP)]
Template = Annotated[Path | None, _model("FILE", TEMPLATE_HELP)]
Constraint = Annotated[str, _model("MODE", CONSTRAINT_HELP)]
Guide = Annotated[str, _model("MODE", GUIDE_HELP)]
Guardrails = Annotated[
    str | None, _model("NAMES", "For which faults an answer is asked again: on, off, all, or names; by itself, on.")
]
Retries = Annotated[int | None, typer.Option(min=0, metavar="N", rich_help_panel=MODEL, help="At most so often; 3.")]
Profile = Annotated[str, _model("NAME", PROFILE_HELP)]
Images = Annotated[
    bool | None,
    typer.Option(
        "--images/--no-images", rich_help_panel=MODEL, help="The model sees images; by itself as the server says."
    ),
]
AgentModel = Annotated[
    list[str] | None, _model("TIER=NAME", "The model of a tier of sub-agents: strong=qwen3:32b; may be repeated.")
]
Dialect = Annotated[str, _tools("NAME", "The tool set.")]
Tools = Annotated[str | None, _tools("NAME", "With promptly: the base name of the tools files.")]
TrustTools = Annotated[
    bool,
    typer.Option(
        "--trust-tools", rich_help_panel=TOOLS, help="With promptly: use ./tools.json, which runs programs, unasked."
    ),
]
IncludeTools = Annotated[list[str] | None, _tools("TEXT", INCLUDE_HELP)]
ExcludeTools = Annotated[list[str] | None, _tools("TEXT", EXCLUDE_HELP)]
Mcp = Annotated[
    list[str] | None,
    _tools("SERVER", "An MCP server whose tools join: a command, a URL, or a .json file with mcpServers."),
]
McpTrusted = Annotated[
    list[str] | None,
    _tools("SERVER", "Likewise, a server whose word counts that a tool only reads: such tools run unasked."),
]
Skills = Annotated[list[Path] | None, _tools("DIR", "A folder with skills of yours; may be repeated.")]
Search = Annotated[
    str | None, _tools("NAME", "What web search asks: exa or brave (their keys: EXA_API_KEY, BRAVE_API_KEY).")
]
SearchUrl = Annotated[
    str | None, _tools("URL", "A web search service by its address, with {query} in it; or that of your searxng.")
]
Approve = Annotated[str, _allowed("MODE", APPROVE_HELP)]
Edits = Annotated[str, _allowed("MODE", EDITS_HELP)]
Encoding = Annotated[str | None, _allowed("NAME", ENCODING_HELP)]
Allow = Annotated[list[str] | None, _allowed("RULE", "Never ask for this: 'run_command(git status)'.")]
Ask = Annotated[list[str] | None, _allowed("RULE", "Always ask for this: 'write_file(docs/**)'.")]
Deny = Annotated[list[str] | None, _allowed("RULE", "Never do this, whatever else is allowed.")]
Sandbox = Annotated[
    str, _allowed("NAME", "What confines commands: auto, bwrap, landlock, none, or require one of them.")
]
SandboxNetwork = Annotated[
    bool, typer.Option("--sandbox-network", rich_help_panel=ALLOWED, help="Let commands use the network.")
]
SandboxRead = Annotated[list[Path] | None, _allowed("PATH", "Let commands read this, too.")]
SandboxWrite = Annotated[
    list[Path] | None, _allowed("PATH", "Let commands change this, too; WORKSPACE/.git to let them commit.")
]
