"""What a command line says of a run or a chat, as the program takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from adapter.cli.config import Config, GuardrailsTable, ModelTable, SearchTable, SkillsTable, read_config
from adapter.cli.run_options import RunOptions
from adapter.cli.shared_options import parse_edit_mode, parse_rules, resolve_dialect
from adapter.core.errors import UsageError
from adapter.dialects import Dialect
from adapter.tools.operations import Edits
from adapter.tools.operations.permissions import PermissionRule
from adapter.workspace.sandbox.sandbox import SandboxSettings


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What the command line said. None is "by itself"."""

    workspace: Path
    base_url: str | None = None
    model: str | None = None
    approve: str = "ask"
    edits: Edits | None = None
    """How exact edits must be; by itself, as the dialect's document says."""
    encoding: str | None = None
    """Of files that are not UTF-8; by itself, guessed for each."""
    dialect: str | Dialect = "blade"
    format: str | None = None
    style: str | None = None
    prompts: str | None = None
    prompt: str = "auto"
    """Who describes the tools; see `adapter.protocols.template_prompt`."""
    template: Path | None = None
    constraint: str | None = None
    guide: str = "auto"
    """Which models are helped to choose; see `adapter.prompting.intent.assist`."""
    profile: str = "none"
    """Which profile counts where the others say nothing; see `adapter.backends.profiles.active_profile`."""
    max_turns: int = 25
    images: bool | None = None
    """Whether the model sees images; by itself, as the server says."""
    config: Config = field(default_factory=Config)
    record: Path | None = None
    rules: tuple[PermissionRule, ...] = ()
    mcp: tuple[str, ...] = ()
    """MCP servers, as `servers_of` takes them."""
    trusted_mcp: tuple[str, ...] = ()
    """Likewise; their word counts that a tool only reads."""
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    state: Path | None = None
    """Where the records of changes go; by itself, where `adapter undo` finds them."""


def settings_from(options: RunOptions, record: Path | None = None) -> RunSettings:
    """Raises UsageError for what the options cannot mean."""
    if options.dialect == "promptly":
        from adapter.cli.trust import confirm_tools_file

        confirm_tools_file(options.tools, is_trusted=options.trust_tools)
    return RunSettings(
        workspace=options.workspace,
        base_url=options.base_url,
        model=options.model,
        approve=options.approve,
        edits=parse_edit_mode(options.edits),
        encoding=options.encoding,
        dialect=resolve_dialect(options.dialect, options.tools, options.include_tools, options.exclude_tools),
        format=None if options.format == "auto" else options.format,
        images=options.images,
        style=None if options.style == "auto" else options.style,
        prompts=str(options.prompts) if options.prompts else None,
        prompt=options.prompt,
        template=options.template,
        constraint=None if options.constraint == "auto" else options.constraint,
        guide=options.guide,
        profile=options.profile,
        max_turns=options.max_turns,
        config=_config(options),
        record=record,
        rules=parse_rules(options.allow, options.ask, options.deny),
        mcp=tuple(options.mcp or ()),
        trusted_mcp=tuple(options.mcp_trusted or ()),
        sandbox=SandboxSettings(
            options.sandbox,  # type: ignore[arg-type]  # checked by itself
            options.sandbox_network,
            tuple(map(str, options.sandbox_read or ())),
            tuple(map(str, options.sandbox_write or ())),
        ),
    )


def _config(options: RunOptions) -> Config:
    """The user's configuration, with what the command line says in its place or besides."""
    config = read_config(options.workspace, options.config)
    models = dict(config.models)
    for given in options.agent_model or ():
        name, separator, model = given.partition("=")
        if not (name and separator and model):
            raise UsageError(f"--agent-model is {given!r}; expected a tier and a model: strong=qwen3:32b")
        models[name] = ModelTable(model=model)
    folders = [*config.skills.folders, *(str(folder.absolute()) for folder in options.skills or ())]
    watched = GuardrailsTable(
        use=config.guardrails.use if options.guardrails is None else options.guardrails,
        retries=config.guardrails.retries if options.retries is None else options.retries,
    )
    changed: dict[str, object] = {"models": models, "skills": SkillsTable(folders=folders), "guardrails": watched}
    if options.search or options.search_url:
        changed["search"] = SearchTable(service=options.search, url=options.search_url)
    return config.model_copy(update=changed)
