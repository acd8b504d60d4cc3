"""`adapter run`, and what shows it at work: `adapter demo` with the model that `adapter setup` fetches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.commands.options import (
    ConstraintOption,
    ExcludeTools,
    IncludeTools,
    ProfileOption,
    dialect_named,
    rules_of,
)
from adapter.errors import UsageError

if TYPE_CHECKING:
    from adapter.commands.config import Config


def run(
    task: Annotated[str, typer.Argument(help="What to do, in plain words.")],
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="The folder to work in.")] = Path(),
    base_url: Annotated[str | None, typer.Option(help="The model server; found by itself when left out.")] = None,
    model: Annotated[str | None, typer.Option(help="A name on the server, or a GGUF file to load here.")] = None,
    approve: Annotated[str, typer.Option(help="What may happen unasked: ask, auto-edit or yolo.")] = "ask",
    dialect: Annotated[str, typer.Option(help="The tool set.")] = "blade",
    tools: Annotated[str | None, typer.Option(help="With promptly: the base name of the tools files.")] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    format: Annotated[str, typer.Option(help="How calls are written; auto goes by the model's name.")] = "auto",
    images: Annotated[
        bool | None, typer.Option("--images/--no-images", help="The model sees images; by itself as the server says.")
    ] = None,
    style: Annotated[
        str, typer.Option(help="The system prompt: compact, full or trained; auto: the profile's, or compact.")
    ] = "auto",
    prompts: Annotated[Path | None, typer.Option(help="A folder with prompt templates of your own.")] = None,
    constraint: ConstraintOption = "auto",
    profile: ProfileOption = "auto",
    max_turns: Annotated[int, typer.Option(min=1, help="Answers asked of the model.")] = 25,
    record: Annotated[Path | None, typer.Option(help="Write a transcript to this .jsonl file.")] = None,
    config: Annotated[Path | None, typer.Option(help="A configuration instead of the user's config.toml.")] = None,
    skills: Annotated[list[Path] | None, typer.Option(help="A folder with skills of yours; may be repeated.")] = None,
    search_url: Annotated[str | None, typer.Option(help="A web search service, with {query} in its address.")] = None,
    agent_model: Annotated[
        list[str] | None, typer.Option(help="The model of a tier of sub-agents: strong=qwen3:32b; may be repeated.")
    ] = None,
    allow: Annotated[list[str] | None, typer.Option(help="Never ask for this: 'run_command(git status)'.")] = None,
    ask: Annotated[list[str] | None, typer.Option(help="Always ask for this: 'write_file(docs/**)'.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never do this, whatever else is allowed.")] = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option(help="An MCP server whose tools join: a command, a URL, or a .json file with mcpServers."),
    ] = None,
    sandbox: Annotated[
        str, typer.Option(help="What confines commands: auto, bwrap, landlock, none, or require one of them.")
    ] = "auto",
    sandbox_network: Annotated[bool, typer.Option("--sandbox-network", help="Let commands use the network.")] = False,
    sandbox_read: Annotated[list[Path] | None, typer.Option(help="Let commands read this, too.")] = None,
    sandbox_write: Annotated[
        list[Path] | None, typer.Option(help="Let commands change this, too; WORKSPACE/.git to let them commit.")
    ] = None,
) -> None:
    """Let a model work on a task in a folder."""
    from adapter.commands.runner import Settings, run_task
    from adapter.workspace.sandbox import Sandbox

    settings = Settings(
        workspace=workspace,
        base_url=base_url,
        model=model,
        approve=approve,
        dialect=dialect_named(dialect, tools, include_tools, exclude_tools),
        format=None if format == "auto" else format,
        images=images,
        style=None if style == "auto" else style,
        prompts=str(prompts) if prompts else None,
        constraint=None if constraint == "auto" else constraint,
        profile=profile,
        max_turns=max_turns,
        config=_config(workspace, config, skills, search_url, agent_model),
        record=record,
        rules=rules_of(allow, ask, deny),
        mcp=tuple(mcp or ()),
        sandbox=Sandbox(
            sandbox,  # type: ignore[arg-type]  # checked by itself
            sandbox_network,
            tuple(map(str, sandbox_read or ())),
            tuple(map(str, sandbox_write or ())),
        ),
    )
    raise typer.Exit(run_task(task, settings))


def _config(
    workspace: Path,
    file: Path | None,
    skills: list[Path] | None,
    search_url: str | None,
    agent_models: list[str] | None,
) -> Config:
    """The user's configuration, with what the command line says in its place or besides."""
    from adapter.commands.config import ModelTable, SearchTable, SkillsTable, read_config

    config = read_config(workspace, file)
    models = dict(config.models)
    for given in agent_models or ():
        name, separator, model = given.partition("=")
        if not (name and separator and model):
            raise UsageError(f"--agent-model is {given!r}; expected a tier and a model: strong=qwen3:32b")
        models[name] = ModelTable(model=model)
    folders = [*config.skills.folders, *(str(folder.absolute()) for folder in skills or ())]
    changed = {"models": models, "skills": SkillsTable(folders=folders)}
    return config.model_copy(update=changed | ({"search": SearchTable(url=search_url)} if search_url else {}))


def demo(
    keep: Annotated[Path | None, typer.Option(help="Make the sample workspace here and leave it.")] = None,
) -> None:
    """Watch the built-in model edit a file of a sample workspace."""
    from adapter.commands.runner import run_demo

    raise typer.Exit(run_demo(keep))


def setup() -> None:
    """Fetch the built-in model, so that later runs need no network."""
    from adapter.commands.console import Console
    from adapter.commands.runner import weights

    print(weights(Console()))
