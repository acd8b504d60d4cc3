"""Puts an agent together for the command line: which server, which model, which help the model needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec

from adapter.agent.agent import Agent
from adapter.agent.prompt_setup import check_prompt
from adapter.agent.response_reader import Chat
from adapter.backends import profiles
from adapter.backends.chat_client import ChatClient
from adapter.backends.control_token_discovery import format_for
from adapter.backends.native_tools_chat import NativeChat
from adapter.backends.template_files import TemplateProcess, read_template
from adapter.cli.console import Console, ConsoleQuestions
from adapter.cli.host_factory import sub_agents
from adapter.cli.model_loading import Served, serve
from adapter.cli.model_setup import Help, help_for
from adapter.cli.observers import Witnesses
from adapter.cli.run_settings import Settings
from adapter.conversation.guardrails.registry import chosen
from adapter.conversation.guardrails.required_steps import steps_of
from adapter.conversation.session import Limits
from adapter.core.errors import UsageError
from adapter.dialects import get_dialect
from adapter.grammars.constraint_mode import get_constraint, validate_guide_mode
from adapter.integrations.mcp.client import INSTALL as INSTALL_MCP
from adapter.integrations.mcp.client import McpTools
from adapter.integrations.mcp.server_config import servers_of
from adapter.parsing.formats import FROM_TEMPLATE, get_format
from adapter.prompting.prompt_templates import check_folder
from adapter.prompting.system_prompt import new_session, system_prompt
from adapter.tools.operations.permissions import Approver
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host import Host


@dataclass(frozen=True, slots=True)
class Assembled:
    """An agent, with the model and the workspace that it has. ``is_guided``: the words of a request choose what that
    model calls, and earlier messages would only mislead it."""

    agent: Agent
    chat: ChatClient
    workspace: Workspace
    is_guided: bool = False


def assemble(
    stack: ExitStack,
    settings: Settings,
    whole: Workspace,
    witnesses: Witnesses,
    open_for: Callable[[Host], Workspace],
    task: str | None = None,
) -> Assembled:
    """An agent for ``task``, or for a chat, until ``stack`` is closed.

    ``open_for``: the workspace with what the model and the terminal give.
    Raises TransportError and UsageError with the next step.
    """
    console = witnesses.console
    template = stack.enter_context(TemplateProcess(read_template(settings.template))) if settings.template else None
    served = stack.enter_context(serve(settings.base_url, settings.model, console, template))
    help = help_for(task, settings, served, console)
    limits = _limits(settings, help, served, console)
    host = _host(stack, settings, help, served, limits, witnesses, whole.host)
    workspace = stack.enter_context(open_for(host))
    agent = _agent(settings, help, served, workspace, limits, witnesses)
    return Assembled(agent, served.chat, workspace, help.is_guided)


def check(settings: Settings) -> None:
    """Raises UsageError for what the command line cannot mean."""
    get_constraint(settings.constraint)
    check_prompt(settings.prompt)
    validate_guide_mode(settings.guide)
    check_folder(settings.prompts)
    chosen(settings.config.guardrails.use)
    steps_of(settings.config.steps.model_dump())
    profiles.check(settings.profile)
    if settings.format not in (None, FROM_TEMPLATE):
        get_format(settings.format)


def open_workspace(
    settings: Settings,
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


def mcp_tools(stack: ExitStack, settings: Settings, console: Console) -> tuple[Tool, ...]:
    """The tools of the user's MCP servers, until ``stack`` is closed."""
    if not (settings.mcp or settings.trusted_mcp):
        return ()
    if find_spec("mcp") is None:
        raise UsageError(f"tools of MCP servers need the SDK: {INSTALL_MCP}")
    servers = [server for text in settings.mcp for server in servers_of(text)]
    servers += [replace(server, trusted=True) for text in settings.trusted_mcp for server in servers_of(text)]
    connected = stack.enter_context(McpTools(servers, get_dialect(settings.dialect).tools))
    for note in connected.notes:
        console.note(note)
    return connected.tools


def _limits(settings: Settings, help: Help, served: Served, console: Console) -> Limits:
    """Of the run, with a model that is loaded by now."""
    with console.busy(f"loading {served.chat.model}"):
        context = served.chat.context()
    if context.advice:
        console.note(context.advice)
    calls = 1 if help.is_guided else None
    return Limits(turns=settings.max_turns, call_turns=calls, context_tokens=context.tokens)


def _host(
    stack: ExitStack,
    settings: Settings,
    help: Help,
    served: Served,
    limits: Limits,
    witnesses: Witnesses,
    plain: Host,
) -> Host:
    """``plain``, and what the model and the terminal give besides."""
    inner = Limits(context_tokens=limits.context_tokens)
    return replace(
        plain,
        questions=ConsoleQuestions(witnesses.console) if sys.stdin.isatty() else None,
        agents=sub_agents(served.chat, help.format, settings.config, stack, inner, witnesses.tally, is_own=help.is_own),
        media=frozenset({"image"}) if help.sees_images else frozenset(),
        events=witnesses.observe_inner,
    )


def _agent(
    settings: Settings, help: Help, served: Served, workspace: Workspace, limits: Limits, witnesses: Witnesses
) -> Agent:
    chat: Chat = served.chat
    if help.is_native:
        chat = NativeChat(served.chat, workspace.tools, help.format)
    format = format_for(chat, help.format)
    system = system_prompt(
        settings.dialect, format, help.style, tools=workspace.tools, prompts=settings.prompts, session=new_session()
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
