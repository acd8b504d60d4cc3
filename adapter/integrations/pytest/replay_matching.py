"""A recording in the place of a model: which of its answers a request gets, or how the request differs from all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.protocols.recorded_exchange import RecordedExchange

MAX_SHOWN = 40
"""Lines of a difference."""


class NotRecordedError(UsageError):
    """A recording holds no answer to a request."""


@dataclass(frozen=True)
class RequestFingerprint:
    """What tells a request from others: its messages, without the ids of calls, and the names of its tools."""

    messages: tuple[Json, ...]
    tools: tuple[str, ...]

    @classmethod
    def of(cls, messages: Json, tools: Iterable[JsonObject]) -> RequestFingerprint:
        listed = messages if isinstance(messages, list | tuple) else ()
        return cls(tuple(map(_told, listed)), tuple(sorted(tool["function"]["name"] for tool in tools)))

    @property
    def begins(self) -> bool:
        """Whether nothing was answered before."""
        return not any(isinstance(each, dict) and each.get("role") == "assistant" for each in self.messages)


class ReplayModel:
    """The answers of ``exchanges``, each of which is given once: to a request that asks the same, or in their order.

    ``name``: of the file. ``secrets``: what a recording made here would be cleaned of. ``run``: of a test that runs on
    several answers: it begins with that answer to its first request, or ``in_order`` with that conversation. For any
    number of threads. Raises NotRecordedError where there are fewer conversations.
    """

    def __init__(
        self,
        exchanges: Sequence[RecordedExchange],
        name: str,
        secrets: Redactor,
        *,
        run: int = 0,
        in_order: bool = False,
    ) -> None:
        self._name, self._secrets, self._in_order, self._skipped = name, secrets, in_order, 0 if in_order else run
        self._exchanges = [each for each in exchanges if not each.asked_again]
        self._asked = [RequestFingerprint.of(_messages(each), each.tools) for each in self._exchanges]
        self._left = list(range(len(self._exchanges)))  # those ahead of the last one that was given come first
        self._given = 0
        self._choosing = threading.Lock()
        if in_order and run:
            begins = [at for at in self._left if self._asked[at].begins]
            if run >= len(begins):
                raise NotRecordedError(f"{name} holds {len(begins)} conversations; conversation {run + 1} was wanted")
            self._left = self._left[begins[run] :]

    def answer(self, messages: Json, tools: Iterable[JsonObject]) -> RecordedExchange:
        """The answer to a request. Raises NotRecordedError, which says how the nearest recorded request differs."""
        asked = RequestFingerprint.of(self._secrets.redact(messages), tools)
        with self._choosing:
            found = [place for place, at in enumerate(self._left) if self._in_order or self._asked[at] == asked]
            if len(found) <= self._skipped:
                raise NotRecordedError(self._missing(asked))
            place, self._skipped = found[self._skipped], 0
            at = self._left[place]
            self._left = self._left[place + 1 :] + self._left[:place]
            self._given += 1
            return self._exchanges[at]

    def _missing(self, asked: RequestFingerprint) -> str:
        same = sum(each == asked for each in self._asked)
        this = f"request {self._given + 1}"
        if self._in_order or same:
            had = f"{len(self._asked)} answers" if self._in_order else f"{same} answers to this request"
            return f"{self._name} holds no more answers: {this} was asked, and there are {had}"
        if not self._asked:
            return f"{self._name} holds no exchange"
        nearest = max(range(len(self._asked)), key=lambda at: _likeness(self._asked[at], asked))
        told = f"{self._name} holds no answer to {this}. Nearest is its exchange {nearest + 1} (- recorded, + asked):"
        return f"{told}\n{_difference(self._asked[nearest], asked)}"


def _messages(exchange: RecordedExchange) -> Json:
    return exchange.sent.get("messages") if exchange.messages is None else exchange.messages


def _told(message: Json) -> Json:
    """A message without what is empty, and without ids, which are new each time; arguments as values."""
    if not isinstance(message, dict):
        return message
    kept = {key: value for key, value in message.items() if value is not None and key not in ("id", "tool_call_id")}
    if isinstance(calls := kept.get("tool_calls"), list):
        kept["tool_calls"] = [_told_call(each) for each in calls]
    return kept


def _told_call(call: Json) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    try:
        return {"name": function.get("name"), "arguments": json.loads(function.get("arguments") or "{}")}
    except (TypeError, ValueError):
        return function


def _likeness(one: RequestFingerprint, other: RequestFingerprint) -> tuple[int, float]:
    """How many messages are the same from the beginning, and how like the next ones are."""
    from rapidfuzz.fuzz import ratio

    same = _same(one.messages, other.messages)
    texts = [json.dumps(each.messages[same : same + 1], ensure_ascii=False, default=str) for each in (one, other)]
    return same, ratio(*texts) + (one.tools == other.tools)


def _same(one: Sequence[Json], other: Sequence[Json]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _difference(recorded: RequestFingerprint, asked: RequestFingerprint) -> str:
    from difflib import unified_diff

    same = _same(recorded.messages, asked.messages)
    before, after = (_lines(each, same) for each in (recorded, asked))
    lines = [line for line in list(unified_diff(before, after, lineterm=""))[2:] if not line.startswith("@@")]
    more = [f"... {len(lines) - MAX_SHOWN} more lines"] if len(lines) > MAX_SHOWN else []
    return "\n".join([f"  {same} messages before are the same"] * bool(same) + lines[:MAX_SHOWN] + more)


def _lines(asked: RequestFingerprint, first: int) -> list[str]:
    """The tools, and the messages from the ``first`` that differs."""
    texts = [json.dumps(each, ensure_ascii=False, indent=2, default=str) for each in asked.messages[first:]]
    return [f"tools: {', '.join(asked.tools) or 'none'}", *(line for text in texts for line in text.split("\n"))]
