"""Build the agent for a run or a chat, with its model, workspace, prompt, guardrails and observers."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from adapter.agent.agent import Agent
from adapter.agent.answer_reader import AgentEvent, ChatModel
from adapter.agent.prompt_setup import validate_prompt_mode
from adapter.agent.subagents import SubagentRunner
from adapter.backends import probe_profiles
from adapter.backends.chat_client import ChatClient, Chunk, find_endpoint
from adapter.backends.control_token_discovery import format_with_control_tokens
from adapter.backends.native_tools_chat import NativeToolsChat
from adapter.backends.template_files import TemplateWorker, load_chat_template
from adapter.cli.agent_console import Console, ConsoleQuestions
from adapter.cli.call_tally import CallTally
from adapter.cli.model_loading import load_model
from adapter.cli.model_setup import ModelSetup, resolve_model_setup
from adapter.cli.options import parse_auto
from adapter.cli.run_settings import RunSettings
from adapter.cli.user_config import Config, ModelTable
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.conversation.guardrails.required_steps import parse_steps
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import SessionLimits
from adapter.core.errors import UsageError
from adapter.core.text.redaction import Redactor
from adapter.grammars.constraint_mode import parse_constraint_mode, validate_guide_mode
from adapter.integrations.mcp.client import INSTALL as INSTALL_MCP
from adapter.integrations.mcp.client import McpTools
from adapter.integrations.mcp.server_config import parse_servers
from adapter.parsing.formats import FROM_TEMPLATE, get_format, guess_format
from adapter.prompting.prompt_rendering import check_folder
from adapter.prompting.system_prompt import create_prompt_session, system_prompt
from adapter.recording.session_recorder import SessionRecorder
from adapter.recording.transcript import TranscriptWriter
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host, HostEvent, NestedCall
from adapter.workspace.capabilities.http_search_and_docs import HttpDocs, HttpSearch


@dataclass(slots=True)
class ObserverGroup:
    """The observers of a run: the console, the tally and, if requested, the recording."""

    console: Console
    tally: CallTally
    recording: SessionRecorder | None = None

    def ask(self, approval: ApprovalRequest) -> bool | ApprovalDecision:
        ask = self.console.ask if self.recording is None else self.recording.wrap_approver(self.console.ask)
        return ask(approval)

    def observe(self, event: AgentEvent) -> None:
        self.console(event)
        self.tally(event)
        if self.recording is not None:
            self.recording(event)

    def observe_nested(self, event: HostEvent) -> None:
        if isinstance(event, NestedCall):
            self.tally(event.result)
        if self.recording is not None:
            self.recording.record_host_event(event)


@dataclass(frozen=True, slots=True)
class AgentBundle:
    """An agent with its model and workspace.

    If ``is_guided`` is True, the wording of each request selects the tool, and the model does not see earlier messages.
    """

    agent: Agent
    chat: ChatClient
    workspace: Workspace
    is_guided: bool = False


def open_workspace(stack: ExitStack, settings: RunSettings, console: Console) -> tuple[Workspace, ObserverGroup]:
    """Open the workspace with the tools of the user's MCP servers, but without the capabilities that need a model.

    Return the workspace and the observers, whose console asks the user for approvals. Closing ``stack`` closes the
    workspace.
    """
    host = _build_host(settings.config)
    tools = _connect_mcp_tools(stack, settings, console)
    observers = ObserverGroup(console, CallTally(ToolSet()))
    workspace = stack.enter_context(
        Workspace(
            settings.workspace,
            settings.toolset,
            settings.approve,
            observers.ask,
            state=settings.state,
            echo=console.echo,
            rules=settings.rules,
            tools=tools,
            host=host,
            sandbox=settings.sandbox_settings,
            edits=settings.edit_mode,
            encoding=settings.encoding,
        )
    )
    observers.tally.tools = workspace.known_tools
    return workspace, observers


def build_agent(
    stack: ExitStack, settings: RunSettings, base: Workspace, observers: ObserverGroup, task: str | None = None
) -> AgentBundle:
    """Build the agent for ``task``, or for a chat if ``task`` is None. Closing ``stack`` closes the agent.

    The agent works in a session of the workspace ``base``, with the capabilities that need a model. Raises
    TransportError and UsageError; their messages state the next step.
    """
    console = observers.console
    template = stack.enter_context(TemplateWorker(load_chat_template(settings.template))) if settings.template else None
    loaded = stack.enter_context(load_model(settings.base_url, settings.model, console, template))
    setup = resolve_model_setup(task, settings, loaded, console)
    with console.show_busy(f"loading {loaded.chat.model}"):
        window = loaded.chat.context()
    if window.advice:
        console.note(window.advice)
    subagents = _build_subagent_runner(stack, loaded.chat, setup, settings.config, window.tokens, observers.tally)
    host = replace(
        base.host,
        questions=ConsoleQuestions(console) if sys.stdin.isatty() else None,
        agents=subagents,
        media=frozenset({"image"}) if setup.sees_images else frozenset(),
        events=observers.observe_nested,
    )
    workspace = stack.enter_context(base.open_subsession(host=host))
    tool_turns = 1 if setup.is_guided else None
    limits = SessionLimits(turns=settings.max_turns, tool_turns=tool_turns, context_tokens=window.tokens)
    agent = _make_agent(settings, setup, loaded.chat, workspace, limits, observers.observe)
    return AgentBundle(agent, loaded.chat, workspace, setup.is_guided)


def validate_settings(settings: RunSettings) -> None:
    """Raise UsageError if an option is invalid, before the model is loaded."""
    _ = settings.config, settings.toolset, settings.rules, settings.edit_mode, settings.sandbox_settings
    parse_constraint_mode(parse_auto(settings.constraint))
    validate_prompt_mode(settings.prompt)
    validate_guide_mode(settings.guide)
    check_folder(settings.prompts_folder)
    parse_guardrails(settings.config.guardrails.use)
    parse_steps(settings.config.steps.model_dump())
    probe_profiles.validate_profile_name(settings.profile)
    if settings.format not in ("auto", FROM_TEMPLATE):
        get_format(settings.format)


def begin_recording(
    bundle: AgentBundle, write: Callable[[str], object], settings: RunSettings, task: str, *, is_chat: bool
) -> SessionRecorder:
    """Record all subsequent events of a run or a chat with ``write``. The header names the current model."""
    chat, workspace = bundle.chat, bundle.workspace
    writer = TranscriptWriter(
        write, Redactor(os.environ, _list_api_keys(workspace.host)), None if is_chat else time.time
    )
    recording = SessionRecorder(writer, Path(workspace.root), settings.record, is_chat=is_chat)
    recording.begin(bundle.agent, task, approve=settings.approve, model=chat.model, server=chat.endpoint.kind)
    return recording


def _connect_mcp_tools(stack: ExitStack, settings: RunSettings, console: Console) -> tuple[Tool, ...]:
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


def _make_agent(
    settings: RunSettings,
    setup: ModelSetup,
    client: ChatClient,
    workspace: Workspace,
    limits: SessionLimits,
    observe: Callable[[AgentEvent], None],
) -> Agent:
    chat: ChatModel = NativeToolsChat(client, workspace.tools, setup.format) if setup.is_native else client
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
        system=None if setup.is_guided or (setup.is_own and not settings.prompts_folder) else system,
        prompt="own" if setup.is_own else "words",
        limits=limits,
        observe=observe,
        constraint=setup.constraint,
        guide="on" if setup.is_guided else "off",
        guardrails=settings.config.guardrails.use,
        retries=settings.config.guardrails.retries,
        steps=settings.config.steps.model_dump(),
    )


def _build_host(config: Config) -> Host:
    """Build the host with the configured capabilities. Raises UsageError for an invalid URL. The host has no editor,
    because none is open in a terminal, and editor tools would cost tokens.
    """
    search, docs = config.search, config.docs
    return Host(
        editor=None,
        search=search.build_provider() if search else None,
        docs=HttpDocs(docs.find_url, docs.read_url, key_variable=docs.key_variable) if docs else "embedded",
        skill_folders=tuple(config.skills.folders),
    )


def _list_api_keys(host: Host) -> Iterator[str | None]:
    """Yield the API keys of the user's search and documentation services, so that recordings do not contain them."""
    for service in (host.search, host.docs):
        if isinstance(service, HttpSearch | HttpDocs) and service.key_variable:
            yield os.environ.get(service.key_variable)


def _build_subagent_runner(
    stack: ExitStack, chat: ChatClient, setup: ModelSetup, config: Config, context_tokens: int | None, tally: CallTally
) -> SubagentRunner:
    """Return a runner for sub-agents, which use ``chat`` or a model from the user's configuration."""
    formats = {name: one.format or guess_format(one.model or "") or setup.format for name, one in config.models.items()}
    return SubagentRunner(
        chat,
        format=setup.format,
        prompt="auto" if setup.is_own else "words",
        models={name: _LazyChat(one, chat, stack) for name, one in config.models.items()},
        formats=formats,
        limits=SessionLimits(context_tokens=context_tokens),
        observe=lambda _task, event: tally(event),
    )


class _LazyChat:
    """A configured model that is connected on first use. If its server is down, only sub-agents that use it fail."""

    def __init__(self, model: ModelTable, session: ChatClient, stack: ExitStack) -> None:
        self._model, self._session, self._stack = model, session, stack
        self._lock = threading.Lock()
        self._chat: ChatClient | None = None

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        with self._lock:
            if self._chat is None:
                url = self._model.base_url
                endpoint = find_endpoint(url) if url else self._session.endpoint
                self._chat = self._stack.enter_context(ChatClient(endpoint, self._model.model))
        return self._chat.stream(messages, stop=stop)
