"""A request as it goes to the model server, with the settings for reading its answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject, ToolCall
from adapter.grammars.reply_tool import ReplyParser, add_reply_tool
from adapter.parsing.formats import DEFAULT_FORMAT, get_format, resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import Parser
from adapter.protocols.guarded_exchange import with_retry_message
from adapter.protocols.llama_cpp import without_grammar
from adapter.protocols.recorded_exchange import Observation, RecordedExchange
from adapter.protocols.request_stats import RequestStats
from adapter.protocols.tool_types import FUNCTIONS, ToolTypes
from adapter.protocols.verbatim_calls import VerbatimCallCache
from adapter.tools.tool import Tool, ToolSet

if TYPE_CHECKING:  # reading a recording again needs none of these
    from adapter.conversation.guardrails.engine import Retry
    from adapter.grammars.constraint_mode import Constraint
    from adapter.grammars.schema_ir import Choices
    from adapter.prompting.intent.tool_shortlist import ToolShortlist
    from adapter.protocols.guarded_exchange import ResponseGuard
    from adapter.protocols.translation_options import ConstraintBuilder


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The client's own wishes for its answer. ``messages``: as it sent them. ``answers``: its ``n``."""

    messages: list[JsonObject] | None = None
    stream: bool = False
    wants_usage: bool = False
    parallel: bool = True
    answers: int = 1
    kinds: ToolTypes = FUNCTIONS
    """The shape of its tool calls."""


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """How the model's text is read. ``generation_prompt``: of `PromptSettings`; "" where a call is enforced."""

    format: str = DEFAULT_FORMAT
    policy: str = "safe"
    generation_prompt: str | None = None
    stream_arguments: bool = False
    control_tokens: tuple[str, ...] = ()
    is_restricted: bool = False
    """Only some of the described tools may be called: calls of others are text."""
    reply: Tool | None = None
    """The tool by which a constrained model answers in words."""

    @classmethod
    def of(cls, exchange: RecordedExchange) -> ParserSettings:
        """How a recorded text was read for the client."""
        return cls(
            format=exchange.format,
            policy=exchange.policy,
            generation_prompt="" if exchange.reasoning else exchange.generation_prompt,
            is_restricted=exchange.is_restricted,
            reply=add_reply_tool(ToolSet(exchange.tools))[1] if exchange.has_reply else None,
        )


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How an unusable answer is followed by another request. ``watch``: decides on that; None accepts any answer."""

    watch: ResponseGuard | None = None
    constraint: Constraint = "off"
    enforce: ConstraintBuilder | None = None
    choices: Choices = field(default_factory=dict)
    previous_calls: frozenset[str] = frozenset()
    """The calls, as `key_of` writes them, whose results end the conversation."""
    shortlist: ToolShortlist | None = None
    """The tools that are described, of many."""
    lookups: int = 0
    """How often the model has searched the other tools."""


@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """``body`` goes to the model server; the rest is for reading its answer. ``tools``: those that may be called, none
    with ``tool_choice: "none"``. ``turn``: identifies this turn of the conversation in the ids of its calls."""

    body: JsonObject
    tools: ToolSet
    turn: str = ""
    client: ClientSettings = field(default_factory=ClientSettings)
    parsing: ParserSettings = field(default_factory=ParserSettings)
    follow_up: FollowUp = field(default_factory=FollowUp)
    observation: Observation = field(default_factory=Observation)
    memory: VerbatimCallCache = field(default_factory=VerbatimCallCache)
    account: RequestStats = field(default_factory=RequestStats)
    is_native: bool = False
    """The server parses calls as well; its calls are forwarded."""
    as_text: Callable[[], TranslatedRequest] | None = None
    """The same request for a server that refuses the tools that it was given."""

    def make_parser(self, index: int, generation_prompt: str | None, *, streams: bool) -> Parser | ReplyParser:
        """The parser for answer ``index``, whose text continues ``generation_prompt``."""
        how, turn = self.parsing, f"{self.turn}{index or ''}"
        format, streams = resolve_format(how.format), how.stream_arguments and streams
        if how.reply is not None:
            return ReplyParser(self.tools, how.reply, turn=turn, stream_arguments=streams, format=format)
        return Parser(
            format, tools=self.tools, generation_prompt=generation_prompt, turn=turn, policy=how.policy,
            stream_arguments=streams,
        )  # fmt: skip

    def with_lookup(self, call: ToolCall, wrote: str) -> TranslatedRequest:
        """The next request after ``call`` searched the tools that are not described."""
        follow_up = self.follow_up
        assert follow_up.shortlist is not None
        found = follow_up.shortlist.found(call.arguments.get("query"))
        result = get_format(self.parsing.format).encode_result(call.name, found, call.id)
        next_up = replace(follow_up, lookups=follow_up.lookups + 1)
        return replace(self, turn=f"{self.turn}+", follow_up=next_up)._saying(wrote, result)

    def with_retry(self, ask: Retry, wrote: str) -> TranslatedRequest:
        """The next request after an unusable answer, which reads ``wrote``.

        A call is enforced where one is to be repeated and the server supports that; servers do not always comply.
        """
        watch = self.follow_up.watch
        tools = ToolSet([self.tools[name] for name in ask.held_to if name in self.tools])
        held = self._enforcing(tools) if tools and watch and watch.may_hold else None
        return (held or replace(self, turn=f"{self.turn}+"))._saying(wrote, ask.message)

    def without_tools(self) -> TranslatedRequest | None:
        """The next request after a constrained model only repeated calls: it has to reply in words."""
        return self._enforcing(ToolSet([self.parsing.reply])) if self.parsing.reply else None

    def _saying(self, wrote: str, message: str) -> TranslatedRequest:
        return replace(self, body=self.body | {"messages": with_retry_message(self.body["messages"], wrote, message)})

    def _enforcing(self, tools: ToolSet) -> TranslatedRequest | None:
        how, fields = self.follow_up, JsonObject()
        if how.enforce is not None:
            with suppress(UsageError):  # too large, or nothing left to choose
                fields = how.enforce(tools, how.choices, format=self.parsing.format)
        if not fields:
            return None
        return replace(
            self,
            body=without_grammar(self.body) | fields,
            turn=f"{self.turn}+",  # its calls need ids of their own
            parsing=replace(self.parsing, policy=APPROVED.name, generation_prompt=""),
            follow_up=replace(how, constraint="required"),
        )
