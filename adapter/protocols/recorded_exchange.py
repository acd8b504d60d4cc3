r"""Exchanges with a model as lines of JSON: what it was sent, what it wrote, and which calls the client got of that.

::

    {"kind": "exchange", "time": "2026-11-21T09:30:00+00:00", "model": "qwen3", "format": "hermes", "sent": {...},
     "tools": [...], "text": "<tool_call>...", "finish_reason": "stop", "calls": [{"name": ..., "arguments": ...}],
     "first_s": 0.8, "duration_s": 2.1, "prompt_tokens": 912, "written_tokens": 45}

`adapter serve --record` and ``wrap(client, record=...)`` write them, `adapter parse --exchange` shows what became of
one and why, and `adapter replay` reads them all again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from adapter.core.errors import UsageError
from adapter.core.events import Event, JsonObject
from adapter.core.turn import Turn
from adapter.core.validation import explain
from adapter.grammars.reply_tool import add_reply_tool
from adapter.parsing.format import Format
from adapter.parsing.formats import resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.tools.tool import ToolSet


class RecordedCall(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    arguments: JsonObject


class RecordedExchange(BaseModel):
    """One request to the model's server and its answer. ``sent``: the body, at ``time``. ``tools``: those that may be
    called.

    ``text``: what the model wrote, and ``reasoning`` what the server had taken out of that. ``finish_reason``: the
    server's, or ``incomplete`` where it broke off, or ``abandoned`` where the client did. ``asked_again``: a next
    request was to bring something better, because of ``guardrail`` where one found a fault.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["exchange"] = "exchange"
    time: str = ""
    model: str = ""
    format: str
    """How the prompt says that calls are written; they are read in any."""
    policy: str
    generation_prompt: str | None = None
    """As of `Parser`."""
    sent: JsonObject
    messages: tuple[JsonObject, ...] | None = None
    """As the client sent them; None where ``sent`` has the same."""
    conversation: str = ""
    """Which one this belongs to, where who records it knows."""
    tools: tuple[JsonObject, ...]
    is_restricted: bool = False
    """More were described than may be called."""
    is_parallel: bool = True
    has_reply: bool = False
    """The model was held to calls, of which one says something."""
    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    calls: tuple[RecordedCall, ...] = ()
    asked_again: bool = False
    guardrail: str = ""
    retry: int = 0
    """Answers of the client's request that were asked again before this one."""
    first_s: float | None = None
    """Seconds from the request to the first piece of the answer."""
    duration_s: float | None = None
    """Seconds from the request to the end of the answer."""
    prompt_tokens: int | None = None
    """As the server counted; None where it did not say."""
    written_tokens: int | None = None

    def turn(self, format: Format | None = None, policy: str | None = None) -> Turn:
        """The text as the parser reads it, with each piece and why it was taken for what; with ``format`` and
        ``policy`` in the place of those that were recorded."""
        tools = ToolSet(self.tools)
        return parse(
            self.text,
            add_reply_tool(tools)[0] if self.has_reply else tools,
            format or resolve_format(self.format),
            finish_reason=self.finish_reason,
            generation_prompt="" if self.reasoning else self.generation_prompt,
            policy=policy or (APPROVED if self.has_reply else self.policy),
        )


class ExchangeListener(Protocol):
    """Looks on while one answer comes. `take`: what its pieces were read as; reasoning that the server had taken out
    of the text is among it, without ``raw``. `end`: no more comes; without an exchange there was no answer, and ``why``
    says so."""

    def take(self, events: Sequence[Event]) -> None: ...

    def end(self, exchange: RecordedExchange | None, why: str) -> None: ...


Listen: TypeAlias = Callable[[RecordedExchange], ExchangeListener]
"""Called with what is asked, when it is."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Callbacks that see each exchange with the model server. ``clock``: seconds; by default time does not pass."""

    observe: Callable[[RecordedExchange], object] | None = None
    """Called with each finished exchange."""
    listen: Listen | None = None
    """Called when an exchange begins; the listener then sees its events."""
    clock: Callable[[], float] = float
    counts_tokens: bool = False
    """Ask the server for a stream's usage even if the client does not."""

    @property
    def is_active(self) -> bool:
        return self.observe is not None or self.listen is not None


def holds_exchanges(text: str) -> bool:
    """Whether a file's ``text`` is one of exchanges: it says so at its beginning."""
    return text.lstrip().startswith('{"kind": "exchange"')


def read_exchanges(text: str, name: str) -> list[RecordedExchange]:
    """The exchanges of a file called ``name``. Raises UsageError naming the line that is none."""
    exchanges = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            exchanges.append(RecordedExchange.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(
                f"{name}, line {number}: not an exchange ({explain(error)}); `adapter serve --record` writes such files"
            ) from error
    return exchanges
