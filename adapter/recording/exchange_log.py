"""Write the exchanges of a server or wrapped client to a file, and compare recorded calls with a new parse."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapter.core.errors import UsageError
from adapter.core.events import Event, Json, ReasoningDelta
from adapter.core.private_files import open_private
from adapter.core.text.redaction import Redactor
from adapter.core.turn import Turn
from adapter.protocols.choice_stream import ABANDONED, INCOMPLETE
from adapter.protocols.openai_chat_response import StreamedCompletion
from adapter.protocols.recorded_exchange import Observation, RecordedCall, RecordedExchange
from adapter.protocols.translated_request import ClientSettings, ParserSettings, TranslatedRequest
from adapter.tools.schema_violation_messages import select_allowed_arguments
from adapter.tools.tool_set import ToolSet

SYNC_CHARACTERS = 32_000
"""Maximum length of an exchange that is written immediately, not in the background, in characters."""
MAX_LISTED = 20
"""Maximum number of calls listed in the description of a difference."""


class ExchangeLog:
    """Appends each exchange to ``file`` as a JSON line.

    ``secrets`` redacts credentials. A new file is readable only by its owner. Raises UsageError if the file cannot be
    written. Later errors are only logged. Large exchanges are written in the background, so that responses do not wait
    for the file. All are written before the process exits.
    """

    def __init__(self, file: Path, secrets: Redactor) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._file, self._secrets = file, secrets
        self._write_lock = threading.Lock()
        self._background = ThreadPoolExecutor(1, "record")
        try:
            self._append("")
        except OSError as error:
            raise UsageError(f"cannot record in {str(file)!r}: {error.strerror}; choose another file") from error

    def __reduce__(self) -> tuple[type[ExchangeLog], tuple[Path, Redactor]]:
        """Support pickling for worker processes. They all append to the same file."""
        return ExchangeLog, (self._file, self._secrets)

    def __call__(self, exchange: RecordedExchange) -> None:
        if _is_larger(exchange.sent, SYNC_CHARACTERS - len(exchange.text) - len(exchange.reasoning)):
            with suppress(RuntimeError):  # the process is exiting
                self._background.submit(self._write, exchange)
                return
        self._write(exchange)

    def _write(self, exchange: RecordedExchange) -> None:
        began = datetime.now(UTC) - timedelta(seconds=exchange.duration_s or 0.0)
        time = began.isoformat(timespec="milliseconds")
        try:
            self._append(encode_exchange(exchange.model_copy(update={"time": time}), self._secrets))
        except OSError as error:
            import logging

            logging.getLogger(__name__).warning("cannot record an exchange in %s: %s", self._file, error.strerror)

    def _append(self, text: str) -> None:
        with self._write_lock:
            descriptor = open_private(self._file, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)


def encode_exchange(exchange: RecordedExchange, secrets: Redactor) -> str:
    """Return the log line for an exchange, with its line ending. Credentials are redacted."""
    return json.dumps(secrets.redact(exchange.model_dump(mode="json"))) + "\n"


def _is_larger(value: Json, size: int) -> bool:
    """Return whether the text in ``value`` has more than ``size`` characters, without counting any further ones."""
    pending = [value]
    while pending and size >= 0:
        match pending.pop():
            case str() as text:
                size -= len(text)
            case dict() as inner:
                pending += [*inner.keys(), *inner.values()]
            case list() as inner:
                pending += inner
            case _:
                size -= 4
    return size < 0


def describe_difference(exchange: RecordedExchange) -> str:
    """Parse the recorded text again, and describe how its calls differ from the recorded ones. Return "" if equal."""
    return _compare_calls(exchange, reparse_calls(exchange))


def reparse_calls(exchange: RecordedExchange) -> tuple[RecordedCall, ...]:
    """Return the calls that a client would receive if the recorded text were parsed now."""
    return _reparse_exchange(exchange)[0]


def reparse(exchange: RecordedExchange) -> tuple[Turn, str]:
    """Parse the recorded text again. Return the turn, and how its calls differ from the recorded calls."""
    calls, events = _reparse_exchange(exchange)
    turn = Turn.from_events(events)
    is_whole = sum(len(event.raw) for event in turn.events) == len(exchange.text)
    if not is_whole or exchange.has_reply or exchange.asked_again:
        turn = exchange.parse_turn()
    return turn, _compare_calls(exchange, calls)


class _LoggedExchange:
    """Collects the events of a recorded exchange while it is parsed again."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def receive(self, events: Sequence[Event]) -> None:
        self.events += [event for event in events if event.raw or not isinstance(event, ReasoningDelta)]

    def end(self, exchange: RecordedExchange | None, why: str) -> None:
        """Ignore the finished exchange, which `Observation.observe` also receives."""


def _reparse_exchange(exchange: RecordedExchange) -> tuple[tuple[RecordedCall, ...], list[Event]]:
    """Parse the recorded text again. Return the calls that a client would receive, and the parser's events."""
    tools = ToolSet(exchange.tools)
    exchanges: list[RecordedExchange] = []
    listener = _LoggedExchange()
    request = TranslatedRequest(
        body=exchange.sent,
        tools=tools,
        client=ClientSettings(parallel=exchange.is_parallel),
        parsing=ParserSettings.from_recording(exchange),
        observation=Observation(observe=exchanges.append, listen=lambda _: listener),
    )
    answer = StreamedCompletion(request)
    delta = {"reasoning_content": exchange.reasoning, "content": exchange.text}
    reason = None if exchange.finish_reason in (INCOMPLETE, ABANDONED) else exchange.finish_reason
    answer.feed({"choices": [{"delta": delta, "finish_reason": reason}]})
    answer.close()
    return (exchanges[0].calls if exchanges else ()), listener.events


def _compare_calls(exchange: RecordedExchange, today: tuple[RecordedCall, ...]) -> str:
    recorded, tools = exchange.calls, ToolSet(exchange.tools)
    if exchange.asked_again or recorded in (today, tuple(_remove_forbidden(call, tools) for call in today)):
        return ""
    if exchange.dropped and len(today) == len(recorded) + len(exchange.dropped):
        return ""
    return f"recorded {_format_calls(exchange.calls)}, now {_format_calls(today)}"


def _remove_forbidden(call: RecordedCall, tools: ToolSet) -> RecordedCall:
    """Return the call without arguments that its schema forbids, as clients receive it if guardrails are active."""
    tool = tools.match(call.name)
    arguments = select_allowed_arguments(tool, call.arguments).arguments if tool else call.arguments
    return RecordedCall(name=call.name, arguments=arguments)


def _format_calls(calls: tuple[RecordedCall, ...]) -> str:
    parts = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in calls[:MAX_LISTED]]
    more = [f"{len(calls) - MAX_LISTED:,} more"] if len(calls) > MAX_LISTED else []
    return ", ".join(parts + more) or "no call"
