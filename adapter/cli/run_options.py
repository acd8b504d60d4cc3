"""The options of `adapter run` and `adapter chat`, in the groups of their help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from adapter.cli.shared_options import (
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
"""The groups of the help."""


def _model(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=MODEL)


def _tools(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=TOOLS)


def _allowed(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=ALLOWED)


Task = Annotated[
    str | None,
    typer.Argument(help="What to do, in plain words; - reads it from standard input; without one, a chat."),
]
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


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line of `adapter run` or `adapter chat` says, as it was typed."""

    workspace: Workspace = Path()
    max_turns: MaxTurns = 25
    config: Config = None
    base_url: BaseUrl = None
    model: Model = None
    format: Format = "auto"
    style: Style = "auto"
    prompts: Prompts = None
    prompt: Prompt = "auto"
    template: Template = None
    constraint: Constraint = "auto"
    guide: Guide = "auto"
    guardrails: Guardrails = None
    retries: Retries = None
    profile: Profile = "auto"
    images: Images = None
    agent_model: AgentModel = None
    dialect: Dialect = "blade"
    tools: Tools = None
    trust_tools: TrustTools = False
    include_tools: IncludeTools = None
    exclude_tools: ExcludeTools = None
    mcp: Mcp = None
    mcp_trusted: McpTrusted = None
    skills: Skills = None
    search: Search = None
    search_url: SearchUrl = None
    approve: Approve = "ask"
    edits: Edits = "auto"
    encoding: Encoding = None
    allow: Allow = None
    ask: Ask = None
    deny: Deny = None
    sandbox: Sandbox = "auto"
    sandbox_network: SandboxNetwork = False
    sandbox_read: SandboxRead = None
    sandbox_write: SandboxWrite = None


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """``command``, a function for Typer, with those options after its own, given to it as ``options``."""
    hints = get_type_hints(RunOptions, include_extras=True)

    @wraps(command)
    def called(**given: Any) -> None:
        of_run = {field.name: given.pop(field.name) for field in fields(RunOptions)}
        command(**given, options=RunOptions(**of_run))

    own = [each for each in signature(command, eval_str=True).parameters.values() if each.name != "options"]
    ours = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(RunOptions)
    ]
    called.__signature__ = Signature([*own, *ours])  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in (*own, *ours)}
    return called
