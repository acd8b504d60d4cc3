"""A request as it goes to the model's server, with all that reading its answer takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from adapter.constraints.modes import Constraint
from adapter.constraints.shapes import Choices
from adapter.reading.policy import APPROVED
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError
from adapter.values.events import JsonObject
from adapter.wire.llama_cpp import without_grammar
from adapter.wire.memory import Memory
from adapter.wire.options import DEFAULT_FORMAT, Enforce
from adapter.wire.recorded import Exchange
from adapter.wire.tool_kinds import FUNCTIONS, Kinds


@dataclass(frozen=True, slots=True)
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
    format: str = DEFAULT_FORMAT
    constraint: Constraint = "off"
    enforce: Enforce | None = None
    choices: Choices = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    """The calls, as `key_of` puts them, whose results end the conversation."""

    def mended(self, name: str | None) -> Request | None:
        """What to ask when a call was broken: the same, held to a call of the tool it named, or of any.

        None where that cannot be enforced.
        """
        tools = ToolSet([self.tools[name]]) if name and name in self.tools else self.tools
        return self._held(tools) if self.constraint == "arguments" else None

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


def key_of(name: str, arguments: JsonObject) -> str:
    """Equal for calls that ask for the same thing."""
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
