"""A request as it goes to the model's server, with all that reading its answer takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from adapter.formats import DEFAULT_FORMAT, get_format
from adapter.reading.policy import APPROVED
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError
from adapter.values.events import JsonObject, ToolCall
from adapter.values.fields import field, frozen, replace
from adapter.wire.account import Account
from adapter.wire.llama_cpp import without_grammar
from adapter.wire.memory import Memory
from adapter.wire.tool_kinds import FUNCTIONS, Kinds
from adapter.wire.watching import said_after

if TYPE_CHECKING:  # reading an answer again takes nothing of how a request is made
    from adapter.constraints.modes import Constraint
    from adapter.constraints.shapes import Choices
    from adapter.conversation.guardrails.guardrails import AskAgain
    from adapter.prompting.intent.tool_shortlist import Shortlist
    from adapter.wire.options import Enforce
    from adapter.wire.recorded import Exchange, Listen
    from adapter.wire.watching import Watch


@frozen
class Request:
    """``body`` goes to the model's server; the rest is for reading its answer."""

    body: JsonObject
    tools: ToolSet
    """Those that may be called: none with ``tool_choice: "none"``."""
    parallel: bool = True
    stream: bool = False
    wants_usage: bool = False
    stream_arguments: bool = False
    answers: int = 1
    """How many were asked for."""
    kinds: Kinds = FUNCTIONS
    """In which form the client gets calls."""
    policy: str = "safe"
    turn: str = ""
    """Tells this turn from others of the conversation, for the ids of its calls."""
    generation_prompt: str | None = None
    """As of `Options`; "" where the answer begins with a call because the server enforces that."""
    is_restricted: bool = False
    """Only some of the described tools may be called: calls of others are text."""
    reply: Tool | None = None
    """By which the model, held to calls, says something."""
    is_native: bool = False
    """The server reads calls, too: those are handed on."""
    as_text: Callable[[], Request] | None = None
    """The same for a server that turns out to take no tools, where it was given them."""
    memory: Memory = field(default_factory=Memory)
    observe: Callable[[Exchange], object] | None = None
    messages: list[JsonObject] | None = None
    """As the client sent them."""
    counts_tokens: bool = False
    """As of `Options`."""
    account: Account = field(default_factory=Account)
    listen: Listen | None = None
    """As of `Options`."""
    clock: Callable[[], float] = float
    """Seconds, for those two."""
    format: str = DEFAULT_FORMAT
    control_tokens: tuple[str, ...] = ()
    """As of `Options`."""
    constraint: Constraint = "off"
    enforce: Enforce | None = None
    choices: Choices = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    """The calls, as `key_of` puts them, whose results end the conversation."""

    watch: Watch | None = None
    """What of the answer is asked again; None: nothing."""
    few: Shortlist | None = None
    """Of many tools, those that are described."""
    lookups: int = 0
    """How often the model has searched among the others."""

    def looked_up(self, call: ToolCall, wrote: str) -> Request:
        """What to ask after a search among tools that are not described, whose result goes with it."""
        assert self.few is not None
        said = self.few.found(call.arguments.get("query"))
        result = get_format(self.format).encode_result(call.name, said, call.id)
        body = self.body | {"messages": said_after(self.body["messages"], wrote, result)}
        return replace(self, body=body, turn=f"{self.turn}+", lookups=self.lookups + 1)

    def again(self, ask: AskAgain, wrote: str) -> Request:
        """What to ask after an answer that was of no use, which read ``wrote``: the same, and what is said about it.

        Held to a call where one is to be made again and the server takes that. Not all that take it obey.
        """
        tools = ToolSet([self.tools[name] for name in ask.held_to if name in self.tools])
        held = self._held(tools) if tools and self.watch and self.watch.may_hold else None
        base = held or replace(self, turn=f"{self.turn}+")
        return replace(base, body=base.body | {"messages": said_after(base.body["messages"], wrote, ask.message)})

    def replying(self) -> Request | None:
        """What to ask when the model only repeated the calls whose results it has: the same, held to a reply."""
        return self._held(ToolSet([self.reply])) if self.reply else None

    def _held(self, tools: ToolSet) -> Request | None:
        try:
            fields = self.enforce(tools, self.choices, format=self.format) if self.enforce else {}
        except UsageError:  # too large, or nothing left to choose
            fields = {}
        if not fields:
            return None
        body = without_grammar(self.body) | fields
        turn = f"{self.turn}+"  # its calls need ids of their own
        return replace(self, body=body, turn=turn, policy=APPROVED.name, constraint="required", generation_prompt="")
