"""Sub-agents: the agent loop on the same workspace, with a separate conversation, tool set and transcript.

A sub-agent has the session's permissions, and requests approval from the session's user. It gets only its task, and
returns only its last message.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rapidfuzz import fuzz, process

from adapter.agent.agent import Agent
from adapter.agent.answer_reader import AgentEvent, ChatModel
from adapter.agent.prompt_setup import make_template_chat
from adapter.backends.chat_client import Chunk
from adapter.backends.control_token_discovery import format_with_control_tokens
from adapter.conversation.session_steps import REASONS, Finished, SessionLimits
from adapter.core import package_data
from adapter.core.callback_checks import require_sync, wrap_tool_observer
from adapter.core.errors import ToolError, TransportError, UsageError
from adapter.prompting.escaping import unescape_control_tokens
from adapter.prompting.system_prompt import Style, create_prompt_session, system_prompt
from adapter.tools.operations import AgentReport, RunSubagent
from adapter.tools.operations.permissions import Approver
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import HostEvent


class SubagentRecorder(Protocol):
    """Records a sub-agent's run, as `adapter.recording.session_recorder.SessionRecorder` does."""

    def begin(self, agent: Agent, task: str, *, approve: str) -> None: ...
    def wrap_approver(self, ask: Approver) -> Approver: ...
    def record_host_event(self, event: HostEvent) -> None: ...
    def __call__(self, event: AgentEvent, /) -> None: ...


MAX_AT_ONCE = 8
"""Maximum number of concurrent sub-agents in a session."""
MAX_TOTAL = 50
"""Maximum number of sub-agents in a session, to stop models that delegate in a loop."""


@dataclass(frozen=True, slots=True)
class AgentKind:
    """A kind of sub-agent. ``instructions`` extend the system prompt; a ``read_only`` kind cannot change anything."""

    name: str
    summary: str
    instructions: str = ""
    read_only: bool = False
    aliases: tuple[str, ...] = ()


def list_built_in_kinds() -> tuple[AgentKind, ...]:
    """Return the kinds ``research`` and ``general``. ProxyAI's names for them are aliases."""
    texts = package_data.find_data_directory("prompts") / "agents"
    research, general = ((texts / f"{name}.md").read_text("utf-8") for name in ("research", "general"))
    looks, all_tools = "looks, changes nothing, and reports", "may use all tools"
    return (
        AgentKind("research", looks, research, read_only=True, aliases=("explore", "plan")),
        AgentKind("general", all_tools, general, aliases=("general-purpose",)),
    )


class SubagentRunner:
    """Runs sub-agents on ``chat``. Pass the runner to a session as ``Host(agents=...)``.

    Args:
        kinds: Kinds in addition to the built-in ones.
        models: The chat for each model or tier that a call can name. For any other name, ``chat`` is used, with a
            note.
        style, prompt: As in `Agent`.
        formats: Formats of these models, if they differ from ``format``.
        max_depth: Maximum nesting of sub-agents; 1 allows no sub-agent inside another.
        record: Called with a sub-agent's number (from 1) and folder; returns its recorder.
        observe: Called with a sub-agent's task and each of its events.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        format: str = "hermes",
        style: Style | None = None,
        prompt: str = "auto",
        kinds: Sequence[AgentKind] = (),
        models: Mapping[str, ChatModel] | None = None,
        formats: Mapping[str, str] | None = None,
        limits: SessionLimits | None = None,
        max_depth: int = 1,
        max_at_once: int = MAX_AT_ONCE,
        max_total: int = MAX_TOTAL,
        record: Callable[[int, Path], SubagentRecorder] | None = None,
        observe: Callable[[RunSubagent, AgentEvent], None] | None = None,
    ) -> None:
        self._chat, self._format, self._style, self._prompt = chat, format, style, prompt
        self._kinds = {kind.name: kind for kind in (*list_built_in_kinds(), *kinds)}
        self._models, self._formats = dict(models or {}), dict(formats or {})
        self._limits = limits or SessionLimits()
        self._max_depth, self._max_total = max_depth, max_total
        if record is not None:
            require_sync(record, "record")
        self._record = record
        self._observe = None if observe is None else wrap_tool_observer(observe, "the observer")
        self._slots = threading.BoundedSemaphore(max_at_once)
        self._numbers = itertools.count(1)
        self._depth = 1

    @property
    def kinds(self) -> Mapping[str, str]:
        return {kind.name: kind.summary for kind in self._kinds.values()}

    def run(self, task: RunSubagent, workspace: Workspace) -> AgentReport:
        """Run a sub-agent on ``task``, and return its report. Raises ToolError if it cannot start or its model
        fails."""
        kind = self._find_kind(task.kind)
        chat, notes = self._select_chat(task.model)
        number = self._count()
        began = time.monotonic()
        tokens: list[int] = []
        recording = None if self._record is None else self._record(number, Path(workspace.root, task.cwd or ""))
        events = None if recording is None else recording.record_host_event
        host = replace(workspace.host, agents=self._create_nested_runner(), questions=None, editor=None, events=events)
        with self._slots, workspace.open_subsession(host=host, read_only=kind.read_only, cwd=task.cwd) as part:
            try:
                agent = self._create_agent(part, chat, kind, self._formats.get(task.model or "", self._format))
            except (TransportError, UsageError) as error:  # the server cannot be reached, or has no chat template
                raise _build_failure(error) from error
            if recording is not None:
                part.wrap_approver(recording.wrap_approver)
                recording.begin(agent, task.prompt, approve=part.mode)

            def observe(event: AgentEvent) -> None:
                if isinstance(event, Chunk):
                    tokens.extend(_list_tokens(event))
                if recording is not None:
                    recording(event)
                if self._observe is not None:
                    self._observe(task, event)

            agent.set_observer(observe)
            try:
                done = agent.run(task.prompt)
            except TransportError as error:
                raise _build_failure(error) from error
        if done.reason == "interrupted":
            raise KeyboardInterrupt
        seconds = time.monotonic() - began
        total = sum(tokens) if tokens else None
        return AgentReport(kind.name, task.description, task.prompt, _get_output(done), seconds, total, notes=notes)

    def _create_agent(self, part: Workspace, chat: ChatModel, kind: AgentKind, format: str) -> Agent:
        known = format_with_control_tokens(chat, format)
        own = make_template_chat(chat, part.tools, known, "words" if self._style else self._prompt)
        style = self._style or ("native" if own else "compact")
        system = system_prompt(part.dialect, known, style, tools=part.tools, session=create_prompt_session())
        system = "\n".join(text for text in (system, kind.instructions) if text)
        prompt = "own" if own else "words"
        return Agent(part, chat, format=format, system=system, prompt=prompt, limits=self._limits)

    def _find_kind(self, name: str) -> AgentKind:
        normalized = name.strip().casefold()
        for kind in self._kinds.values():
            if normalized in (kind.name.casefold(), *(alias.casefold() for alias in kind.aliases)):
                return kind
        near = process.extractOne(name, list(self._kinds), scorer=fuzz.WRatio, score_cutoff=60)
        suggestion = f" (did you mean {near[0]!r}?)" if near else ""
        known = ", ".join(self._kinds)
        raise ToolError(
            f"unknown kind of sub-agent {name!r}; the kinds are: {known}{suggestion}. No sub-agent was started."
        )

    def _select_chat(self, model: str | None) -> tuple[ChatModel, tuple[str, ...]]:
        if model is None or model in self._models:
            return self._models.get(model or "", self._chat), ()
        return self._chat, (f"unknown model {model!r}: the session's model was used",)

    def _count(self) -> int:
        number = next(self._numbers)
        if number > self._max_total:
            raise ToolError(f"this session has reached its limit of {self._max_total} sub-agents; do the task yourself")
        return number

    def _create_nested_runner(self) -> SubagentRunner | None:
        """Return the runner for nested sub-agents, which count towards the same total, or None if they are not
        allowed."""
        if self._depth >= self._max_depth:
            return None
        nested = copy(self)
        nested._depth += 1
        # Nested sub-agents have slots of their own, because a sub-agent keeps its slot while it waits for a nested one.
        nested._slots = threading.BoundedSemaphore(MAX_AT_ONCE)
        return nested


def _build_failure(error: Exception) -> ToolError:
    reason = str(error).rstrip(".")
    return ToolError(f"the sub-agent's model failed: {reason}. Do the task yourself, or try again later.")


def _get_output(done: Finished) -> str:
    content = unescape_control_tokens(done.content.strip()) or "(no response)"
    return content if done.reason in ("answered", "exited", "finished") else f"{content}\n({REASONS[done.reason]})"


def _list_tokens(chunk: Chunk) -> list[int]:
    usage = (chunk.raw or {}).get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return [total] if isinstance(total, int) else []
