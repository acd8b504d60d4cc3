"""Build the agent for a run or a chat, with its model, workspace, prompt, guardrails and observers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec

from adapter.agent.agent import Agent
from adapter.agent.prompt_setup import validate_prompt_mode
from adapter.agent.response_reader import ChatModel
from adapter.backends import profiles
from adapter.backends.chat_client import ChatClient
from adapter.backends.control_token_discovery import format_with_control_tokens
from adapter.backends.native_tools_chat import NativeToolsChat
from adapter.backends.template_files import TemplateWorker, load_chat_template
from adapter.cli.conversation_display import Console, ConsoleQuestions
from adapter.cli.host_factory import build_subagent_runner
from adapter.cli.model_loading import LoadedModel, load_model
from adapter.cli.model_setup import ModelSetup, resolve_model_setup
from adapter.cli.observer_group import ObserverGroup
from adapter.cli.options import parse_auto
from adapter.cli.run_settings import RunSettings
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.conversation.guardrails.required_steps import parse_steps
from adapter.conversation.session_steps import SessionLimits
from adapter.core.errors import UsageError
from adapter.grammars.constraint_mode import parse_constraint_mode, validate_guide_mode
from adapter.integrations.mcp.client import INSTALL as INSTALL_MCP
from adapter.integrations.mcp.client import McpTools
from adapter.integrations.mcp.server_config import parse_servers
from adapter.parsing.formats import FROM_TEMPLATE, get_format
from adapter.prompting.prompt_templates import check_folder
from adapter.prompting.system_prompt import create_prompt_session, system_prompt
from adapter.tools.operations.permissions import Approver
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host import Host


@dataclass(frozen=True, slots=True)
class AgentBundle:
    """An agent with its model and workspace.

    ``is_guided``: whether the wording of each request determines the tool. If so, the model does not see earlier
    messages.
    """

    agent: Agent
    chat: ChatClient
    workspace: Workspace
    is_guided: bool = False


def build_agent(
    stack: ExitStack,
    settings: RunSettings,
    base: Workspace,
    observers: ObserverGroup,
    open_with_host: Callable[[Host], Workspace],
    task: str | None = None,
) -> AgentBundle:
    """Build the agent for ``task``, or for a chat if ``task`` is None. Closing ``stack`` closes the agent.

    ``open_with_host``: called with the capabilities of the model and the terminal, to open the workspace again. Raises
    TransportError and UsageError; their messages state the next step.
    """
    console = observers.console
    template = stack.enter_context(TemplateWorker(load_chat_template(settings.template))) if settings.template else None
    loaded = stack.enter_context(load_model(settings.base_url, settings.model, console, template))
    setup = resolve_model_setup(task, settings, loaded, console)
    limits = _choose_session_limits(settings, setup, loaded, console)
    host = _extend_host(base.host, stack, settings, setup, loaded, limits, observers)
    workspace = stack.enter_context(open_with_host(host))
    agent = _make_agent(settings, setup, loaded, workspace, limits, observers)
    return AgentBundle(agent, loaded.chat, workspace, setup.is_guided)


def validate_settings(settings: RunSettings) -> None:
    """Raise UsageError if an option is invalid. This check needs no model."""
    _ = settings.config, settings.toolset, settings.rules, settings.edit_mode, settings.sandbox_settings
    parse_constraint_mode(parse_auto(settings.constraint))
    validate_prompt_mode(settings.prompt)
    validate_guide_mode(settings.guide)
    check_folder(settings.prompts_folder)
    parse_guardrails(settings.config.guardrails.use)
    parse_steps(settings.config.steps.model_dump())
    profiles.validate_profile_name(settings.profile)
    if settings.format not in ("auto", FROM_TEMPLATE):
        get_format(settings.format)


def open_workspace(
    settings: RunSettings,
    extra_tools: Sequence[Tool],
    host: Host,
    *,
    ask: Approver | None = None,
    echo: Callable[[str], object] | None = None,
) -> Workspace:
    return Workspace(
        settings.workspace,
        settings.toolset,
        settings.approve,
        ask,
        state=settings.state,
        echo=echo,
        rules=settings.rules,
        tools=extra_tools,
        host=host,
        sandbox=settings.sandbox_settings,
        edits=settings.edit_mode,
        encoding=settings.encoding,
    )


def connect_mcp_tools(stack: ExitStack, settings: RunSettings, console: Console) -> tuple[Tool, ...]:
    """Connect to the user's MCP servers, and return their tools. Closing ``stack`` closes the connections."""
    if not (settings.mcp or settings.mcp_trusted):
        return ()
    if find_spec("mcp") is None:
        raise UsageError(f"MCP servers need the MCP SDK: {INSTALL_MCP}")
    servers = [server for text in settings.mcp or () for server in parse_servers(text)]
    servers += [replace(server, trusted=True) for text in settings.mcp_trusted or () for server in parse_servers(text)]
    connected = stack.enter_context(McpTools(servers, settings.toolset.tools))
    for note in connected.notes:
        console.note(note)
    return connected.tools


def _choose_session_limits(
    settings: RunSettings, setup: ModelSetup, loaded: LoadedModel, console: Console
) -> SessionLimits:
    """Load the model, and return limits that keep the session within the model's context window."""
    with console.show_busy(f"loading {loaded.chat.model}"):
        context = loaded.chat.context()
    if context.advice:
        console.note(context.advice)
    tool_turns = 1 if setup.is_guided else None
    return SessionLimits(turns=settings.max_turns, tool_turns=tool_turns, context_tokens=context.tokens)


def _extend_host(
    base: Host,
    stack: ExitStack,
    settings: RunSettings,
    setup: ModelSetup,
    loaded: LoadedModel,
    limits: SessionLimits,
    observers: ObserverGroup,
) -> Host:
    """Return ``base`` with the capabilities of the model and the terminal: questions, sub-agents and images."""
    subagent_limits = SessionLimits(context_tokens=limits.context_tokens)
    return replace(
        base,
        questions=ConsoleQuestions(observers.console) if sys.stdin.isatty() else None,
        agents=build_subagent_runner(
            loaded.chat, setup.format, settings.config, stack, subagent_limits, observers.tally, is_own=setup.is_own
        ),
        media=frozenset({"image"}) if setup.sees_images else frozenset(),
        events=observers.observe_nested,
    )


def _make_agent(
    settings: RunSettings,
    setup: ModelSetup,
    loaded: LoadedModel,
    workspace: Workspace,
    limits: SessionLimits,
    observers: ObserverGroup,
) -> Agent:
    chat: ChatModel = loaded.chat
    if setup.is_native:
        chat = NativeToolsChat(loaded.chat, workspace.tools, setup.format)
    system = system_prompt(
        settings.toolset,
        format_with_control_tokens(chat, setup.format),
        setup.style,
        tools=workspace.tools,
        prompts=settings.prompts_folder,
        session=create_prompt_session(),
    )
    return Agent(
        workspace,
        chat,
        format=setup.format,
        system=None if setup.is_guided else system,
        prompt="own" if setup.is_own else "words",
        limits=limits,
        observe=observers.observe,
        constraint=setup.constraint,
        guide="on" if setup.is_guided else "off",
        guardrails=settings.config.guardrails.use,
        retries=settings.config.guardrails.retries,
        steps=settings.config.steps.model_dump(),
    )
