"""Match requests to the answers in a recording. If no answer matches, describe the differences."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.lines import count_common_prefix
from adapter.core.text.plurals import pluralize
from adapter.core.text.redaction import Redactor
from adapter.protocols.recorded_exchange import RecordedExchange

MAX_SHOWN = 40
"""Maximum number of lines shown for a difference."""


class NotRecordedError(UsageError):
    """Raised if the recording has no answer to a request."""


@dataclass(frozen=True)
class RequestFingerprint:
    """The identity of a request: its messages without call ids, and the names of its tools."""

    messages: tuple[Json, ...]
    tools: tuple[str, ...]

    @classmethod
    def from_request(cls, messages: Json, tools: Iterable[JsonObject]) -> RequestFingerprint:
        message_list = messages if isinstance(messages, list | tuple) else ()
        return cls(
            tuple(map(_normalize_message, message_list)), tuple(sorted(tool["function"]["name"] for tool in tools))
        )

    @property
    def starts_conversation(self) -> bool:
        """True if the request contains no earlier answer."""
        return not any(isinstance(item, dict) and item.get("role") == "assistant" for item in self.messages)


class ReplayModel:
    """Answers each request with one of the recorded ``exchanges``, and uses each of them once. It is thread-safe.

    A request gets the answer to an equal request or, if ``in_order`` is True, the next answer. ``name`` is the name of
    the recording in messages. ``secrets`` redacts requests as in a recording. A test that runs once for each recorded
    answer passes ``run``: the index of the answer to the first request, or of the conversation if ``in_order``. Raises
    NotRecordedError if there are too few conversations.
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
        self._exchanges = [item for item in exchanges if not item.asked_again]
        self._fingerprints = [
            RequestFingerprint.from_request(_get_messages(item), item.tools) for item in self._exchanges
        ]
        self._remaining = list(range(len(self._exchanges)))  # exchanges after the last answer come first
        self._answered_count = 0
        self._lock = threading.Lock()
        if in_order and run:
            starts = [at for at in self._remaining if self._fingerprints[at].starts_conversation]
            if run >= len(starts):
                raise NotRecordedError(f"{name} has {len(starts)} conversations; conversation {run + 1} was requested")
            self._remaining = self._remaining[starts[run] :]

    def find_answer(self, messages: Json, tools: Iterable[JsonObject]) -> RecordedExchange:
        """Return the recorded answer to a request. If there is none, raise NotRecordedError, which shows how the
        request differs from the most similar recorded one."""
        fingerprint = RequestFingerprint.from_request(self._secrets.redact(messages), tools)
        with self._lock:
            candidates = [
                position
                for position, at in enumerate(self._remaining)
                if self._in_order or self._fingerprints[at] == fingerprint
            ]
            if len(candidates) <= self._skipped:
                raise NotRecordedError(self._describe_missing(fingerprint))
            position, self._skipped = candidates[self._skipped], 0
            at = self._remaining[position]
            self._remaining = self._remaining[position + 1 :] + self._remaining[:position]
            self._answered_count += 1
            return self._exchanges[at]

    def _describe_missing(self, fingerprint: RequestFingerprint) -> str:
        same = sum(item == fingerprint for item in self._fingerprints)
        request_name = f"request {self._answered_count + 1}"
        if self._in_order or same:
            count = len(self._fingerprints) if self._in_order else same
            answers = f"{pluralize(count, 'answer')}{'' if self._in_order else ' to this request'}"
            return f"{self._name} has no more answers for {request_name}: it has {answers}"
        if not self._fingerprints:
            return f"{self._name} has no exchanges"
        index, nearest = max(enumerate(self._fingerprints), key=lambda item: _rank_similarity(item[1], fingerprint))
        head = f"{self._name} has no answer to {request_name}. The nearest is exchange {index + 1}"
        return f"{head} (- recorded, + requested):\n{_describe_difference(nearest, fingerprint)}"


def _get_messages(exchange: RecordedExchange) -> Json:
    return exchange.sent.get("messages") if exchange.messages is None else exchange.messages


def _normalize_message(message: Json) -> Json:
    """Drop empty fields and ids, which change every time, and decode the arguments of calls."""
    if not isinstance(message, dict):
        return message
    fields = {key: value for key, value in message.items() if value is not None and key not in ("id", "tool_call_id")}
    if isinstance(calls := fields.get("tool_calls"), list):
        fields["tool_calls"] = [_normalize_call(item) for item in calls]
    return fields


def _normalize_call(call: Json) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    try:
        return {"name": function.get("name"), "arguments": json.loads(function.get("arguments") or "{}")}
    except (TypeError, ValueError):
        return function


def _rank_similarity(one: RequestFingerprint, other: RequestFingerprint) -> tuple[int, float]:
    """Return a sort key for the similarity of two requests. A greater key means that they are more similar.

    It has the number of equal messages at the start, and the similarity of the next message and the tools.
    """
    from rapidfuzz.fuzz import ratio

    same = count_common_prefix(one.messages, other.messages)
    texts = [json.dumps(item.messages[same : same + 1], ensure_ascii=False, default=str) for item in (one, other)]
    return same, ratio(*texts) + (one.tools == other.tools)


def _describe_difference(recorded: RequestFingerprint, fingerprint: RequestFingerprint) -> str:
    from difflib import unified_diff

    same = count_common_prefix(recorded.messages, fingerprint.messages)
    before, after = (_format_lines(item, same) for item in (recorded, fingerprint))
    lines = [line for line in list(unified_diff(before, after, lineterm=""))[2:] if not line.startswith("@@")]
    omitted = [f"... {len(lines) - MAX_SHOWN} more lines"] if len(lines) > MAX_SHOWN else []
    return "\n".join([f"  {same} messages before are the same"] * bool(same) + lines[:MAX_SHOWN] + omitted)


def _format_lines(fingerprint: RequestFingerprint, first: int) -> list[str]:
    """Return lines that show the tools, and the messages from index ``first`` on."""
    texts = [json.dumps(item, ensure_ascii=False, indent=2, default=str) for item in fingerprint.messages[first:]]
    return [f"tools: {', '.join(fingerprint.tools) or 'none'}", *(line for text in texts for line in text.split("\n"))]
