"""The loop that performs what a session asks: query the model, run the calls, until it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapter.calls import is_valid
from adapter.constraints.modes import Constraint, get_constraint
from adapter.constraints.replies import ReplyParser, with_reply
from adapter.conversation.session import Done, Limits, Message, Query, Run, Session
from adapter.errors import TransportError, UsageError
from adapter.events import Event, ReasoningDelta, ToolCall, ToolResult, Turn
from adapter.formats import get_format
from adapter.parser import Parser
from adapter.policy import APPROVED
from adapter.prompt import system_prompt
from adapter.tools import Tool, ToolSet
from adapter.upstream.transport import ChatClient, constraint_fields, waiting_fields

if TYPE_CHECKING:
    from adapter.events import JsonObject
    from adapter.upstream.transport import Chunk, Usage
    from adapter.workspace import Workspace

Observed: TypeAlias = "Query | Chunk | Event | Turn | Run | ToolResult | Done"
"""What an observer is told, in the order in which it happens."""


class Chat(Protocol):
    """A model that answers in pieces: `adapter.upstream.transport.ChatClient`, a recording, a guided model."""

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]: ...


class Agent:
    """A model, a workspace and the loop between them.

    ``format``: how the model is taught to call and shown its history; what it then
    writes is read in any format. ``system``: the system prompt, made from dialect,
    format and ``style`` when None. ``observe`` is called with everything that
    happens; it must not raise. ``constraint``: how far the model is held to valid
    calls (see `adapter.constraints.modes`); it takes a `ChatClient`, which knows its server.
    Raises UsageError for an unknown name, and a constraint on another chat.
    """

    def __init__(
        self,
        workspace: Workspace,
        chat: Chat,
        *,
        format: str = "hermes",
        style: str = "compact",
        system: str | None = None,
        limits: Limits | None = None,
        observe: Callable[[Observed], None] | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        self.workspace = workspace
        self.format = get_format(format)
        self._reply: Tool | None = None
        tools = workspace.tools
        if constraint == "prefer":
            tools, self._reply = with_reply(tools)
        self.system = system or system_prompt(workspace.dialect, self.format.name, style, tools=tools)
        self.limits = limits or Limits()
        self._chat = chat
        self._constraint = get_constraint(constraint)
        self._held = _held(chat, workspace.tools, self._constraint, self.format.name, self._reply)
        if self._constraint == "arguments" and isinstance(chat, ChatClient):
            waiting = waiting_fields(chat.endpoint.kind, workspace.tools, format=self.format.name)
            self._chat = _Enforcing(chat, waiting)
        self._is_held = constraint in ("prefer", "required")
        self._observe = observe or (lambda _happening: None)

    def observe(self, observer: Callable[[Observed], None]) -> None:
        """Tell ``observer`` what happens, in place of the one before."""
        self._observe = observer

    def run(self, task: str) -> Done:
        """Work on ``task`` until the model answers without a call, or a limit is reached.

        Raises TransportError when the server fails, after the observer was told.
        KeyboardInterrupt stops the model and ends the conversation as ``interrupted``.
        """
        session = Session(self.system, self.format, self.workspace.tools, self.limits)
        step: Query | Run | Done = session.start(task)
        try:
            while not isinstance(step, Done):
                self._observe(step)
                if isinstance(step, Query):
                    turn, usage = self._ask(step)
                    self._observe(turn)
                    if self._constraint == "arguments":
                        self._is_held = self._is_broken(turn)
                    step = session.answered(turn, usage.prompt if usage else None)
                else:
                    step = session.ran([self._run(call) for call in step.calls])
        except KeyboardInterrupt:
            step = Done("interrupted", "")
        except TransportError as error:
            self._observe(Done("failed", str(error)))
            raise
        self._observe(step)
        return step

    def _is_broken(self, turn: Turn) -> bool:
        """Whether the model tried to call and none of it can be run. Its next answer is then held to a call."""
        return bool(turn.calls or turn.invalid) and not any(is_valid(call, self.workspace.tools) for call in turn.calls)

    def _run(self, call: ToolCall) -> ToolResult:
        (result,) = self.workspace.run_calls(Run((call,)))
        self._observe(result)
        return result

    def _ask(self, query: Query) -> tuple[Turn, Usage | None]:
        """The model's answer to one query, read as it comes, and what the server counted."""
        tools, turn = self.workspace.tools, str(query.number)
        parser = (
            ReplyParser(tools, self._reply, turn=turn)
            if self._reply
            else Parser(None, tools, turn=turn, policy=APPROVED)
        )
        events: list[Event] = []
        finish_reason, usage = "incomplete", None

        def take(new: list[Event]) -> None:
            for event in new:
                self._observe(event)
            events.extend(new)

        chat = self._held if self._is_held else self._chat
        chunks = chat.stream(query.messages, stop=self.format.stops)
        with closing(chunks):  # type: ignore[type-var]
            for chunk in chunks:
                self._observe(chunk)
                if chunk.reasoning:
                    take([ReasoningDelta(chunk.reasoning, "")])
                take(parser.feed(chunk.text))
                finish_reason = chunk.finish_reason or finish_reason
                usage = chunk.usage or usage
        take(parser.close(finish_reason))
        return Turn.from_events(events), usage


def _held(chat: Chat, tools: ToolSet, constraint: Constraint | None, format: str, reply: Tool | None) -> Chat:
    """The chat whose answers are held to calls."""
    if constraint in (None, "off"):
        return chat
    if not isinstance(chat, ChatClient):
        raise UsageError(f"constraint={constraint!r} takes a ChatClient, not a {type(chat).__name__}")
    return _Enforcing(chat, constraint_fields(chat.endpoint.kind, tools, format=format, reply=reply))


class _Enforcing:
    """A chat whose server is told what may be written."""

    def __init__(self, chat: ChatClient, fields: JsonObject) -> None:
        self._chat, self._fields = chat, fields

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        return self._chat.stream(messages, stop=stop, extra=self._fields)
