"""Puts an agent together for the command line: which server, which model, which help the model needs."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from adapter.agent.agent import Agent
from adapter.agent.answer import Chat
from adapter.agent.prompts import check_prompt, style_for
from adapter.commands.config import Config
from adapter.commands.console import Console, ConsoleQuestions
from adapter.commands.endings import Tally, ending
from adapter.commands.models import Served, serve
from adapter.commands.output import read_text
from adapter.commands.provided import host_of, keys_of, sub_agents
from adapter.commands.witnesses import Witnesses
from adapter.constraints.grounding import Evidence
from adapter.constraints.mentions import mentioned
from adapter.constraints.modes import Constraint, get_constraint
from adapter.conversation.guardrails.catalogue import chosen
from adapter.conversation.guardrails.steps import steps_of
from adapter.conversation.session import Limits
from adapter.dialects import Dialect, get_dialect
from adapter.formats import FROM_TEMPLATE, get_format, guess
from adapter.mcp.addresses import servers_of
from adapter.mcp.tools import INSTALL as INSTALL_MCP
from adapter.mcp.tools import McpTools
from adapter.operations import Edits, FileText, Glob, Paths, ReadText
from adapter.operations.approval import Approver, Rule
from adapter.probing import profiles
from adapter.prompting.choosing import check_guide
from adapter.prompting.prompt import new_session, system_prompt
from adapter.prompting.setups import Setup
from adapter.text.secrets import Secrets
from adapter.tools.definition import Tool, ToolSet
from adapter.transcripts.recording import Recording
from adapter.transcripts.transcript import Recorder
from adapter.upstream.guidance import GuidedChat, tools_for_small
from adapter.upstream.guides import Guides
from adapter.upstream.native import NativeChat
from adapter.upstream.own_prompts import Found
from adapter.upstream.template_files import TemplateProcess, read_template
from adapter.upstream.told_tokens import format_for
from adapter.values.errors import ToolError, UsageError
from adapter.workspace import Workspace
from adapter.workspace.hosted.host import Host
from adapter.workspace.processes.sandbox import Sandbox

MAX_KNOWN_FILES = 2_000
"""Paths of the workspace that help to understand the task."""


@dataclass(frozen=True, slots=True)
class Settings:
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
    """Who describes the tools; see `adapter.wire.own_prompt`."""
    template: Path | None = None
    constraint: str | None = None
    guide: str = "auto"
    """Which models are helped to choose; see `adapter.prompting.choosing`."""
    profile: str = "none"
    """Which profile counts where the others say nothing; see `adapter.probing.profiles.in_force`."""
    max_turns: int = 25
    images: bool | None = None
    """Whether the model sees images; by itself, as the server says."""
    config: Config = field(default_factory=Config)
    record: Path | None = None
    rules: tuple[Rule, ...] = ()
    mcp: tuple[str, ...] = ()
    """MCP servers, as `servers_of` takes them."""
    trusted_mcp: tuple[str, ...] = ()
    """Likewise; their word counts that a tool only reads."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    state: Path | None = None
    """Where the records of changes go; by itself, where `adapter undo` finds them."""


def read_task() -> str:
    """The task from standard input, which is then the terminal again, where there is one to answer questions at."""
    if sys.stdin.isatty():
        print("type the task, then Enter and Ctrl-D", file=sys.stderr)
    task = read_text("-")
    if not sys.stdin.isatty() and sys.stderr.isatty():
        with suppress(OSError):
            sys.stdin = Path("/dev/tty").open(encoding="utf-8", errors="replace")  # noqa: SIM115  # for the whole run
    return task


def run_task(task: str, settings: Settings) -> int:
    """Work on ``task``; the exit code. Raises TransportError and UsageError with the next step."""
    _check(task, settings)
    console = Console()
    with ExitStack() as stack:
        # What can be wrong comes first: nobody should wait for a model to load to hear of it.
        plain = replace(host_of(settings.config), editor=None)  # nobody looks at one here, and each tool costs tokens
        own = _mcp_tools(stack, settings, console)
        whole = stack.enter_context(_workspace(settings, own, plain))
        witnesses = Witnesses(console, Tally(whole.known_tools), _recording(stack, settings, whole))
        template = stack.enter_context(TemplateProcess(read_template(settings.template))) if settings.template else None
        served = stack.enter_context(serve(settings.base_url, settings.model, console, template))
        help = _help_for(task, settings, served, whole, console)
        limits = _limits(settings, help, served, console)
        host = _host(stack, settings, help, served, limits, witnesses, plain)
        workspace = stack.enter_context(
            _workspace(settings, own, host, ask=witnesses.ask, only=help.few, echo=console.echo)
        )
        if workspace.sandbox:
            console.note_sandbox(workspace.sandbox)
        agent = _agent(settings, help, served, workspace, limits, witnesses)
        if witnesses.recording is not None:
            server = served.chat.endpoint.kind
            witnesses.recording.begin(agent, task, approve=settings.approve, model=served.chat.model, server=server)
        for note in whole.recovered:
            console.note(note)
        try:
            done = agent.run(task)
        finally:
            if settings.state is None:
                _tell_changes(workspace, settings.workspace, console)
        code, last = ending(done, witnesses.tally)
        console.end(last, is_interrupted=done.reason == "interrupted")
    return code


def _check(task: str, settings: Settings) -> None:
    """Raises UsageError for what the command line cannot mean."""
    if not task.strip():
        raise UsageError("the task is empty; say in plain words what to do, or give - to read it from standard input")
    get_constraint(settings.constraint)
    check_prompt(settings.prompt)
    check_guide(settings.guide)
    chosen(settings.config.guardrails.use)
    steps_of(settings.config.steps.model_dump())
    profiles.check(settings.profile)
    if settings.format not in (None, FROM_TEMPLATE):
        get_format(settings.format)


def _workspace(
    settings: Settings,
    own: Sequence[Tool],
    host: Host,
    *,
    ask: Approver | None = None,
    only: ToolSet | None = None,
    echo: Callable[[str], object] | None = None,
) -> Workspace:
    return Workspace(
        settings.workspace,
        settings.dialect,
        settings.approve,
        ask,
        only,
        state=settings.state,
        echo=echo,
        rules=settings.rules,
        tools=own,
        host=host,
        sandbox=settings.sandbox,
        edits=settings.edits,
        encoding=settings.encoding,
    )


def _recording(stack: ExitStack, settings: Settings, workspace: Workspace) -> Recording | None:
    """The transcript that is asked for, until ``stack`` is closed."""
    if settings.record is None:
        return None
    file = stack.enter_context(_opened(settings.record))
    secrets = Secrets(os.environ, keys_of(workspace.host))
    return Recording(Recorder(file.write, secrets, time.time), Path(workspace.root), settings.record)


@dataclass(frozen=True, slots=True)
class _Help:
    """What a model needs to write calls.

    ``few``: the tools for one that is guided, which writes a call each time and is offered no others. ``is_own``: its
    own template describes the tools.
    """

    format: str
    style: str
    constraint: Constraint | None
    evidence: Evidence
    is_native: bool = False
    few: ToolSet | None = None
    is_own: bool = False
    sees_images: bool = False


def _help_for(task: str, settings: Settings, served: Served, whole: Workspace, console: Console) -> _Help:
    """What the command line says, else the model's profile, else what its name tells."""
    constraint, setup = get_constraint(settings.constraint), _setup(settings, served, console)
    if setup is not None and setup.constraint != "off":
        constraint = constraint or setup.constraint
    is_native = setup is not None and setup.native and settings.format is None and constraint is None
    is_small = constraint is None and not is_native and _is_small(settings, served)
    is_guided = constraint == "required" or is_small
    if is_small and not served.is_small:
        console.note(Guides(served.chat.endpoint, settings.guide).told(served.chat.model))
    evidence = gather(whole, task)
    if is_guided:
        return _Help("hermes", "small", None, evidence, few=tools_for_small(whole.tools, evidence))
    sees_images = _sees_images(settings, served)
    found = None if is_native else _own_prompt(settings, served, setup, console, sees_images)
    is_own = found is not None and found.own is not None
    known = setup.format if setup is not None and not setup.native else _recognised(settings, served, found, console)
    style = "native" if is_native or is_own else settings.style or (setup.style if setup else style_for(constraint))
    format = (None if settings.format == FROM_TEMPLATE else settings.format) or known or "hermes"
    return _Help(format, style, constraint, evidence, is_native, is_own=is_own, sees_images=sees_images)


def _recognised(settings: Settings, served: Served, found: Found | None, console: Console) -> str | None:
    """The format by the model's template, or by its name; a derived one is said."""
    wanted = settings.format == FROM_TEMPLATE
    if found is None and wanted:
        found = served.chat.own_prompt()
    told = found.recognised if found is not None else None
    if told is None:
        if wanted:
            console.note("format: not derived: the server tells no template; name one with --template")
        return guess(served.chat.model)
    told = told.from_template() if wanted else told
    if wanted or (settings.format is None and told.by == "template"):
        console.note(f"format: {told}")
    return told.format


def _is_small(settings: Settings, served: Served) -> bool:
    """Whether the model is too small to choose: the built-in one is, others where their server says so and no template
    or style describes the tools."""
    if settings.guide != "auto" or served.is_small:
        return settings.guide != "off"
    if settings.style or settings.prompts or Guides(served.chat.endpoint, "auto").of(served.chat.model) is None:
        return False
    return settings.prompt == "words" or served.chat.own_prompt().own is None


def _own_prompt(
    settings: Settings, served: Served, setup: Setup | None, console: Console, sees_images: bool
) -> Found | None:
    """How the model gets the prompt that its own template makes, which is said; None where words are wanted.

    Raises UsageError where only that will do and it cannot be had.
    """
    wants_words = settings.prompt == "words" or settings.style or settings.prompts or (setup and not setup.own)
    if settings.prompt == "auto" and (wants_words or sees_images):
        return None
    if wants_words:
        if settings.prompt == "own":
            raise UsageError("a style, prompts or a profile describe tools in words: leave them out with --prompt own")
        return None
    with console.busy(f"asking for the prompt of {served.chat.model}"):
        found = served.chat.own_prompt()
    console.note(f"prompt: {found.told}")
    if settings.prompt == "own" and found.own is None:
        raise UsageError(f"the model's own prompt cannot be had: {found.told}")
    return found


def _limits(settings: Settings, help: _Help, served: Served, console: Console) -> Limits:
    """Of the run, with a model that is loaded by now."""
    with console.busy(f"loading {served.chat.model}"):
        context = served.chat.context()
    if context.advice:
        console.note(context.advice)
    calls = None if help.few is None else 1
    return Limits(turns=settings.max_turns, call_turns=calls, context_tokens=context.tokens)


def _host(
    stack: ExitStack,
    settings: Settings,
    help: _Help,
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
    settings: Settings, help: _Help, served: Served, workspace: Workspace, limits: Limits, witnesses: Witnesses
) -> Agent:
    chat: Chat = served.chat
    if help.few is not None:
        chat = GuidedChat(served.chat, help.few, help.evidence)
    elif help.is_native:
        chat = NativeChat(served.chat, workspace.tools, help.format)
    offered = workspace.tools if help.few is None else help.few
    format = format_for(chat, help.format)
    return Agent(
        workspace,
        chat,
        format=help.format,
        system=system_prompt(
            settings.dialect, format, help.style, tools=offered, prompts=settings.prompts, session=new_session()
        ),
        prompt="own" if help.is_own else "words",
        limits=limits,
        observe=witnesses.observe,
        constraint=help.constraint,
        guide="off",
        guardrails=settings.config.guardrails.use if help.few is None else "off,repeated_call,cycle",
        retries=settings.config.guardrails.retries,
        steps=settings.config.steps.model_dump(),
    )


def _tell_changes(workspace: Workspace, root: Path, console: Console) -> None:
    made = len(workspace.changes())
    if made:
        changes = "1 change was" if made == 1 else f"{made} changes were"
        console.note(f"{changes} made; `adapter undo --all {shlex.quote(str(root))}` takes back all of this run")


def _mcp_tools(stack: ExitStack, settings: Settings, console: Console) -> tuple[Tool, ...]:
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


def _setup(settings: Settings, served: Served, console: Console) -> Setup | None:
    """What the model's profile says; the built-in model has help of its own, so that only a named one counts."""
    if settings.profile == "none" or (served.is_small and settings.profile == "auto"):
        return None
    model = profiles.model_of(served.chat.endpoint, served.chat.model)
    profile, notes = profiles.in_force(settings.profile, model)
    for note in notes:
        console.note(note)
    return profile.setup if profile else None


def _sees_images(settings: Settings, served: Served) -> bool:
    return bool(served.chat.sees_images()) if settings.images is None else settings.images


def gather(workspace: Workspace, task: str) -> Evidence:
    """What is known before the first answer: the workspace's files, and the text of those that the task names."""
    paths: tuple[str, ...] = ()
    contents: dict[str, str] = {}
    with suppress(ToolError):
        found = workspace.look(Glob("**/*", limit=MAX_KNOWN_FILES))
        paths = found.paths if isinstance(found, Paths) else ()
    for path in mentioned(paths, task):
        with suppress(ToolError):  # binary or unreadable: it offers no text to edit
            read = workspace.look(ReadText(path))
            contents[path] = read.text if isinstance(read, FileText) else ""
    return Evidence(task, paths, (), contents)


def _opened(path: Path) -> TextIO:
    """``path`` for writing a transcript, line by line."""
    try:
        return path.open("w", encoding="utf-8", newline="\n", buffering=1)
    except OSError as error:
        raise UsageError(
            f"cannot record to {path}: {error.strerror}. Name a file in a folder that is there."
        ) from error
