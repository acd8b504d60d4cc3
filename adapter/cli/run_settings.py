"""Settings of `adapter run` and `adapter chat`: a field for each option, and the objects built from the options."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.cli import options
from adapter.cli.options import define_settings_group, parse_edit_mode, parse_rules, resolve_dialect, setting
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.cli.user_config import Config
    from adapter.dialects import Dialect
    from adapter.tools.operations import Edits
    from adapter.tools.operations.permissions import PermissionRule
    from adapter.workspace.sandbox.sandbox import SandboxSettings

_model = define_settings_group("Model and prompt", is_advanced=True)
_tools = define_settings_group("Tools", is_advanced=True)
_permissions = define_settings_group("Permissions and sandbox", is_advanced=True)


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run or a chat. Every field except ``record`` and ``state`` is an option of both commands."""

    workspace: options.Workspace = Path()
    base_url: options.BaseUrl = None
    model: options.Model = None
    approve: options.Approve = "ask"
    allow: options.Allow = None
    dialect: options.DialectOption = "blade"
    mcp: list[str] | None = setting(
        None, "SERVER", "Add the tools of this MCP server: a command, a URL or a JSON file; repeatable."
    )
    format: options.Format = "auto"
    max_turns: int = setting(25, "N", "Let the model respond at most N times to each message.", min=1)

    style: str = _model("auto", "NAME", options.STYLE_HELP)
    prompts: Path | None = _model(None, "DIR", options.PROMPTS_HELP)
    prompt: str = _model("auto", "MODE", options.PROMPT_HELP)
    template: Path | None = _model(None, "FILE", options.TEMPLATE_HELP)
    constraint: str = _model("auto", "MODE", options.CONSTRAINT_HELP)
    guide: str = _model("auto", "MODE", options.GUIDE_HELP)
    guardrails: str | None = _model(None, "NAMES", options.GUARDRAILS_HELP, show_default="on")
    retries: int | None = _model(None, "N", options.RETRIES_HELP, min=0, show_default="3")
    profile: str = _model("auto", "NAME", options.PROFILE_HELP)
    images: bool | None = _model(
        None, "", "Send images to the model.", "--images/--no-images", show_default="only if the model accepts them"
    )
    agent_model: list[str] | None = _model(
        None, "TIER=NAME", "Use this model for a tier of sub-agents, such as strong=qwen3:32b; repeatable."
    )
    config_file: Path | None = _model(
        None, "FILE", "Read this configuration file instead of the user's config.toml.", "--config"
    )
    tools: str | None = _tools(None, "NAME", options.TOOLS_HELP)
    trust_tools: bool = _tools(
        False, "", "Use ./tools.json without asking, although its tools run programs.", "--trust-tools"
    )
    include_tools: list[str] | None = _tools(None, "TEXT", options.INCLUDE_HELP)
    exclude_tools: list[str] | None = _tools(None, "TEXT", options.EXCLUDE_HELP)
    mcp_trusted: list[str] | None = _tools(
        None,
        "SERVER",
        "Add the tools of this MCP server, and run its read-only tools without approval; repeatable.",
    )
    skills: list[Path] | None = _tools(None, "DIR", "Also offer the skills in this folder; repeatable.")
    search: str | None = _tools(
        None,
        "NAME",
        "Search the web with this service: exa (needs EXA_API_KEY), brave (needs BRAVE_API_KEY) or searxng (needs "
        "--search-url).",
    )
    search_url: str | None = _tools(
        None,
        "URL",
        "Search the web with this SearXNG server, or with any search URL that contains the placeholder {query}.",
    )
    edits: str = _permissions("auto", "MODE", options.EDITS_HELP)
    encoding: str | None = _permissions(None, "NAME", options.ENCODING_HELP, show_default="detected")
    ask: options.Ask = None
    deny: options.Deny = None
    sandbox: str = _permissions(
        "auto",
        "NAME",
        "Run commands in this sandbox: auto (the best available), bwrap, landlock, require (fail if there is none) "
        "or none.",
    )
    sandbox_network: bool = _permissions(False, "", "Let commands in the sandbox use the network.", "--sandbox-network")
    sandbox_read: list[Path] | None = _permissions(
        None, "PATH", "Let commands in the sandbox also read this path; repeatable."
    )
    sandbox_write: list[Path] | None = _permissions(
        None,
        "PATH",
        "Let commands in the sandbox also write this path, such as WORKSPACE/.git for commits; repeatable.",
    )

    record: Path | None = None
    """File to write the transcript to."""
    state: Path | None = None
    """Folder for the journal of changes. By default, it is the folder that `adapter undo` reads."""

    @cached_property
    def toolset(self) -> Dialect:
        """The dialect with its selected tools. A tools file in the current folder needs the user's approval."""
        text = None
        if self.dialect == "promptly":
            from adapter.cli.tools_file_approval import confirm_tools_file

            text = confirm_tools_file(self.tools, is_trusted=self.trust_tools)
        return resolve_dialect(self.dialect, self.tools, self.include_tools, self.exclude_tools, text)

    @cached_property
    def config(self) -> Config:
        """The user's configuration. Options override or extend it."""
        from adapter.cli.user_config import GuardrailsTable, ModelTable, SearchTable, SkillsTable, read_config

        config = read_config(self.workspace, self.config_file)
        models = dict(config.models)
        for value in self.agent_model or ():
            tier, separator, model = value.partition("=")
            if not (tier and separator and model):
                raise UsageError(f"--agent-model is {value!r}; expected TIER=NAME, e.g. strong=qwen3:32b")
            models[tier] = ModelTable(model=model)
        folders = [*config.skills.folders, *(str(folder.absolute()) for folder in self.skills or ())]
        guardrails = GuardrailsTable(
            use=config.guardrails.use if self.guardrails is None else self.guardrails,
            retries=config.guardrails.retries if self.retries is None else self.retries,
        )
        changes: dict[str, object] = {
            "models": models,
            "skills": SkillsTable(folders=folders),
            "guardrails": guardrails,
        }
        if self.search or self.search_url:
            changes["search"] = SearchTable(service=self.search, url=self.search_url)
        return config.model_copy(update=changes)

    @cached_property
    def rules(self) -> tuple[PermissionRule, ...]:
        return parse_rules(self.allow, self.ask, self.deny)

    @property
    def edit_mode(self) -> Edits | None:
        return parse_edit_mode(self.edits)

    @property
    def prompts_folder(self) -> str | None:
        return str(self.prompts) if self.prompts else None

    @property
    def sandbox_settings(self) -> SandboxSettings:
        from adapter.workspace.sandbox.sandbox import SandboxSettings

        return SandboxSettings(
            self.sandbox,  # type: ignore[arg-type]  # SandboxSettings checks the level
            self.sandbox_network,
            tuple(map(str, self.sandbox_read or ())),
            tuple(map(str, self.sandbox_write or ())),
        )
