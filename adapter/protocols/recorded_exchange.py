r"""Exchanges with a model, recorded as JSON lines: the request, the model's text and the calls sent to the client.

::

    {"kind": "exchange", "time": "2026-11-21T09:30:00+00:00", "model": "qwen3", "format": "hermes", "sent": {...},
     "tools": [...], "text": "<tool_call>...", "finish_reason": "stop", "calls": [{"name": ..., "arguments": ...}],
     "first_s": 0.8, "duration_s": 2.1, "prompt_tokens": 912, "written_tokens": 45}

Written by `adapter serve --record` and ``wrap(client, record=...)``, explained by `adapter parse --exchange`, and
parsed again by `adapter replay`.
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
    """One request to the model server and its answer. ``sent``: the body, at ``time``. ``tools``: those that may be
    called.

    ``text``: the model's text; ``reasoning``: text that the server had split off. ``finish_reason``: the server's, or
    ``incomplete`` if it disconnected, or ``abandoned`` if the client did. ``asked_again``: the answer was retried,
    because of ``guardrail`` if one rejected it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["exchange"] = "exchange"
    time: str = ""
    model: str = ""
    format: str
    """The format of calls in the prompt; calls in other formats are parsed as well."""
    policy: str
    generation_prompt: str | None = None
    """See `Parser`."""
    sent: JsonObject
    messages: tuple[JsonObject, ...] | None = None
    """As the client sent them; None if equal to those in ``sent``."""
    conversation: str = ""
    """Id of the conversation, if the recorder knows it."""
    tools: tuple[JsonObject, ...]
    is_restricted: bool = False
    """Only some of the described tools may be called."""
    is_parallel: bool = True
    has_reply: bool = False
    """The model was constrained to calls, one of which replies in words."""
    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    calls: tuple[RecordedCall, ...] = ()
    asked_again: bool = False
    guardrail: str = ""
    retry: int = 0
    """Number of retries of the client's request before this answer."""
    first_s: float | None = None
    """Seconds from the request to the first piece of the answer."""
    duration_s: float | None = None
    """Seconds from the request to the end of the answer."""
    prompt_tokens: int | None = None
    """As counted by the server; None if it reports none."""
    written_tokens: int | None = None

    def turn(self, format: Format | None = None, policy: str | None = None) -> Turn:
        """Parse the text, with ``format`` and ``policy`` instead of the recorded ones."""
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
    """Observes one answer. `take`: its events, including reasoning that the server had split off, without ``raw``.
    `end`: the answer is complete; ``exchange`` is None if it never began, for the reason ``why``."""

    def take(self, events: Sequence[Event]) -> None: ...

    def end(self, exchange: RecordedExchange | None, why: str) -> None: ...


Listen: TypeAlias = Callable[[RecordedExchange], ExchangeListener]
"""Called with each request when it is sent."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Callbacks for each exchange with the model server."""

    observe: Callable[[RecordedExchange], object] | None = None
    """Called with each finished exchange."""
    listen: Listen | None = None
    """Called when an exchange begins; the listener then gets its events."""
    counts_tokens: bool = False
    """Request the token usage of a stream even if the client does not."""

    @property
    def is_active(self) -> bool:
        return self.observe is not None or self.listen is not None


def holds_exchanges(text: str) -> bool:
    """Return whether the ``text`` of a file begins with an exchange."""
    return text.lstrip().startswith('{"kind": "exchange"')


def read_exchanges(text: str, name: str) -> list[RecordedExchange]:
    """Return the exchanges in a file called ``name``. Raises UsageError with the number of an invalid line."""
    exchanges = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            exchanges.append(RecordedExchange.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(
                f"{name}, line {number}, is not a recorded exchange ({explain(error)}); "
                "create one with `adapter serve --record`"
            ) from error
    return exchanges
