"""Files of exchanges: written while a server or a wrapped client is in use, and read again later."""

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
from adapter.core.text.redaction import Redactor
from adapter.core.turn import Turn
from adapter.protocols.openai_chat_response import StreamedCompletion
from adapter.protocols.openai_choice import ABANDONED, INCOMPLETE
from adapter.protocols.recorded_exchange import Observation, RecordedCall, RecordedExchange
from adapter.protocols.translated_request import ClientSettings, ParserSettings, TranslatedRequest
from adapter.tools.tool import ToolSet

QUICK = 32_000
"""Characters of an exchange that is written at once."""
MAX_TOLD = 20
"""Calls that a difference spells out."""


class ExchangeLog:
    """Adds each exchange to ``file`` as a line, ``secrets`` left out; a new file is its owner's alone.

    Raises UsageError where it cannot be written. What fails later is logged: no answer waits for its record. A large
    one is written beside whatever else is done, by the end of the process at the latest.
    """

    def __init__(self, file: Path, secrets: Redactor) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._file, self._secrets = file, secrets
        self._writing = threading.Lock()
        self._beside = ThreadPoolExecutor(1, "record")
        try:
            self._append("")
        except OSError as error:
            raise UsageError(f"cannot record in {str(file)!r}: {error.strerror}. Choose another file.") from error

    def __reduce__(self) -> tuple[type[ExchangeLog], tuple[Path, Redactor]]:
        """For workers: each appends its lines to the same file."""
        return ExchangeLog, (self._file, self._secrets)

    def __call__(self, exchange: RecordedExchange) -> None:
        if _is_larger(exchange.sent, QUICK - len(exchange.text) - len(exchange.reasoning)):
            with suppress(RuntimeError):  # the process ends
                self._beside.submit(self._write, exchange)
                return
        self._write(exchange)

    def _write(self, exchange: RecordedExchange) -> None:
        began = datetime.now(UTC) - timedelta(seconds=exchange.duration_s or 0.0)
        time = began.isoformat(timespec="milliseconds")
        try:
            self._append(exchange_line(exchange.model_copy(update={"time": time}), self._secrets))
        except OSError as error:
            import logging

            logging.getLogger(__name__).warning("an exchange was not recorded in %s: %s", self._file, error.strerror)

    def _append(self, text: str) -> None:
        with self._writing:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)


def exchange_line(exchange: RecordedExchange, secrets: Redactor) -> str:
    """A line of a recording, with its end."""
    return json.dumps(secrets.redact(exchange.model_dump(mode="json"))) + "\n"


def _is_larger(value: Json, size: int) -> bool:
    """Whether ``value`` has more than ``size`` characters of text; no more of it is looked at."""
    waiting = [value]
    while waiting and size >= 0:
        match waiting.pop():
            case str() as text:
                size -= len(text)
            case dict() as inner:
                waiting += [*inner.keys(), *inner.values()]
            case list() as inner:
                waiting += inner
            case _:
                size -= 4
    return size < 0


def difference(exchange: RecordedExchange) -> str:
    """What of the calls is another today than when ``exchange`` was recorded; empty where nothing is."""
    return _compared(exchange, reparsed_calls(exchange))


def reparsed_calls(exchange: RecordedExchange) -> tuple[RecordedCall, ...]:
    """The calls that a client would get of the recorded text now."""
    return _answered(exchange)[0]


def reparse(exchange: RecordedExchange) -> tuple[Turn, str]:
    """The recorded text as it is read today, and the `difference`; read once where that tells both."""
    calls, events = _answered(exchange)
    turn = Turn.from_events(events)
    is_whole = sum(len(event.raw) for event in turn.events) == len(exchange.text)
    if not is_whole or exchange.has_reply or exchange.asked_again:
        turn = exchange.turn()
    return turn, _compared(exchange, calls)


class _LoggedExchange:
    """A listener that keeps the events of the text."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def take(self, events: Sequence[Event]) -> None:
        self.events += [event for event in events if event.raw or not isinstance(event, ReasoningDelta)]

    def end(self, exchange: RecordedExchange | None, why: str) -> None:
        """The observer has it."""


def _answered(exchange: RecordedExchange) -> tuple[tuple[RecordedCall, ...], list[Event]]:
    """What a client would get now, and the events that this came from."""
    tools = ToolSet(exchange.tools)
    heard: list[RecordedExchange] = []
    kept = _LoggedExchange()
    request = TranslatedRequest(
        body=exchange.sent,
        tools=tools,
        client=ClientSettings(parallel=exchange.is_parallel),
        parsing=ParserSettings.from_recording(exchange),
        observation=Observation(observe=heard.append, listen=lambda _: kept),
    )
    answer = StreamedCompletion(request)
    said = {"reasoning_content": exchange.reasoning, "content": exchange.text}
    reason = None if exchange.finish_reason in (INCOMPLETE, ABANDONED) else exchange.finish_reason
    answer.feed({"choices": [{"delta": said, "finish_reason": reason}]})
    answer.close()
    return (heard[0].calls if heard else ()), kept.events


def _compared(exchange: RecordedExchange, today: tuple[RecordedCall, ...]) -> str:
    if exchange.asked_again or today == exchange.calls:
        return ""
    return f"recorded {_shown(exchange.calls)}, today {_shown(today)}"


def _shown(calls: tuple[RecordedCall, ...]) -> str:
    told = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in calls[:MAX_TOLD]]
    more = [f"{len(calls) - MAX_TOLD:,} more"] if len(calls) > MAX_TOLD else []
    return ", ".join(told + more) or "no call"
