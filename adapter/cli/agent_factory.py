"""Puts an agent together for the command line: which server, which model, which help the model needs."""

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
from adapter.cli.console import Console, ConsoleQuestions
from adapter.cli.host_factory import build_subagent_runner
from adapter.cli.model_loading import LoadedModel, load_model
from adapter.cli.model_setup import ModelSetup, resolve_model_setup
from adapter.cli.observers import ObserverGroup
from adapter.cli.run_settings import RunSettings
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.conversation.guardrails.required_steps import parse_steps
from adapter.conversation.session import SessionLimits
from adapter.core.errors import UsageError
from adapter.dialects import get_dialect
from adapter.grammars.constraint_mode import parse_constraint_mode, validate_guide_mode
from adapter.integrations.mcp.client import INSTALL as INSTALL_MCP
from adapter.integrations.mcp.client import McpTools
from adapter.integrations.mcp.server_config import parse_servers
from adapter.parsing.formats import FROM_TEMPLATE, get_format
from adapter.prompting.prompt_templates import check_folder
from adapter.prompting.system_prompt import new_prompt_session, system_prompt
from adapter.tools.operations.permissions import Approver
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host import Host


@dataclass(frozen=True, slots=True)
class AgentBundle:
    """An agent, with the model and the workspace that it has. ``is_guided``: the words of a request choose what that
    model calls, and earlier messages would only mislead it."""

    agent: Agent
    chat: ChatClient
    workspace: Workspace
    is_guided: bool = False


def build_agent(
    stack: ExitStack,
    settings: RunSettings,
    whole: Workspace,
    witnesses: ObserverGroup,
    open_for: Callable[[Host], Workspace],
    task: str | None = None,
) -> AgentBundle:
    """An agent for ``task``, or for a chat, until ``stack`` is closed.

    ``open_for``: the workspace with what the model and the terminal give.
    Raises TransportError and UsageError with the next step.
    """
    console = witnesses.console
    template = stack.enter_context(TemplateWorker(load_chat_template(settings.template))) if settings.template else None
    served = stack.enter_context(load_model(settings.base_url, settings.model, console, template))
    help = resolve_model_setup(task, settings, served, console)
    limits = _limits(settings, help, served, console)
    host = _host(stack, settings, help, served, limits, witnesses, whole.host)
    workspace = stack.enter_context(open_for(host))
    agent = _agent(settings, help, served, workspace, limits, witnesses)
    return AgentBundle(agent, served.chat, workspace, help.is_guided)


def validate_settings(settings: RunSettings) -> None:
    """Raises UsageError for what the command line cannot mean."""
    parse_constraint_mode(settings.constraint)
    validate_prompt_mode(settings.prompt)
    validate_guide_mode(settings.guide)
    check_folder(settings.prompts)
    parse_guardrails(settings.config.guardrails.use)
    parse_steps(settings.config.steps.model_dump())
    profiles.validate_profile_name(settings.profile)
    if settings.format not in (None, FROM_TEMPLATE):
        get_format(settings.format)


def open_workspace(
    settings: RunSettings,
    own: Sequence[Tool],
    host: Host,
    *,
    ask: Approver | None = None,
    echo: Callable[[str], object] | None = None,
) -> Workspace:
    return Workspace(
        settings.workspace,
        settings.dialect,
        settings.approve,
        ask,
        state=settings.state,
        echo=echo,
        rules=settings.rules,
        tools=own,
        host=host,
        sandbox=settings.sandbox,
        edits=settings.edits,
        encoding=settings.encoding,
    )


def mcp_tools(stack: ExitStack, settings: RunSettings, console: Console) -> tuple[Tool, ...]:
    """The tools of the user's MCP servers, until ``stack`` is closed."""
    if not (settings.mcp or settings.trusted_mcp):
        return ()
    if find_spec("mcp") is None:
        raise UsageError(f"tools of MCP servers need the SDK: {INSTALL_MCP}")
    servers = [server for text in settings.mcp for server in parse_servers(text)]
    servers += [replace(server, trusted=True) for text in settings.trusted_mcp for server in parse_servers(text)]
    connected = stack.enter_context(McpTools(servers, get_dialect(settings.dialect).tools))
    for note in connected.notes:
        console.note(note)
    return connected.tools


def _limits(settings: RunSettings, help: ModelSetup, served: LoadedModel, console: Console) -> SessionLimits:
    """Of the run, with a model that is loaded by now."""
    with console.busy(f"loading {served.chat.model}"):
        context = served.chat.context()
    if context.advice:
        console.note(context.advice)
    calls = 1 if help.is_guided else None
    return SessionLimits(turns=settings.max_turns, tool_turns=calls, context_tokens=context.tokens)


def _host(
    stack: ExitStack,
    settings: RunSettings,
    help: ModelSetup,
    served: LoadedModel,
    limits: SessionLimits,
    witnesses: ObserverGroup,
    plain: Host,
) -> Host:
    """``plain``, and what the model and the terminal give besides."""
    inner = SessionLimits(context_tokens=limits.context_tokens)
    return replace(
        plain,
        questions=ConsoleQuestions(witnesses.console) if sys.stdin.isatty() else None,
        agents=build_subagent_runner(
            served.chat, help.format, settings.config, stack, inner, witnesses.tally, is_own=help.is_own
        ),
        media=frozenset({"image"}) if help.sees_images else frozenset(),
        events=witnesses.observe_nested,
    )


def _agent(
    settings: RunSettings,
    help: ModelSetup,
    served: LoadedModel,
    workspace: Workspace,
    limits: SessionLimits,
    witnesses: ObserverGroup,
) -> Agent:
    chat: ChatModel = served.chat
    if help.is_native:
        chat = NativeToolsChat(served.chat, workspace.tools, help.format)
    format = format_with_control_tokens(chat, help.format)
    system = system_prompt(
        settings.dialect,
        format,
        help.style,
        tools=workspace.tools,
        prompts=settings.prompts,
        session=new_prompt_session(),
    )
    return Agent(
        workspace,
        chat,
        format=help.format,
        system=None if help.is_guided else system,
        prompt="own" if help.is_own else "words",
        limits=limits,
        observe=witnesses.observe,
        constraint=help.constraint,
        guide="on" if help.is_guided else "off",
        guardrails=settings.config.guardrails.use,
        retries=settings.config.guardrails.retries,
        steps=settings.config.steps.model_dump(),
    )
