"""The loop that performs what a session asks: query the model, run the calls, until it is done.

`BaseAgent` is what every such loop has in common; `Agent` is the loop, and `agent.async_agent` the same for asyncio.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from adapter.agent.prompt_setup import (
    assist_for,
    constraint_fields_for,
    format_from_template,
    known_files,
    make_template_chat,
    prompt_style_for,
    validate_prompt_mode,
)
from adapter.agent.response_reader import AgentEvent, ChatModel, ResponseReader, chunks_of
from adapter.backends.client_lookup import as_chat_client
from adapter.backends.control_token_discovery import format_with_control_tokens
from adapter.backends.template_chat import TemplateChat
from adapter.conversation.guardrails.engine import NO_STEPS, Guardrails
from adapter.conversation.guardrails.registry import BY_STEPS, parse_guardrails, validate_retries
from adapter.conversation.guardrails.required_steps import StepsInput, parse_steps
from adapter.conversation.guardrails.required_steps import validate_steps as check_steps
from adapter.conversation.message_rendering import Message
from adapter.conversation.session import AskModel, Finished, RunTools, Session, SessionLimits
from adapter.core.arguments import NONE, PATH, check_types, shown
from adapter.core.callbacks import observer as checked_observer
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import JsonObject, ToolCall, ToolResult
from adapter.core.turn import Turn
from adapter.dialects import Dialect
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode, validate_guide_mode
from adapter.grammars.reply_tool import ReplyParser, add_reply_tool
from adapter.parsing.formats import get_format, guess_format, resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import Parser
from adapter.prompting.intent.assist import AssistSettings
from adapter.prompting.intent.tool_shortlist import ToolShortlist, shortlist_tools
from adapter.prompting.system_prompt import new_prompt_session, system_prompt
from adapter.tools.call_resolution import is_valid
from adapter.tools.operations.permissions import ApprovalRequest, Approver
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host import Host

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient, Chunk
    from adapter.protocols.translated_request import TranslatedRequest

MAX_CALL_TOKENS = 900
"""Of a very small model's call: enough for a string of 400 characters, each an escape of two tokens."""

AGENT_RETRIES = 3
"""Answers in a row that are asked again: one more than in a server, for who gives up here ends the task."""

ChatT = TypeVar("ChatT")
ApproverT = TypeVar("ApproverT", bound=Callable[[ApprovalRequest], object])
ObserverT = TypeVar("ObserverT", bound=Callable[[AgentEvent], object])


class BaseAgent(Generic[ChatT, ApproverT, ObserverT]):
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
        approve: str | ApproverT | None = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        host: Host | None = None,
        format: str | None = None,
        style: str | None = None,
        system: str | None = None,
        prompt: str = "auto",
        limits: SessionLimits | None = None,
        observe: ObserverT | None = None,
        constraint: Constraint | None = None,
        guide: str = "auto",
        guardrails: str = "on",
        retries: int = AGENT_RETRIES,
        steps: StepsInput = NO_STEPS,
        max_tools: int | None = None,
    ) -> None:
        check_types(
            "Agent",
            workspace=(workspace, *PATH, Workspace),
            dialect=(dialect, str, Dialect, NONE),
            approve=(approve, str, Callable, NONE),
            tools=(tools, Iterable),
            system=(system, str, NONE),
            limits=(limits, SessionLimits, NONE),
            observe=(observe, Callable, NONE),
            guardrails=(guardrails, str),
            max_tools=(max_tools, int, NONE),
        )
        if chat is not None and not hasattr(chat, "stream"):
            raise UsageError(f"Agent: chat must be a ChatClient, or have its method stream, got {shown(chat)}")
        validate_guide_mode(guide)
        if max_tools is not None and (max_tools < 1 or system):
            why = "system describes the tools" if system else f"it is {max_tools}"
            raise UsageError(f"max_tools cannot be had: {why}; give a number from 1 on, and no system")
        self._max_tools = max_tools
        self._few: ToolShortlist | None = None
        self._watched, self._retries, self._steps = (
            parse_guardrails(guardrails),
            validate_retries(retries),
            parse_steps(steps),
        )
        self._guide = guide
        self._assist: AssistSettings | None = None
        self._guided: TranslatedRequest | None = None
        self._is_first = True
        self._made = ExitStack()
        self._observe: Callable[[AgentEvent], None] = _ignore
        if observe is not None:
            self.set_observer(observe)
        self._constraint = parse_constraint_mode(constraint)
        self._session: Session | None = None
        self._answer: ResponseReader | None = None
        self._is_settled = False
        self._wished = (format, style, system, limits)
        validate_prompt_mode(prompt)
        self._prompt = "words" if prompt == "auto" and (style or system) else prompt
        if format is not None:
            get_format(format)
        if chat is not None and (base_url, model) != (None, None):
            raise UsageError(
                "base_url and model say where to find a model, but a chat was given as well; leave one out"
            )
        self._address, self._given = (base_url, model), chat
        if isinstance(workspace, Workspace):
            if dialect is not None or approve is not None or tools or host is not None:
                raise UsageError(
                    "dialect, approve, tools and host are the Workspace's: give them to it, or give a folder here"
                )
            self.workspace = workspace
        else:
            self.workspace = self._made.enter_context(
                Workspace(
                    workspace,
                    dialect or "blade",
                    approve or "ask" if isinstance(approve, str | None) else self._approver(approve),
                    tools=tools,
                    host=host and self._host(host),
                )
            )
        try:
            check_steps(self._steps, self.workspace.tools)
            # Whose template describes the tools, and how large the model is, a server has to be asked.
            asks = chat is None or as_chat_client(chat) is not None
            if self._connects_at_once or not asks:
                self._connect()
        except BaseException:
            self._made.close()
            raise

    def set_observer(self, observer: ObserverT) -> None:
        """Tell ``observer`` what happens, in place of the one before."""
        self._observe = checked_observer(observer, "the observer")

    def _approver(self, approve: ApproverT) -> Approver:
        """The approver as the workspace calls it."""
        return approve  # type: ignore[return-value]  # a `Workspace` refuses an async one

    def _host(self, host: Host) -> Host:
        """The host as the workspace calls it."""
        return host

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, as the model is shown it."""
        return self._session.messages if self._session is not None else ()

    def add_note(self, text: str) -> None:
        """Tell the model of a conversation that has begun something besides, with the next message."""
        if self._session is not None:
            self._session.add_note(text)

    def resume(self, message: str, answers: Sequence[tuple[Turn, Sequence[ToolResult]]]) -> None:
        """Go on as if ``message`` had been said here, and answered so; nothing is asked or run."""
        if self._session is None:
            self._session = self._new_session(message)
        self._session.resume(message, answers)

    def _connect(self) -> None:
        """Find the model server where no chat was given, and what it says about the model. Raises TransportError."""
        if self._given is not None:
            self._settle(self._given, format_from_template(self._given, self._prompt))
            return
        from adapter.backends.chat_client import ChatClient, find_endpoint

        base_url, model = self._address
        chat = self._made.enter_context(ChatClient(find_endpoint(base_url), model))
        found = chat.own_prompt() if self._prompt != "words" else None
        told = found.format_of(chat.model) if found is not None else guess_format(chat.model)
        self._settle(chat, told, chat.context().tokens)

    def _settle(self, chat: ChatT | ChatClient, guessed: str | None = None, context_tokens: int | None = None) -> None:
        format, style, system, limits = self._wished
        self._chat: ChatT | ChatClient = chat
        self._client = as_chat_client(chat)
        self.format = format_with_control_tokens(chat, format or guessed or "hermes")
        tools, self._reply = self.workspace.tools, None
        if self._constraint == "prefer":
            tools, self._reply = add_reply_tool(tools)
        self._own = make_template_chat(chat, tools, self.format, self._prompt)
        if self._client is not None and not (self._own or style or system):
            self._assist = assist_for(self._client, self._guide, self._constraint)
            self._constraint = self._constraint if self._assist is None else None
        # Of a result such a model can say nothing, nor whether that was all.
        self.limits = limits or SessionLimits(context_tokens=context_tokens, tool_turns=1 if self._assist else None)
        style = style or ("native" if self._own else prompt_style_for(self._constraint))
        self.system = system or system_prompt(
            self.workspace.dialect, self.format, style, tools=tools, session=new_prompt_session()
        )
        self._free, self._held = constraint_fields_for(
            chat, self._constraint, self.workspace.tools, self.format.name, self._reply
        )
        self._is_held = self._constraint in ("prefer", "required")
        self._is_settled = True

    def _shorten(self, task: str) -> None:
        """Describe only the tools that are like ``task``, where there are more than wanted."""
        tools = self.workspace.tools
        self._few = None if self._max_tools is None else shortlist_tools(tools, task, self._max_tools)
        if self._few is None:
            return
        shown = add_reply_tool(self._few.shown)[0] if self._reply else self._few.shown
        style = self._wished[1] or ("native" if self._own else prompt_style_for(self._constraint))
        self.system = system_prompt(
            self.workspace.dialect, self.format, style, tools=shown, session=new_prompt_session()
        )
        if self._own is not None:
            self._own = TemplateChat(shown, self.format, self._own.own)

    @property
    def _tools(self) -> ToolSet:
        """What the model can call."""
        return self.workspace.tools if self._few is None else self._few.all

    def _begin(self, task: str) -> AskModel:
        """A new conversation."""
        check_types("Agent", task=(task, str))
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
        is_free = self._constraint not in ("prefer", "required") and self._assist is None
        on = self._watched if is_free else self._watched & (BY_STEPS | {"repeated_call", "cycle"})
        return Guardrails(self._tools, on=on, steps=self._steps, retries=self._retries, encode=self.format.encode_calls)

    def _go_on(self, message: str) -> AskModel:
        check_types("Agent", message=(message, str))
        self._is_first = True
        return self._begin(message) if self._session is None else self._session.send(message)

    def _new_answer(self, query: AskModel) -> ResponseReader:
        tools, turn = self._tools, str(query.number)
        self._guided = self._assisted(query)
        self._is_first = False
        told = resolve_format(self.format.name)
        if self._reply is not None:
            return ResponseReader(ReplyParser(tools, self._reply, turn=turn, format=told), self._observe)
        begun = self._generation_prompt()
        return ResponseReader(Parser(told, tools, turn=turn, policy=APPROVED, generation_prompt=begun), self._observe)

    def _generation_prompt(self) -> str | None:
        """What stands before the answer, which may have opened reasoning; nothing where a call is enforced."""
        if self._guided is not None:
            return self._guided.parsing.generation_prompt
        if self._own is None:
            return None
        return "" if self._is_held else self._own.own.traits.generation_prompt

    def _answered(self, answer: ResponseReader) -> AskModel | RunTools | Finished:
        """What to do next, by the model's answer."""
        assert self._session is not None
        turn, usage = answer.finish()
        self._observe(turn)
        step = self._session.on_answer(turn, usage.prompt if usage else None, answer.finish_reason)
        if self._constraint not in ("prefer", "required"):
            self._is_held = self._holds(turn, step)
        return step

    def _holds(self, turn: Turn, step: AskModel | RunTools | Finished) -> bool:
        """Whether the next answer is held to a call: one is to be made again, and the server can enforce that."""
        if self._constraint == "arguments":
            return self._is_broken(turn)
        if not isinstance(step, AskModel) or self._client is None or self._constraint == "off":
            return False
        from adapter.backends.constraint_fields import constraint_fields

        tools = ToolSet([self._tools[name] for name in step.held_to if name in self._tools])
        self._held = {}
        if tools:
            with suppress(UsageError):  # too large, or nothing left to choose: then it is free
                self._held = constraint_fields(self._client.endpoint.kind, tools, format=self.format.name)
        return bool(self._held)

    def request(self, query: AskModel) -> tuple[Sequence[Message], JsonObject]:
        """The messages, and what the server is told about the answer besides: nothing but for a `ChatClient`."""
        if self._guided is not None:
            body = dict(self._guided.body)
            body.pop("stop", None)
            return body.pop("messages"), body
        fields = self._held if self._is_held else self._free
        return (query.messages, fields) if self._own is None else self._own.request(query.messages, fields)

    def _assisted(self, query: AskModel) -> TranslatedRequest | None:
        """Build the request for a model that is too small to choose, as `adapter serve` does, by the known files."""
        if self._assist is None or self._client is None:
            return None
        from adapter.backends.constraint_fields import constraint_fields
        from adapter.protocols.translate import translate_chat_request
        from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions

        tools = [tool.to_openai() for tool in self.workspace.tools.values()]
        asked = [dict(message) for message in query.messages if message["role"] != "system"]
        enforce = partial(constraint_fields, self._client.endpoint.kind)
        choice = "auto" if self._is_first else "none"
        settings = replace(self._assist, known_paths=known_files(self.workspace) if self._is_first else ())
        return translate_chat_request(
            {"messages": asked, "tools": tools, "tool_choice": choice, "max_tokens": MAX_CALL_TOKENS},
            TranslationOptions(
                prompt=PromptSettings(format=self.format.name),
                constraints=ConstraintSettings(enforce=enforce),
                assists=settings,
            ),
        )

    def _is_broken(self, turn: Turn) -> bool:
        """Whether the model tried to call and none of it can be run. Its next answer is then held to a call."""
        return bool(turn.calls or turn.invalid) and not any(is_valid(call, self.workspace.tools) for call in turn.calls)

    def _run_call(self, call: ToolCall) -> ToolResult:
        if self._few is not None and call.name == self._few.finder:
            return ToolResult(call.name, True, self._few.found(call.arguments.get("query")), call_id=call.id)
        (result,) = self.workspace.run_calls(RunTools((call,)))
        return result


def _ignore(_happening: AgentEvent) -> None:
    """Observe nothing."""


class Agent(BaseAgent[ChatModel, Approver, Callable[[AgentEvent], None]]):
    """Let a model work in a workspace until it has answered::

        with Agent("my-project", base_url="http://127.0.0.1:8080", approve="auto-edit") as agent:
            print(agent.send("Rename greeting() to hello()").content)
            print(agent.send("In the tests, too").content)

    ``workspace``: a `Workspace`, or a folder, with ``dialect``, ``approve``, ``tools`` and ``host`` as a `Workspace`
    takes them. ``chat``: a model; without one that of ``base_url`` and ``model``, by default the first on one of the
    usual local ports. What the agent makes itself it closes: use it in a ``with`` block, or `close` it.

    ``format``: how the model is taught to call and shown its history, by the model's name when None; what it then
    writes is read in any format. ``system``: the system prompt, made from dialect,
    format and ``style`` when None. ``prompt``: whether the model's own template describes
    the tools, ``own``, ``words`` or ``auto`` (see `adapter.protocols.template_prompt`): where a `ChatClient`
    allows that and no ``style`` or ``system`` is given. ``observe`` is called with everything that
    happens; an exception in it ends the run, and `run` raises it. ``constraint``: how far the model is held to valid
    calls (see `adapter.grammars.constraint_mode`); it takes a `ChatClient`, which knows its server. ``guide``:
    whether words decide what a model calls that is too small for that, ``auto`` (where its server says that it is
    small), ``on`` or ``off`` (see `adapter.prompting.intent.assist`); such a model gets one call for each message,
    always one with ``constraint="required"`` and ``guide="on"``.
    ``guardrails``: for which faults an answer is asked again, ``on``, ``off``, ``all`` or names (docs/reliability.md),
    at most ``retries`` in a row; ``steps``: what is known of the task, as `Steps` or a mapping. ``max_tools``: of more
    only so many are described, those most like the first message, and one that finds the others.
    Raises UsageError for an unknown name, settings that contradict each other, a constraint on another chat, and
    functions that are async, which only `AsyncAgent` awaits; TransportError where no model is found.
    """

    _connects_at_once = True

    def run(self, task: str) -> Finished:
        """Work on ``task``, as a new conversation, until the model answers without a call, or a limit is reached.

        Raises TransportError when the server fails, after the observer was told.
        KeyboardInterrupt stops the model and ends the conversation as ``interrupted``.
        """
        return self._work(self._begin(task))

    def send(self, message: str) -> Finished:
        """`run`, in the conversation that there is, whatever ended it; the first message begins one."""
        return self._work(self._go_on(message))

    def close(self) -> None:
        """Close what the agent made itself: a folder's workspace, the connection to a server."""
        self._made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, step: AskModel | RunTools | Finished) -> Finished:
        assert self._session is not None
        results: list[ToolResult] = []
        self._answer = None
        try:
            while not isinstance(step, Finished):
                self._observe(step)
                if isinstance(step, AskModel):
                    step = self._answered(self._ask(step))
                else:
                    results = []
                    for call in step.calls:
                        results.append(self._run_call(call))
                        self._observe(results[-1])
                    step = self._session.on_tool_results(results)
        except KeyboardInterrupt:
            step = self._session.on_interrupt(results, self._so_far())
        except TransportError as error:
            self._observe(Finished("failed", str(error)))
            raise
        except Exception:  # of a function of the program's: `send` can go on from here
            self._session.on_interrupt(results)
            raise
        self._observe(step)
        return step

    def _so_far(self) -> Turn | None:
        return None if self._answer is None else self._answer.partial_turn()

    def _ask(self, query: AskModel) -> ResponseReader:
        """The model's answer to one query."""
        self._answer = answer = self._new_answer(query)
        with closing(self._stream(query)) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                answer.feed(chunk)
        self._answer = None
        return answer

    def _stream(self, query: AskModel) -> Iterator[Chunk]:
        messages, fields = self.request(query)
        if fields and self._client is not None:
            return self._client.stream(messages, stop=self.format.stop_sequences, extra=fields)
        chunks: Iterator[Chunk] = chunks_of(self._chat.stream, messages, self.format.stop_sequences, "__iter__")
        return chunks
