"""Define a request translated for the model server, and build its follow-up requests, such as retries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from adapter.conversation.guardrails.registry import BROKEN_CALLS
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject, ToolCall
from adapter.grammars.reply_tool import ReplyParser, add_reply_tool
from adapter.parsing.formats import DEFAULT_FORMAT, get_format, resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import Parser
from adapter.protocols.conversation_cache import VerbatimCallCache
from adapter.protocols.custom_and_legacy_tools import FUNCTIONS, ToolTypes
from adapter.protocols.exchange_guardrails import with_retry_message
from adapter.protocols.llama_cpp_completion import has_lazy_grammar, remove_grammar
from adapter.protocols.reasoning_budget import (
    BYTES_PER_TOKEN,
    REASONING_HEADER,
    SERVER_FIELDS,
    SERVER_MARGIN,
    find_closing_words,
)
from adapter.protocols.recorded_exchange import Observation, RecordedExchange
from adapter.protocols.request_stats import RequestStats
from adapter.protocols.template_prompt import (
    CONTINUED,
    LIMITS,
    Prefill,
    continue_text,
    find_transport,
    with_shorter_limit,
)
from adapter.protocols.token_budgets import build_shortened_header
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:  # not needed for replaying a recording
    from adapter.conversation.guardrails.verdicts import Retry
    from adapter.grammars.constraint_mode import Constraint
    from adapter.grammars.schema_ir import Choices
    from adapter.prompting.tool_shortlist import ToolShortlist
    from adapter.protocols.exchange_guardrails import ExchangeGuardrails
    from adapter.protocols.translation_options import ConstraintBuilder


NextCall: TypeAlias = Callable[[Sequence[tuple[str, JsonObject]]], "TranslatedRequest | None"]
"""Takes the names and arguments of an answer's calls, and returns the request for a further call, or None."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of the client's request: its unchanged ``messages``, whether it wants a stream, token usage or parallel
    calls, and the number of ``answers`` (``n``)."""

    messages: list[JsonObject] | None = None
    stream: bool = False
    wants_usage: bool = False
    parallel: bool = True
    answers: int = 1
    kinds: ToolTypes = FUNCTIONS
    """The types of the client's tools."""


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """Settings for parsing the model's text.

    ``generation_prompt`` is explained in `PromptSettings`; it is "" if a call is enforced.
    """

    format: str = DEFAULT_FORMAT
    policy: str = "safe"
    generation_prompt: str | None = None
    stream_arguments: bool = False
    control_tokens: tuple[str, ...] = ()
    is_restricted: bool = False
    """True if only some of the described tools may be called. Calls to other tools are dropped."""
    described: ToolSet = field(default_factory=ToolSet)
    """All described tools, if only some may be called. Calls to the other tools are recognized, and dropped."""
    reply: Tool | None = None
    """The tool that a constrained model calls to reply in words."""

    @classmethod
    def from_recording(cls, exchange: RecordedExchange) -> ParserSettings:
        """Return the parser settings that a recorded exchange was parsed with."""
        return cls(
            format=exchange.format,
            policy=exchange.policy,
            generation_prompt="" if exchange.reasoning else exchange.generation_prompt,
            is_restricted=exchange.is_restricted,
            reply=add_reply_tool(ToolSet(exchange.tools))[1] if exchange.has_reply else None,
        )


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Settings for retries and other follow-up requests. ``guardrails`` decides on retries; None accepts all
    answers."""

    guardrails: ExchangeGuardrails | None = None
    must_call: bool = False
    """True if the client requires a call."""
    constraint: Constraint = "off"
    enforce: ConstraintBuilder | None = None
    choices: Choices = field(default_factory=dict)
    previous_calls: frozenset[str] = frozenset()
    """If tool results end the conversation, the keys of their calls, built by `build_call_key`."""
    shortlist: ToolShortlist | None = None
    """The tools that are described to the model, or None if all tools are described."""
    next_call: NextCall | None = None
    """Builds the request for a further call in the same answer, for guided tool choice."""
    lookups: int = 0
    """Number of times the model has searched for tools."""


@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """A request for the model server, and settings for its answer."""

    body: JsonObject
    """The request body."""
    tools: ToolSet
    """The tools that may be called. It is empty for ``tool_choice: "none"``."""
    turn: str = ""
    """Hash that becomes part of the call ids, so that they differ between turns."""
    beginning: str = ""
    """Hash of the client's messages. It is part of the answer's key in ``memory``."""
    shortened: str = ""
    """Value of the header that counts the cuts in the conversation, or "" if there are none."""
    reasoning_budget: int | None = None
    """Maximum number of tokens of reasoning."""
    prefill: Prefill = "message"
    is_continuation: bool = False
    """True if the model continues its own text, and the client already has the beginning of that text."""
    begun_call: str = ""
    """The text that the model continues, if it ends with an incomplete call."""
    client: ClientSettings = field(default_factory=ClientSettings)
    parsing: ParserSettings = field(default_factory=ParserSettings)
    follow_up: FollowUp = field(default_factory=FollowUp)
    observation: Observation = field(default_factory=Observation)
    memory: VerbatimCallCache = field(default_factory=VerbatimCallCache)
    stats: RequestStats = field(default_factory=RequestStats)
    is_native: bool = False
    """True if the server describes the tools and parses the calls, which are then forwarded."""
    as_text: Callable[[], TranslatedRequest] | None = None
    """Returns the same request with a generated prompt, for a server that rejects the tools or the chat template."""
    clock: Callable[[], float] = float
    """Function that returns the time in seconds."""

    @property
    def headers(self) -> dict[str, str]:
        """The response headers about the budgets."""
        budget = {} if self.reasoning_budget is None else {REASONING_HEADER: f"budget={self.reasoning_budget}"}
        return build_shortened_header(self.shortened) | budget

    @property
    def reasoning_limit(self) -> float | None:
        """Number of reasoning tokens after which this library ends the reasoning, or None for no limit. It is higher
        than the budget if the server also enforces the budget."""
        if self.reasoning_budget is None:
            return None
        has_field = not self.body.keys().isdisjoint(SERVER_FIELDS.values())
        is_chat = find_transport(self.body) in (None, "vllm") and not has_lazy_grammar(self.body)
        has_server_limit = has_field and is_chat
        return self.reasoning_budget * (SERVER_MARGIN if has_server_limit else 1)

    def with_closed_reasoning(self, raw: str, reasoning: str) -> TranslatedRequest | None:
        """Return a follow-up request that closes the unfinished reasoning and lets the model write its answer. Return
        None if the reasoning cannot be closed.

        ``raw`` is the model's text, and ``reasoning`` the reasoning separated from it by the server.
        """
        format = get_format(self.parsing.format)
        begun = f"{next(iter(format.reasoning), '')}\n{reasoning}" if reasoning else raw
        closing = find_closing_words(format, (self.parsing.generation_prompt or "") + begun)
        if closing is None or self.is_continuation or self.is_native or self.client.answers > 1:
            return None
        body = with_shorter_limit(self.body, len(begun) // BYTES_PER_TOKEN)
        return replace(
            self,
            body=continue_text(body, begun + closing, self.prefill),
            turn=f"{self.turn}+",
            parsing=replace(self.parsing, generation_prompt=""),
            is_continuation=True,
        )

    def with_continued_call(self, raw: str, reasoning: str) -> TranslatedRequest | None:
        """Return a follow-up request that lets the model continue a call that was cut off at a limit. Return None if
        the client set the limit, or if the text cannot be continued. For the parameters, see
        `with_closed_reasoning`."""
        opening, closing = next(iter(get_format(self.parsing.format).reasoning.items()), ("", ""))
        begun = f"{opening}\n{reasoning}\n{closing}\n\n{raw}" if reasoning else raw
        limits = [self.body[name] for name in LIMITS if isinstance(self.body.get(name), int)]
        is_limit_reached = any(limit <= len(begun) for limit in limits)  # a token has at least one character
        is_fixed = self.is_continuation or self.is_native or self.client.answers > 1
        if is_fixed or is_limit_reached or self.follow_up.constraint != "off" or (reasoning and not closing):
            return None
        body = with_shorter_limit(self.body, len(begun) // BYTES_PER_TOKEN)
        body = continue_text(body, begun, self.prefill)
        return replace(self, body=body, is_continuation=True, begun_call=raw)

    def make_parser(self, index: int, generation_prompt: str | None, *, streams: bool) -> Parser | ReplyParser:
        """Return the parser for the choice ``index``. The choice's text continues ``generation_prompt``. ``streams`` is
        False to report calls only when they are complete."""
        settings, turn = self.parsing, f"{self.turn}{index or ''}"
        format, streams = resolve_format(settings.format), settings.stream_arguments and streams
        tools = settings.described or self.tools
        if settings.reply is not None:
            return ReplyParser(self.tools, settings.reply, turn=turn, stream_arguments=streams, format=format)
        return Parser(
            format, tools=tools, generation_prompt=generation_prompt, turn=turn, policy=settings.policy,
            stream_arguments=streams,
        )  # fmt: skip

    def with_lookup(self, call: ToolCall, written_text: str) -> TranslatedRequest:
        """Return the follow-up request with the result of ``call``, which searches for tools that are not described."""
        follow_up = self.follow_up
        assert follow_up.shortlist is not None
        matches = follow_up.shortlist.search(call.arguments.get("query"))
        result = get_format(self.parsing.format).encode_result(call.name, matches, call.id)
        next_up = replace(follow_up, lookups=follow_up.lookups + 1)
        return replace(self, turn=f"{self.turn}+", follow_up=next_up)._with_exchange(written_text, result)

    def with_retry(self, retry: Retry, written_text: str) -> TranslatedRequest:
        """Return the follow-up request after the unusable answer ``written_text``.

        If the retry requires certain calls and the server supports constraints, one of these calls is enforced. Not all
        servers obey the constraint.
        """
        guardrails = self.follow_up.guardrails
        tools = ToolSet([self.tools[name] for name in retry.held_to if name in self.tools])
        enforced = self._with_enforced_call(tools) if tools and guardrails and guardrails.may_enforce else None
        request = enforced or replace(self, turn=f"{self.turn}+")
        if retry.guardrail in BROKEN_CALLS and "stop" in request.body:  # a client's stop string may have cut the call
            stops = list(get_format(self.parsing.format).stop_sequences)
            request = replace(request, body=request.body | {"stop": stops})
        return request._with_exchange(written_text, retry.message)

    def with_enforced_reply(self) -> TranslatedRequest | None:
        """Return a follow-up request that enforces a reply in words, after an answer that left nothing for the client.
        Return None if the server cannot enforce one."""
        if self.parsing.reply:
            return self._with_enforced_call(ToolSet([self.parsing.reply]))
        enforce, guardrails = self.follow_up.enforce, self.follow_up.guardrails
        fields = (
            enforce(ToolSet(), {}, format=self.parsing.format)
            if enforce and guardrails and guardrails.may_enforce
            else None
        )
        follow_up = replace(self.follow_up, enforce=None)
        body = remove_grammar(self.body) | (fields or {})
        return replace(self, body=body, turn=f"{self.turn}+", follow_up=follow_up) if fields else None

    def _with_exchange(self, written_text: str, message: str) -> TranslatedRequest:
        messages = with_retry_message(self.body["messages"], written_text, message)
        body = {key: value for key, value in self.body.items() if key != CONTINUED}
        return replace(self, body=body | {"messages": messages})

    def _with_enforced_call(self, tools: ToolSet) -> TranslatedRequest | None:
        follow_up, fields = self.follow_up, JsonObject()
        if follow_up.enforce is not None:
            with suppress(UsageError):  # the grammar is too large, or a value has no choices
                fields = follow_up.enforce(tools, follow_up.choices, format=self.parsing.format)
        if not fields:
            return None
        return replace(
            self,
            body=remove_grammar(self.body) | fields,
            turn=f"{self.turn}+",  # so that its call ids differ
            parsing=replace(self.parsing, policy=APPROVED.name, generation_prompt=""),
            follow_up=replace(follow_up, constraint="required"),
        )
