"""The common base of the synchronous and the asynchronous agent: settings, prompts, requests and steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from adapter.agent.agent_workspace import open_workspace
from adapter.agent.answer_constraint import AnswerConstraint
from adapter.agent.answer_reader import AgentEvent, AnswerReader
from adapter.agent.prompt_setup import (
    add_further_calls,
    build_constraint_fields,
    build_guided_request,
    build_plain_question,
    check_chat,
    check_max_tools,
    choose_prompt_style,
    find_guided_choice,
    format_from_template,
    is_very_small,
    make_template_chat,
    select_basic_tools,
    validate_prompt_mode,
)
from adapter.backends.chat_client_type_check import find_chat_client
from adapter.backends.control_token_discovery import format_with_control_tokens
from adapter.backends.template_chat import TemplateChat
from adapter.conversation.guardrails.guardrails import NO_STEPS, Guardrails
from adapter.conversation.guardrails.registry import BY_STEPS, COPIES, WITHIN_ANSWER, parse_guardrails, validate_retries
from adapter.conversation.guardrails.required_steps import StepsInput, parse_steps
from adapter.conversation.guardrails.required_steps import validate_steps as check_steps
from adapter.conversation.message_rendering import Message
from adapter.conversation.session import Session
from adapter.conversation.session_steps import AskModel, Finished, RunTools, SessionLimits
from adapter.core.argument_checks import NONE, PATH, check_types
from adapter.core.callback_checks import wrap_observer
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import JsonObject, ToolCall, ToolResult
from adapter.core.turn import Turn
from adapter.dialects import Dialect
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode, validate_guide_mode
from adapter.grammars.reply_tool import ReplyParser, add_reply_tool
from adapter.parsing.formats import get_format, guess_format, resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import Parser, parse
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings
from adapter.prompting.system_prompt import create_prompt_session, system_prompt
from adapter.prompting.tool_shortlist import ToolShortlist, UserRequest, shortlist_tools
from adapter.tools.operations.permissions import ApprovalRequest, Approver
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host

if TYPE_CHECKING:
    from adapter.agent.small_model_help import SmallModelHelp
    from adapter.backends.chat_client import ChatClient
    from adapter.protocols.translated_request import TranslatedRequest

AGENT_RETRIES = 3
"""Maximum number of consecutive retries. It is one higher than the server's maximum, because giving up ends the whole
task."""

ChatT = TypeVar("ChatT")
ApproverT = TypeVar("ApproverT", bound=Callable[[ApprovalRequest], object])
ObserverT = TypeVar("ObserverT", bound=Callable[[AgentEvent], object])


class BaseAgent(Generic[ChatT, ApproverT, ObserverT]):
    """The settings of an agent, and the parts of its loop that do no I/O."""

    _connects_at_once: ClassVar[bool]
    _interrupts: ClassVar[tuple[type[BaseException], ...]]
    """The exceptions that are raised when the user stops a run."""

    def __init__(
        self,
        workspace: Workspace | str | os.PathLike[str] | None = None,
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
            workspace=(workspace, *PATH, Workspace, NONE),
            dialect=(dialect, str, Dialect, NONE),
            approve=(approve, str, Callable, NONE),
            tools=(tools, Iterable),
            system=(system, str, NONE),
            limits=(limits, SessionLimits, NONE),
            observe=(observe, Callable, NONE),
            guardrails=(guardrails, str),
            max_tools=(max_tools, int, NONE),
        )
        check_chat(chat, base_url, model)
        validate_guide_mode(guide)
        check_max_tools(max_tools, system)
        self.max_tools, self._guide = max_tools, guide
        self._shortlist: ToolShortlist | None = None
        self._guardrails = parse_guardrails(guardrails)
        self._retries, self._steps = validate_retries(retries), parse_steps(steps)
        self._guided_choice: GuidedChoiceSettings | None = None
        self._guided_request: TranslatedRequest | None = None
        self._help: SmallModelHelp | None = None
        self._message = ""
        self._is_first_turn = True
        self._resources, self._working = ExitStack(), Lock()
        self._observe: Callable[[AgentEvent], None] = lambda _: None
        if observe is not None:
            self.set_observer(observe)
        self._constraint = parse_constraint_mode(constraint)
        self._session: Session | None = None
        self._answer: AnswerReader | None = None
        self._is_connected = False
        self._requested_settings = (format, style, system, limits)
        validate_prompt_mode(prompt)
        self._prompt = "words" if prompt == "auto" and (style or system) else prompt
        if format is not None:
            get_format(format)
        self._address, self._chat_argument = (base_url, model), chat
        approver = approve if isinstance(approve, str | None) else self._wrap_approver(approve)
        host = host and self._wrap_host(host)
        self.workspace = open_workspace(self._resources, workspace, dialect, approver, tuple(tools), host)
        try:
            check_steps(self._steps, self.workspace.tools)
            # Only a server can report the model's chat template and size.
            needs_server = chat is None or find_chat_client(chat) is not None
            if self._connects_at_once or not needs_server:
                self._connect()
        except BaseException:
            self._resources.close()
            raise

    def set_observer(self, observer: ObserverT) -> None:
        """Replace the observer, which is called with every event."""
        self._observe = wrap_observer(observer, "the observer")

    def _wrap_approver(self, approve: ApproverT) -> Approver:
        return approve  # type: ignore[return-value]  # a `Workspace` refuses an async one

    def _wrap_host(self, host: Host) -> Host:
        return host

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, as shown to the model."""
        return self._session.messages if self._session is not None else ()

    def add_note(self, text: str) -> None:
        """Add a note to the next message. Does nothing before the conversation begins."""
        if self._session is not None:
            self._session.add_note(text)

    def resume(self, message: str, answers: Sequence[tuple[Turn, Sequence[ToolResult]]]) -> None:
        """Add an earlier message and its answers to the conversation, without querying the model or running calls."""
        if self._session is None:
            self._session = self._create_session(message)
        self._session.resume(message, answers)

    def _connect(self) -> None:
        """Find a model server, unless a chat was passed, and query it about the model. Raises TransportError."""
        if self._chat_argument is not None:
            self._configure(self._chat_argument, format_from_template(self._chat_argument, self._prompt))
            return
        from adapter.backends.chat_client import ChatClient, find_endpoint

        base_url, model = self._address
        chat = self._resources.enter_context(ChatClient(find_endpoint(base_url), model))
        own_prompt = chat.discover_own_prompt() if self._prompt != "words" else None
        guessed = own_prompt.format_of(chat.model) if own_prompt is not None else guess_format(chat.model)
        self._configure(chat, guessed, chat.context().tokens)

    def _configure(
        self, chat: ChatT | ChatClient, guessed: str | None = None, context_tokens: int | None = None
    ) -> None:
        format, style, system, limits = self._requested_settings
        self._chat: ChatT | ChatClient = chat
        self._client = find_chat_client(chat)
        self._is_very_small = is_very_small(self._client)
        self.format = format_with_control_tokens(chat, format or guessed or "hermes")
        tools, self._reply = self.workspace.tools, None
        if self._constraint == "prefer":
            tools, self._reply = add_reply_tool(tools)
        self._own = make_template_chat(chat, tools, self.format, self._prompt)
        if self._client is not None and not (self._own or style or system):
            self._guided_choice = find_guided_choice(self._client, self._guide, self._constraint)
            self._constraint = self._constraint if self._guided_choice is None else None
        is_free = self._constraint is None and self._guided_choice is None
        if self._client is not None and self._is_very_small and is_free:
            from adapter.agent.small_model_help import SmallModelHelp

            self._help = SmallModelHelp(self._client.endpoint.kind, self.format, self.workspace)
        is_free = self._constraint is None and self.max_tools is None and self._steps == NO_STEPS
        self._offered = self.workspace.tools
        if self._is_very_small and self._own is not None and is_free:
            self._offered = tools = select_basic_tools(self.workspace)
            self._own = TemplateChat(tools, self.format, self._own.template_prompt)
        # A model with guided tool choice can neither discuss a result nor decide whether the task is done.
        tool_turns = 1 if self._guided_choice else None
        self.limits = limits or SessionLimits(context_tokens=context_tokens, tool_turns=tool_turns)
        self.system = system or self._build_system_prompt(tools)
        free, constrained = build_constraint_fields(
            chat, self._constraint, self.workspace.tools, self.format.name, self._reply
        )
        self._answer_constraint = AnswerConstraint(
            self._constraint, self._client, self.format.name, self._is_very_small, free, constrained
        )
        self._is_connected = True

    def _shorten_tools(self, task: str) -> None:
        """Limit the prompt to the ``max_tools`` tools that are most relevant to ``task``."""
        tools, most = self.workspace.tools, self.max_tools
        self._shortlist = None if most is None else shortlist_tools(tools, [UserRequest(task)], most)
        if self._shortlist is None:
            return
        shown = add_reply_tool(self._shortlist.shown)[0] if self._reply else self._shortlist.shown
        self.system = self._build_system_prompt(shown)
        if self._own is not None:
            self._own = TemplateChat(shown, self.format, self._own.template_prompt)

    def _build_system_prompt(self, tools: ToolSet) -> str:
        style = self._requested_settings[1] or ("native" if self._own else choose_prompt_style(self._constraint))
        return system_prompt(self.workspace.dialect, self.format, style, tools=tools, session=create_prompt_session())

    @property
    def tools(self) -> ToolSet:
        """All tools that the model can call."""
        return self._offered if self._shortlist is None else self._shortlist.all

    @contextmanager
    def _work_alone(self) -> Iterator[None]:
        """Raise UsageError if the agent already works on a message, in any thread or task."""
        if not self._working.acquire(blocking=False):
            raise UsageError("this agent is still working on a message; wait for its end, or use another agent")
        try:
            yield
        finally:
            self._working.release()

    def _end_turn(self, error: BaseException, results: Sequence[ToolResult]) -> Finished | None:
        """End the turn after an exception, so that `send` can continue. Return the event to report, or None.

        ``results``: the results of the last calls that finished. The received part of an interrupted answer is kept.
        """
        assert self._session is not None
        answer, self._answer = self._answer, None
        is_interrupt = isinstance(error, self._interrupts)
        turn = answer.build_partial_turn() if is_interrupt and answer is not None else None
        finished = self._session.on_interrupt(results, turn)
        if isinstance(error, TransportError):
            return Finished("failed", str(error))
        return finished if is_interrupt else None

    def _start(self, task: str) -> AskModel:
        check_types("Agent", task=(task, str))
        self._is_first_turn, self._message = True, task
        self._session = self._create_session(task)
        return self._session.start(task)

    def _create_session(self, task: str) -> Session:
        self._shorten_tools(task)
        self._answer_constraint.begin()
        if self._help is not None:
            self._help.begin()
        shows_calls, rails = self.shows_calls, self.guardrails
        return Session(self.system, self.format, self.tools, self.limits, shows_calls=shows_calls, guardrails=rails)

    @property
    def shows_calls(self) -> bool:
        """True if the messages contain structured calls, because the model's chat template describes the tools."""
        return self._own is not None

    @property
    def guardrails(self) -> Guardrails:
        """The guardrails of a new conversation. If calls are enforced or the model has guided tool choice, the
        guardrails only detect loops and copies, check the required steps, and limit the calls in one answer."""
        is_free = self._constraint not in ("prefer", "required") and self._guided_choice is None
        always = BY_STEPS | WITHIN_ANSWER | COPIES | {"repeated_call", "cycle"}
        return Guardrails(
            self.tools,
            on=self._guardrails if is_free else self._guardrails & always,
            steps=self._steps,
            retries=self._retries,
            encode=self.format.encode_calls,
            max_calls=self.limits.calls,
        )

    def _continue(self, message: str) -> AskModel:
        check_types("Agent", message=(message, str))
        self._is_first_turn, self._message = True, message
        return self._start(message) if self._session is None else self._session.send(message)

    def _build_classification(self) -> tuple[list[Message], JsonObject] | None:
        """Return the messages and fields to classify the user's message, or None if that is not needed."""
        return self._help.build_classification(self._message) if self._help is not None else None

    def _apply_classification(self, query: AskModel, answer: str) -> AskModel:
        assert self._session is not None
        assert self._help is not None
        return self._session.classify_request(query, self._help.read_classification(self._message, answer))

    def _create_answer_reader(self, query: AskModel) -> AnswerReader:
        tools, turn = self.tools, str(query.number)
        self._guided_request = None
        if self._guided_choice is not None and self._client is not None:
            self._guided_request = build_guided_request(
                query, self._client, self._guided_choice, self.format.name, self.workspace, is_first=self._is_first_turn
            )
        self._adjust_for_very_small_model(query)
        self._is_first_turn = False
        format = resolve_format(self.format.name)
        if self._reply is not None:
            replies = ReplyParser(tools, self._reply, turn=turn, format=format)
            self._answer = AnswerReader(replies, self._observe, format=self.format)
            return self._answer
        prompt = self._find_generation_prompt()
        parser = Parser(format, tools, turn=turn, policy=APPROVED, generation_prompt=prompt)
        question = self._help.question if self._help is not None else None
        convert = question.create_converter(self.format) if question is not None else None
        self._answer = AnswerReader(parser, self._observe, self._is_flood, self.format, convert)
        return self._answer

    def _is_flood(self, text: str) -> bool:
        """Return whether an answer that begins with ``text`` has too many calls, or only repeats itself."""
        assert self._session is not None
        turn = parse(text, self.tools, resolve_format(self.format.name), policy=APPROVED)
        return self._session.is_flood(text, turn)

    def _find_generation_prompt(self) -> str | None:
        """Return the text at the end of the prompt that begins the answer, such as an opening reasoning marker.

        Return "" if a call is enforced, or None if the prompt is unknown.
        """
        if self._guided_request is not None:
            return self._guided_request.parsing.generation_prompt
        if self._own is None:
            return None
        return "" if self._answer_constraint.is_active else self._own.template_prompt.traits.generation_prompt

    def _take_next_step(self, answer: AnswerReader) -> AskModel | RunTools | Finished:
        assert self._session is not None
        if self._guided_request is not None:
            add_further_calls(answer, self._message, self.tools, self.format)
        turn, usage = answer.finish()
        self._answer = None
        if self._help is not None:
            self._help.question = None
        self._observe(turn)
        step = self._session.on_answer(turn, usage.prompt if usage else None, answer.finish_reason)
        self._answer_constraint.update(turn, step, self._session.history, self.tools)
        return step

    def _adjust_for_very_small_model(self, query: AskModel) -> None:
        """Ask a very small model for a whole file, or constrain its answer, if it needs help with a file change."""
        if self._help is None or self._session is None:
            return
        history, tools = self._session.history, self.tools
        if self._help.choose_question(query, history, tools) is None:
            self._answer_constraint.constrain_edit(history, tools)

    def build_request(self, query: AskModel) -> tuple[Sequence[Message], JsonObject]:
        """Return the messages for ``query`` and the additional request fields, which only a `ChatClient` supports."""
        if self._guided_request is not None:
            body = dict(self._guided_request.body)
            body.pop("stop", None)
            return body.pop("messages"), body
        if self._help is not None and (question := self._help.build_request()):
            return question
        fields = self._answer_constraint.fields
        if self._is_very_small and self._own is not None and query.in_words and self._answer_constraint.is_active:
            messages = build_plain_question(query.messages, self._message)
            return (messages, fields) if messages else self._own.build_request(query.messages, fields)
        return (query.messages, fields) if self._own is None else self._own.build_request(query.messages, fields)

    def _run_call(self, call: ToolCall) -> ToolResult:
        if self._shortlist is not None and call.name == self._shortlist.finder:
            return ToolResult(call.name, True, self._shortlist.search(call.arguments.get("query")), call_id=call.id)
        (result,) = self.workspace.run_calls(RunTools((call,)))
        return result
