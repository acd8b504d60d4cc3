"""The loop that performs what a session asks: query the model, run the calls, until it is done.

`Settled` is what every such loop has in common; `Agent` is the loop, and `agent.async_agent` the same for asyncio.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from adapter.agent.answer import Answer, Chat, Observed
from adapter.agent.prompts import check_prompt, derived_for, fields_for, own_chat, parts_for, style_for
from adapter.constraints.modes import Constraint, get_constraint
from adapter.constraints.replies import ReplyParser, with_reply
from adapter.conversation.guardrails.catalogue import BY_STEPS, checked_retries, chosen
from adapter.conversation.guardrails.guardrails import NO_STEPS, Guardrails
from adapter.conversation.guardrails.steps import Given, steps_of
from adapter.conversation.guardrails.steps import checked as check_steps
from adapter.conversation.session import Done, Limits, Query, Run, Session
from adapter.conversation.shown import Message
from adapter.dialects import Dialect
from adapter.formats import get_format, guess, told_format
from adapter.formats.parser import Parser
from adapter.operations.approval import Approver
from adapter.prompting.choosing import Parts, check_guide
from adapter.prompting.prompt import new_session, system_prompt
from adapter.prompting.shortlist import Shortlist, shortlist
from adapter.reading.policy import APPROVED
from adapter.tools.calls import is_valid
from adapter.tools.definition import Tool, ToolSet
from adapter.upstream.clients import client_of
from adapter.upstream.own_chat import OwnChat
from adapter.upstream.told_tokens import format_for
from adapter.values.errors import TransportError, UsageError
from adapter.values.events import JsonObject, ToolCall, ToolResult
from adapter.values.turn import Turn
from adapter.workspace import Workspace

if TYPE_CHECKING:
    from adapter.upstream.transport import ChatClient, Chunk
    from adapter.wire.translated import Request

AGENT_RETRIES = 3
"""Answers in a row that are asked again: one more than in a server, for who gives up here ends the task."""

ChatT = TypeVar("ChatT")


class Settled(Generic[ChatT]):
    """What an agent is put together from, and what it does without waiting for anybody."""

    _connects_at_once: ClassVar[bool]

    def __init__(
        self,
        workspace: Workspace | str | os.PathLike[str],
        chat: ChatT | None = None,
        *,
        base_url: str | None = None,
        model: str | None = None,
        dialect: str | Dialect | None = None,
        approve: str | Approver | None = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        format: str | None = None,
        style: str | None = None,
        system: str | None = None,
        prompt: str = "auto",
        limits: Limits | None = None,
        observe: Callable[[Observed], None] | None = None,
        constraint: Constraint | None = None,
        guide: str = "auto",
        guardrails: str = "on",
        retries: int = AGENT_RETRIES,
        steps: Given = NO_STEPS,
        max_tools: int | None = None,
    ) -> None:
        check_guide(guide)
        if max_tools is not None and (max_tools < 1 or system):
            why = "system describes the tools" if system else f"it is {max_tools}"
            raise UsageError(f"max_tools cannot be had: {why}; give a number from 1 on, and no system")
        self._max_tools = max_tools
        self._few: Shortlist | None = None
        self._watched, self._retries, self._steps = chosen(guardrails), checked_retries(retries), steps_of(steps)
        self._guide = guide
        self._parts: Parts | None = None
        self._guided: Request | None = None
        self._is_first = True
        self._made = ExitStack()
        self._observe = observe or (lambda _happening: None)
        self._constraint = get_constraint(constraint)
        self._session: Session | None = None
        self._answer: Answer | None = None
        self._is_settled = False
        self._wished = (format, style, system, limits)
        check_prompt(prompt)
        self._prompt = "words" if prompt == "auto" and (style or system) else prompt
        if format is not None:
            get_format(format)
        if chat is not None and (base_url, model) != (None, None):
            raise UsageError(
                "base_url and model say where to find a model, but a chat was given as well; leave one out"
            )
        self._address, self._given = (base_url, model), chat
        if isinstance(workspace, Workspace):
            if dialect is not None or approve is not None or tools:
                raise UsageError(
                    "dialect, approve and tools are the Workspace's: give them to it, or give a folder here"
                )
            self.workspace = workspace
        else:
            made = Workspace(workspace, dialect or "blade", approve or "ask", tools=tools)
            self.workspace = self._made.enter_context(made)
        try:
            check_steps(self._steps, self.workspace.tools)
            # Whose template describes the tools, and how large the model is, a server has to be asked.
            asks = chat is None or client_of(chat) is not None
            if self._connects_at_once or not asks:
                self._connect()
        except BaseException:
            self._made.close()
            raise

    def observe(self, observer: Callable[[Observed], None]) -> None:
        """Tell ``observer`` what happens, in place of the one before."""
        self._observe = observer

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, as the model is shown it."""
        return self._session.messages if self._session is not None else ()

    def tell(self, text: str) -> None:
        """Tell the model of a conversation that has begun something besides, with the next message."""
        if self._session is not None:
            self._session.tell(text)

    def recall(self, message: str, answers: Sequence[tuple[Turn, Sequence[ToolResult]]]) -> None:
        """Go on as if ``message`` had been said here, and answered so; nothing is asked or run."""
        if self._session is None:
            self._session = self._new_session(message)
        self._session.recall(message, answers)

    def _connect(self) -> None:
        """Find the model server where no chat was given, and what it says about the model. Raises TransportError."""
        if self._given is not None:
            self._settle(self._given, derived_for(self._given, self._prompt))
            return
        from adapter.upstream.transport import ChatClient, find_endpoint

        base_url, model = self._address
        chat = self._made.enter_context(ChatClient(find_endpoint(base_url), model))
        found = chat.own_prompt() if self._prompt != "words" else None
        told = found.format_of(chat.model) if found is not None else guess(chat.model)
        self._settle(chat, told, chat.context().tokens)

    def _settle(self, chat: ChatT | ChatClient, guessed: str | None = None, context_tokens: int | None = None) -> None:
        format, style, system, limits = self._wished
        self._chat: ChatT | ChatClient = chat
        self._client = client_of(chat)
        self.format = format_for(chat, format or guessed or "hermes")
        tools, self._reply = self.workspace.tools, None
        if self._constraint == "prefer":
            tools, self._reply = with_reply(tools)
        self._own = own_chat(chat, tools, self.format, self._prompt)
        if self._client is not None and not (self._own or style or system or self._constraint):
            self._parts = parts_for(self._client, self._guide)
        # Of a result such a model can say nothing, nor whether that was all.
        self.limits = limits or Limits(context_tokens=context_tokens, call_turns=1 if self._parts else None)
        style = style or ("native" if self._own else style_for(self._constraint))
        self.system = system or system_prompt(
            self.workspace.dialect, self.format, style, tools=tools, session=new_session()
        )
        self._free, self._held = fields_for(chat, self._constraint, self.workspace.tools, self.format.name, self._reply)
        self._is_held = self._constraint in ("prefer", "required")
        self._is_settled = True

    def _shorten(self, task: str) -> None:
        """Describe only the tools that are like ``task``, where there are more than wanted."""
        tools = self.workspace.tools
        self._few = None if self._max_tools is None else shortlist(tools, task, self._max_tools)
        if self._few is None:
            return
        shown = with_reply(self._few.shown)[0] if self._reply else self._few.shown
        style = self._wished[1] or ("native" if self._own else style_for(self._constraint))
        self.system = system_prompt(self.workspace.dialect, self.format, style, tools=shown, session=new_session())
        if self._own is not None:
            self._own = OwnChat(shown, self.format, self._own.own)

    @property
    def _tools(self) -> ToolSet:
        """What the model can call."""
        return self.workspace.tools if self._few is None else self._few.all

    def _begin(self, task: str) -> Query:
        """A new conversation."""
        self._is_first = True
        self._session = self._new_session(task)
        return self._session.start(task)

    def _new_session(self, task: str) -> Session:
        self._shorten(task)
        self._is_held = self._constraint in ("prefer", "required")
        shows_calls, rails = self._own is not None, self.guardrails
        return Session(self.system, self.format, self._tools, self.limits, shows_calls=shows_calls, guardrails=rails)

    @property
    def guardrails(self) -> Guardrails:
        """Of a new conversation. Where answers are held to calls, or words decide, they may well be empty, or a
        promise."""
        is_free = self._constraint not in ("prefer", "required") and self._parts is None
        on = self._watched if is_free else self._watched & (BY_STEPS | {"repeated_call", "cycle"})
        return Guardrails(self._tools, on=on, steps=self._steps, retries=self._retries, encode=self.format.encode_calls)

    def _go_on(self, message: str) -> Query:
        self._is_first = True
        return self._begin(message) if self._session is None else self._session.send(message)

    def _new_answer(self, query: Query) -> Answer:
        tools, turn = self._tools, str(query.number)
        self._guided = self._chosen(query)
        self._is_first = False
        told = told_format(self.format.name)
        if self._reply is not None:
            return Answer(ReplyParser(tools, self._reply, turn=turn, format=told), self._observe)
        begun = self._generation_prompt()
        return Answer(Parser(told, tools, turn=turn, policy=APPROVED, generation_prompt=begun), self._observe)

    def _generation_prompt(self) -> str | None:
        """What stands before the answer, which may have opened reasoning; nothing where a call is enforced."""
        if self._guided is not None:
            return self._guided.generation_prompt
        if self._own is None:
            return None
        return "" if self._is_held else self._own.own.traits.generation_prompt

    def _answered(self, answer: Answer) -> Query | Run | Done:
        """What to do next, by the model's answer."""
        assert self._session is not None
        turn, usage = answer.end()
        self._observe(turn)
        step = self._session.answered(turn, usage.prompt if usage else None, answer.finish_reason)
        if self._constraint not in ("prefer", "required"):
            self._is_held = self._holds(turn, step)
        return step

    def _holds(self, turn: Turn, step: Query | Run | Done) -> bool:
        """Whether the next answer is held to a call: one is to be made again, and the server can enforce that."""
        if self._constraint == "arguments":
            return self._is_broken(turn)
        if not isinstance(step, Query) or self._client is None or self._constraint == "off":
            return False
        from adapter.upstream.enforcing import constraint_fields

        tools = ToolSet([self._tools[name] for name in step.held_to if name in self._tools])
        self._held = {}
        if tools:
            with suppress(UsageError):  # too large, or nothing left to choose: then it is free
                self._held = constraint_fields(self._client.endpoint.kind, tools, format=self.format.name)
        return bool(self._held)

    def request(self, query: Query) -> tuple[Sequence[Message], JsonObject]:
        """The messages, and what the server is told about the answer besides: nothing but for a `ChatClient`."""
        if self._guided is not None:
            body = dict(self._guided.body)
            body.pop("stop", None)
            return body.pop("messages"), body
        fields = self._held if self._is_held else self._free
        return (query.messages, fields) if self._own is None else self._own.request(query.messages, fields)

    def _chosen(self, query: Query) -> Request | None:
        """What is asked of a model that is too small to choose: as `adapter serve` would ask it."""
        if self._parts is None or self._client is None:
            return None
        from adapter.upstream.enforcing import constraint_fields
        from adapter.upstream.guidance import MAX_CALL_TOKENS
        from adapter.wire.options import Options
        from adapter.wire.request import translate

        tools = [tool.to_openai() for tool in self.workspace.tools.values()]
        asked = [dict(message) for message in query.messages if message["role"] != "system"]
        enforce = partial(constraint_fields, self._client.endpoint.kind)
        choice = "auto" if self._is_first else "none"
        return translate(
            {"messages": asked, "tools": tools, "tool_choice": choice, "max_tokens": MAX_CALL_TOKENS},
            Options(format=self.format.name, enforce=enforce, small=self._parts),
        )

    def _is_broken(self, turn: Turn) -> bool:
        """Whether the model tried to call and none of it can be run. Its next answer is then held to a call."""
        return bool(turn.calls or turn.invalid) and not any(is_valid(call, self.workspace.tools) for call in turn.calls)

    def _run_call(self, call: ToolCall) -> ToolResult:
        if self._few is not None and call.name == self._few.finder:
            return ToolResult(call.name, True, self._few.found(call.arguments.get("query")), call_id=call.id)
        (result,) = self.workspace.run_calls(Run((call,)))
        return result


class Agent(Settled[Chat]):
    """Let a model work in a workspace until it has answered::

        with Agent("my-project", base_url="http://127.0.0.1:8080", approve="auto-edit") as agent:
            print(agent.send("Rename greeting() to hello()").content)
            print(agent.send("In the tests, too").content)

    ``workspace``: a `Workspace`, or a folder, with ``dialect``, ``approve`` and ``tools`` as a `Workspace` takes
    them. ``chat``: a model; without one that of ``base_url`` and ``model``, by default the first on one of the
    usual local ports. What the agent makes itself it closes: use it in a ``with`` block, or `close` it.

    ``format``: how the model is taught to call and shown its history, by the model's name when None; what it then
    writes is read in any format. ``system``: the system prompt, made from dialect,
    format and ``style`` when None. ``prompt``: whether the model's own template describes
    the tools, ``own``, ``words`` or ``auto`` (see `adapter.wire.own_prompt`): where a `ChatClient`
    allows that and no ``style`` or ``system`` is given. ``observe`` is called with everything that
    happens; it must not raise. ``constraint``: how far the model is held to valid
    calls (see `adapter.constraints.modes`); it takes a `ChatClient`, which knows its server. ``guide``:
    whether words decide what a model calls that is too small for that, ``auto`` (where its server says that it is
    small), ``on`` or ``off`` (see `adapter.prompting.choosing`); such a model gets one call for each message.
    ``guardrails``: for which faults an answer is asked again, ``on``, ``off``, ``all`` or names (docs/guardrails.md),
    at most ``retries`` in a row; ``steps``: what is known of the task, as `Steps` or a mapping. ``max_tools``: of more
    only so many are described, those most like the first message, and one that finds the others.
    Raises UsageError for an unknown name, settings that contradict each other, and a constraint on another chat;
    TransportError where no model is found.
    """

    _connects_at_once = True

    def run(self, task: str) -> Done:
        """Work on ``task``, as a new conversation, until the model answers without a call, or a limit is reached.

        Raises TransportError when the server fails, after the observer was told.
        KeyboardInterrupt stops the model and ends the conversation as ``interrupted``.
        """
        return self._work(self._begin(task))

    def send(self, message: str) -> Done:
        """`run`, in the conversation that there is, whatever ended it; the first message begins one."""
        return self._work(self._go_on(message))

    def close(self) -> None:
        """Close what the agent made itself: a folder's workspace, the connection to a server."""
        self._made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, step: Query | Run | Done) -> Done:
        assert self._session is not None
        results: list[ToolResult] = []
        self._answer = None
        try:
            while not isinstance(step, Done):
                self._observe(step)
                if isinstance(step, Query):
                    step = self._answered(self._ask(step))
                else:
                    results = []
                    for call in step.calls:
                        results.append(self._run_call(call))
                        self._observe(results[-1])
                    step = self._session.ran(results)
        except KeyboardInterrupt:
            step = self._session.stopped(results, self._so_far())
        except TransportError as error:
            self._observe(Done("failed", str(error)))
            raise
        self._observe(step)
        return step

    def _so_far(self) -> Turn | None:
        return None if self._answer is None else self._answer.so_far()

    def _ask(self, query: Query) -> Answer:
        """The model's answer to one query."""
        self._answer = answer = self._new_answer(query)
        with closing(self._stream(query)) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                answer.take(chunk)
        self._answer = None
        return answer

    def _stream(self, query: Query) -> Iterator[Chunk]:
        messages, fields = self.request(query)
        if fields and self._client is not None:
            return self._client.stream(messages, stop=self.format.stops, extra=fields)
        return self._chat.stream(messages, stop=self.format.stops)
