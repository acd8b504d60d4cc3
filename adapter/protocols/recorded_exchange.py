r"""Store exchanges with a model as JSON lines: the request, the model's text and the calls sent to the client.

::

    {"kind": "exchange", "time": "2026-11-21T09:30:00+00:00", "model": "qwen3", "format": "hermes", "sent": {...},
     "tools": [...], "text": "<tool_call>...", "finish_reason": "stop", "calls": [{"name": ..., "arguments": ...}],
     "first_s": 0.8, "calls_s": [2.0], "duration_s": 2.1, "prompt_tokens": 912, "written_tokens": 45}

`adapter serve --record` and ``wrap(client, record=...)`` write exchanges. `adapter parse --exchange` explains an
exchange, and `adapter replay` parses it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from adapter.core.errors import UsageError
from adapter.core.events import Event, JsonObject
from adapter.core.turn import Turn
from adapter.core.validation_errors import explain_validation_error
from adapter.grammars.reply_tool import add_reply_tool
from adapter.parsing.format import Format
from adapter.parsing.formats import resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet


class RecordedCall(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    arguments: JsonObject


class RecordedDrop(BaseModel):
    """A call that was not sent to the client, and the guardrail that dropped it."""

    model_config = ConfigDict(frozen=True)

    name: str
    guardrail: str


class RecordedExchange(BaseModel):
    """One request to the model server and its answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["exchange"] = "exchange"
    time: str = ""
    """When the request was sent."""
    model: str = ""
    format: str
    """The call format described by the prompt. Calls in other formats are also parsed."""
    policy: str
    generation_prompt: str | None = None
    """The end of the prompt, which the model's text continues, for example an opened reasoning block. See `Parser`."""
    sent: JsonObject
    """The request body."""
    messages: tuple[JsonObject, ...] | None = None
    """The client's messages; None if they are equal to the messages in ``sent``."""
    conversation: str = ""
    """Id of the conversation; "" if unknown."""
    tools: tuple[JsonObject, ...]
    """The tools that may be called."""
    is_restricted: bool = False
    """True if only some of the described tools may be called."""
    is_parallel: bool = True
    has_reply: bool = False
    """True if the model was constrained to calls, and one of the tools was a reply in words."""
    text: str
    """The model's text."""
    reasoning: str = ""
    """The reasoning separated from the text by the server."""
    finish_reason: str | None = None
    """The server's finish reason, ``incomplete`` if the server disconnected, or ``abandoned`` if the client did."""
    calls: tuple[RecordedCall, ...] = ()
    asked_again: bool = False
    """True if the answer was retried."""
    guardrail: str = ""
    """The guardrail that rejected the answer, or ""."""
    dropped: tuple[RecordedDrop, ...] = ()
    """Calls withheld from the client."""
    retry: int = 0
    """Number of earlier attempts at the client's request."""
    first_s: float | None = None
    """Seconds from the request to the first part of the answer."""
    reasoning_s: float | None = None
    """Seconds from the request to the last part of the reasoning; None if there is none."""
    calls_s: tuple[float, ...] = ()
    """Seconds from the request to the end of each call in the text, including calls withheld from the client."""
    duration_s: float | None = None
    """Seconds from the request to the end of the answer."""
    prompt_tokens: int | None = None
    """Number of prompt tokens reported by the server; None if it did not report any."""
    written_tokens: int | None = None

    def parse_turn(self, format: Format | None = None, policy: str | None = None) -> Turn:
        """Parse the model's text again. ``format`` and ``policy``, if given, replace the recorded settings."""
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
    """Observes an answer while it is received.

    `receive` is called with the answer's events. Events for reasoning separated from the text by the server have an
    empty ``raw``. `end` is called after the answer. If there was no answer, ``exchange`` is None, and ``why`` is the
    reason.
    """

    def receive(self, events: Sequence[Event]) -> None: ...

    def end(self, exchange: RecordedExchange | None, why: str) -> None: ...


Listen: TypeAlias = Callable[[RecordedExchange], ExchangeListener]
"""Returns a listener for the answer to a request. It is called when the request is sent."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Callbacks for exchanges with the model server."""

    observe: Callable[[RecordedExchange], object] | None = None
    """Called with each exchange when it has ended."""
    listen: Listen | None = None
    """Called when an exchange begins. It returns the listener for the exchange's events."""
    counts_tokens: bool = False
    """True to request the token usage of each stream, even if the client does not."""

    @property
    def is_active(self) -> bool:
        return self.observe is not None or self.listen is not None


def is_exchange_recording(text: str) -> bool:
    """Return whether ``text``, the content of a file, is a recording of exchanges."""
    return text.lstrip().startswith('{"kind": "exchange"')


def read_exchanges(text: str, name: str) -> list[RecordedExchange]:
    """Return the exchanges in a recording. Raises UsageError, which names the file ``name`` and the invalid line."""
    exchanges = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            exchanges.append(RecordedExchange.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(
                f"{name}, line {number}, is not a recorded exchange ({explain_validation_error(error)}); "
                "create one with `adapter serve --record`"
            ) from error
    return exchanges
