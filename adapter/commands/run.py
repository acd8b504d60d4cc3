"""`adapter run`, and what shows it at work: `adapter demo` with the model that `adapter setup` fetches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.commands import run_options as options
from adapter.commands.options import (
    dialect_named,
    edits_named,
    rules_of,
)
from adapter.values.errors import UsageError

if TYPE_CHECKING:
    from adapter.commands.config import Config


def run(
    task: options.Task,
    workspace: options.Workspace = Path(),
    max_turns: options.MaxTurns = 25,
    record: options.Record = None,
    config: options.Config = None,
    base_url: options.BaseUrl = None,
    model: options.Model = None,
    format: options.Format = "auto",
    style: options.Style = "auto",
    prompts: options.Prompts = None,
    prompt: options.Prompt = "auto",
    template: options.Template = None,
    constraint: options.Constraint = "auto",
    guide: options.Guide = "auto",
    guardrails: options.Guardrails = None,
    retries: options.Retries = None,
    profile: options.Profile = "auto",
    images: options.Images = None,
    agent_model: options.AgentModel = None,
    dialect: options.Dialect = "blade",
    tools: options.Tools = None,
    trust_tools: options.TrustTools = False,
    include_tools: options.IncludeTools = None,
    exclude_tools: options.ExcludeTools = None,
    mcp: options.Mcp = None,
    mcp_trusted: options.McpTrusted = None,
    skills: options.Skills = None,
    search: options.Search = None,
    search_url: options.SearchUrl = None,
    approve: options.Approve = "ask",
    edits: options.Edits = "auto",
    encoding: options.Encoding = None,
    allow: options.Allow = None,
    ask: options.Ask = None,
    deny: options.Deny = None,
    sandbox: options.Sandbox = "auto",
    sandbox_network: options.SandboxNetwork = False,
    sandbox_read: options.SandboxRead = None,
    sandbox_write: options.SandboxWrite = None,
) -> None:
    """Let a model work on a task in a folder."""
    from adapter.commands.runner import Settings, read_task, run_task
    from adapter.workspace.processes.sandbox import Sandbox

    if dialect == "promptly":
        from adapter.commands.trust import check_tools_file

        check_tools_file(tools, is_trusted=trust_tools)
    settings = Settings(
        workspace=workspace,
        base_url=base_url,
        model=model,
        approve=approve,
        edits=edits_named(edits),
        encoding=encoding,
        dialect=dialect_named(dialect, tools, include_tools, exclude_tools),
        format=None if format == "auto" else format,
        images=images,
        style=None if style == "auto" else style,
        prompts=str(prompts) if prompts else None,
        prompt=prompt,
        template=template,
        constraint=None if constraint == "auto" else constraint,
        guide=guide,
        profile=profile,
        max_turns=max_turns,
        config=_config(workspace, config, skills, search, search_url, agent_model, guardrails, retries),
        record=record,
        rules=rules_of(allow, ask, deny),
        mcp=tuple(mcp or ()),
        trusted_mcp=tuple(mcp_trusted or ()),
        sandbox=Sandbox(
            sandbox,  # type: ignore[arg-type]  # checked by itself
            sandbox_network,
            tuple(map(str, sandbox_read or ())),
            tuple(map(str, sandbox_write or ())),
        ),
    )
    raise typer.Exit(run_task(read_task() if task == "-" else task, settings))


def _config(
    workspace: Path,
    file: Path | None,
    skills: list[Path] | None,
    search: str | None,
    search_url: str | None,
    agent_models: list[str] | None,
    guardrails: str | None,
    retries: int | None,
) -> Config:
    """The user's configuration, with what the command line says in its place or besides."""
    from adapter.commands.config import GuardrailsTable, ModelTable, SearchTable, SkillsTable, read_config

    config = read_config(workspace, file)
    models = dict(config.models)
    for given in agent_models or ():
        name, separator, model = given.partition("=")
        if not (name and separator and model):
            raise UsageError(f"--agent-model is {given!r}; expected a tier and a model: strong=qwen3:32b")
        models[name] = ModelTable(model=model)
    folders = [*config.skills.folders, *(str(folder.absolute()) for folder in skills or ())]
    watched = GuardrailsTable(
        use=config.guardrails.use if guardrails is None else guardrails,
        retries=config.guardrails.retries if retries is None else retries,
    )
    changed = {"models": models, "skills": SkillsTable(folders=folders), "guardrails": watched}
    return config.model_copy(
        update=changed | ({"search": SearchTable(service=search, url=search_url)} if search or search_url else {})
    )


def demo(
    keep: Annotated[Path | None, typer.Option(help="Make the sample workspace here and leave it.")] = None,
) -> None:
    """Watch the built-in model edit a file of a sample workspace."""
    from adapter.commands.demonstration import run_demo

    raise typer.Exit(run_demo(keep))


def setup() -> None:
    """Fetch the built-in model, so that later runs need no network."""
    from adapter.commands.console import Console
    from adapter.commands.models import weights

    print(weights(Console()))
