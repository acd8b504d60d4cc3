"""Keep the latest exchanges of a running server for viewers, within limits.

`LiveExchanges.listen` returns a listener that receives an exchange's events, in any thread. A streamed event costs only
a few list operations, because all other work is deferred until a viewer requests the exchange. Each change has a
version. The server keeps no state for viewers: they request the changes after the last version that they have received.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice, takewhile

from adapter.core.events import Event, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.recording.view.conversation_grouping import Conversations, find_question
from adapter.recording.view.exchange_page_data import (
    NO_ANSWER,
    UNKNOWN,
    ExchangeStats,
    build_exchange_row,
    escape_for_page,
)
from adapter.recording.view.live_answer import MAX_HEAD, WRITING, LiveAnswer, build_tail_spans, clip_safe_prefix
from adapter.recording.view.view_page_data import (
    ReparseOptions,
    build_exchange_stats,
    build_exchanges_view,
    list_client_messages,
    list_retry_badges,
)

MAX_EXCHANGES = 5_000
"""Maximum number of exchanges on a server's page. If there are more, the least recently changed one is dropped."""
MAX_TOTAL_BYTES = 64_000_000
"""Maximum total size, in bytes, of the compressed exchanges and their searchable text."""
MAX_ROWS = 500
"""Maximum number of changed rows in one response to a viewer."""
MAX_SEARCHABLE = 20_000
"""Maximum number of characters of an answer, and of its reasoning, that can be searched."""
MAX_REASON = 2_000
"""Maximum length of the reason for a missing answer, in characters."""
PACK_DELAY_S = 0.2
"""Delay before an ended exchange is compressed, in seconds. Exchanges that end meanwhile are compressed with it."""

WAITING = "waiting"
"""Badge of a request whose answer has not begun."""


@dataclass(slots=True)
class _LiveEntry:
    """An exchange of the server, either running or ended.

    ``record`` contains the request and, once ``is_over`` is true, the answer. It is compressed soon after that.
    ``failure`` is the reason for a missing answer.
    """

    number: int
    time: str
    model: str
    record: RecordedExchange | bytes
    version: int = 0
    is_over: bool = False
    failure: str = ""
    stats: ExchangeStats = UNKNOWN
    retries: Sequence[str] = ()
    question: str = ""
    conversation: int = 0
    answer: LiveAnswer = field(default_factory=LiveAnswer)
    searchable: str = ""
    """Searchable text in lower case; "" until the exchange is over."""
    row: JsonObject | None = None
    """The final row, built when an ended exchange is first viewed."""

    @property
    def size(self) -> int:
        """Size of the compressed record and its searchable text; 0 before the compression."""
        return len(self.record) + len(self.searchable) if isinstance(self.record, bytes) else 0

    @property
    def marks(self) -> list[str]:
        if self.failure:
            return [NO_ANSWER]
        if self.is_over:
            return [*self.answer.marks, *self.retries]
        badges = [mark for mark in self.answer.marks if mark != "no call"]
        return [WRITING if self.answer.size else WAITING, *badges]


class _ExchangeListener:
    """Passes the events of one exchange to `LiveExchanges`."""

    def __init__(self, live: LiveExchanges, entry: _LiveEntry) -> None:
        self._live, self._entry = live, entry

    def receive(self, events: Sequence[Event]) -> None:
        self._live.on_events(self._entry, events)

    def end(self, exchange: RecordedExchange | None, failure: str) -> None:
        self._live.on_end(self._entry, exchange, failure)


class LiveExchanges:
    """The live exchanges of a server.

    ``version`` is the number of the latest change; versions are comparable only within one ``epoch``. ``size`` is the
    total size of the stored exchanges, in bytes. ``secrets_to_hide`` redacts credentials.
    """

    def __init__(
        self, secrets_to_hide: Redactor, max_kept: int = MAX_EXCHANGES, max_bytes: int = MAX_TOTAL_BYTES
    ) -> None:
        self._secrets, self._max_kept, self._max_bytes = secrets_to_hide, max_kept, max_bytes
        self._entries: OrderedDict[int, _LiveEntry] = OrderedDict()  # the most recently changed last
        self._conversations = Conversations()
        self._lock = threading.Lock()
        self._packing = ThreadPoolExecutor(1, "view")
        self._unpacked: list[_LiveEntry] = []
        self._number = self.size = self.version = 0
        self._redacted = lru_cache(2 * MAX_ROWS)(self._redact)
        self.epoch = secrets.token_hex(4)

    def listen(self, request: RecordedExchange) -> _ExchangeListener:
        """Return the listener for an exchange that begins; see `adapter.protocols.recorded_exchange.Observation`."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        chat = list_client_messages(request)
        question = find_question(chat)[:MAX_HEAD]
        with self._lock:
            self._number += 1
            conversation = self._conversations.assign(
                self._number, chat, id=request.conversation, is_retry=request.retry > 0
            )
            entry = _LiveEntry(
                self._number, now, request.model[:MAX_HEAD], request, question=question, conversation=conversation
            )
            self._mark_changed(entry)
        return _ExchangeListener(self, entry)

    def on_events(self, entry: _LiveEntry, events: Sequence[Event]) -> None:
        with self._lock:
            for event in events:
                entry.answer.receive(event)
            self._mark_changed(entry)

    def on_end(self, entry: _LiveEntry, exchange: RecordedExchange | None, failure: str) -> None:
        with self._lock:
            if exchange is not None:
                entry.record = exchange
                entry.searchable = f"{exchange.text[:MAX_SEARCHABLE]}\n{exchange.reasoning[:MAX_SEARCHABLE]}".lower()
                entry.stats, entry.retries = build_exchange_stats(exchange), list_retry_badges(exchange)
            else:
                entry.failure = (
                    failure if len(failure) < MAX_REASON else clip_safe_prefix(failure[:MAX_REASON])
                ) or "the exchange ended without an answer"
            entry.is_over = True
            self._mark_changed(entry)
            self._unpacked.append(entry)
            is_first = len(self._unpacked) == 1
        if is_first:
            with suppress(RuntimeError):  # the server is stopping
                self._packing.submit(self._pack)

    def close(self, *, wait: bool = False) -> None:
        """Stop compressing exchanges. If ``wait`` is true, first compress the exchanges that have ended."""
        self._packing.shutdown(wait=wait, cancel_futures=not wait)

    def list_changes(self, since: int) -> JsonObject:
        """Return the rows that changed after version ``since``, oldest first, and the version after these changes.

        The result also contains ``oldest`` and ``is_part``. Changes before version ``oldest`` are no longer available.
        If ``is_part`` is true, more rows may have changed.
        """
        with self._lock:
            newer = takewhile(lambda entry: entry.version > since, reversed(self._entries.values()))
            found = [(entry, entry.version) for entry in islice(reversed(list(newer)), MAX_ROWS)]
            oldest = next(iter(self._entries.values())).version if self._entries else 0
        version = found[-1][1] if found else since
        rows = [{**self._build_row(entry), "version": at} for entry, at in found]
        is_part = len(found) == MAX_ROWS
        return {"epoch": self.epoch, "version": version, "oldest": oldest, "rows": rows, "is_part": is_part}

    def list_rows(self, words: str = "") -> list[JsonObject]:
        """Return the rows of all exchanges that contain ``words``, in the order of their requests."""
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: entry.number)
        wanted, found = words.lower(), set(self.search(words)) if words else set()
        rows = map(self._build_row, entries)
        return [row for row in rows if row["number"] in found or wanted in f"{row['question']}\n{row['title']}".lower()]

    def build_detail(
        self, number: int, options: ReparseOptions | None = None, *, answer_only: bool = False
    ) -> JsonObject | None:
        """Return an exchange as data for the page of `adapter view`, or None if it is no longer available. If
        ``answer_only`` is true, the request is omitted while the answer is being streamed.
        """
        with self._lock:
            entry = self._entries.get(number)
            if entry is None:
                return None
            tail, record, version, is_over = list(entry.answer.tail), entry.record, entry.version, entry.is_over
        own = {**self._build_row(entry), "version": version, "is_over": is_over}
        if not is_over:
            own |= {
                "notes": [],
                "readings": [{"name": "The answer so far", "spans": build_tail_spans(tail, self._secrets)}],
            }
            if answer_only:
                return own
        elif entry.failure:
            own |= {"notes": [escape_for_page(f"No answer: {self._redacted(entry.failure)}")], "readings": []}
        fields = json.loads(zlib.decompress(record)) if isinstance(record, bytes) else record.model_dump(mode="json")
        fields = self._secrets.redact(fields | {"time": entry.time})
        data = build_exchanges_view([RecordedExchange.model_validate(fields)], "", options).data
        found = data["exchanges"][0]
        if is_over and not entry.failure:
            own["marks"] = list(dict.fromkeys([*own["marks"], *found["marks"]]))
        return {**found, **own, "parts": data["parts"]}

    def search(self, words: str) -> list[int]:
        """Return the numbers of the finished exchanges whose answer contains ``words``, ignoring case."""
        with self._lock:
            every = list(self._entries.values())
        return [entry.number for entry in every if words.lower() in entry.searchable]

    def _mark_changed(self, entry: _LiveEntry) -> None:
        self.version += 1
        entry.version = self.version
        if entry.number in self._entries:
            self._entries.move_to_end(entry.number)
        else:
            self._entries[entry.number] = entry
            self._evict()

    def _evict(self) -> None:
        while len(self._entries) > self._max_kept or (self.size > self._max_bytes and len(self._entries) > 1):
            _, evicted = self._entries.popitem(last=False)
            self.size -= evicted.size

    def _pack(self) -> None:
        """Compress ended exchanges in the background, several at a time, because thread switches delay streams."""
        time.sleep(PACK_DELAY_S)
        with self._lock:
            over, self._unpacked = self._unpacked, []
        for entry in over:
            entry.answer.close()
            assert isinstance(entry.record, RecordedExchange)
            record = zlib.compress(json.dumps(entry.record.model_dump(mode="json")).encode(), 1)
            with self._lock:
                entry.record = record
                if entry.number in self._entries:
                    self.size += entry.size
                    self._evict()

    def _build_row(self, entry: _LiveEntry) -> JsonObject:
        if entry.row is not None:
            return entry.row
        is_over, head = entry.is_over, entry.answer.title
        is_whole = is_over and len(head) < MAX_HEAD
        title = self._redacted(head if is_whole else clip_safe_prefix(head)) or self._redacted(entry.failure)
        calls = Counter({self._redacted(name): times for name, times in entry.answer.calls.copy().items()})
        question = self._redacted(
            entry.question if len(entry.question) < MAX_HEAD else clip_safe_prefix(entry.question)
        )
        row = build_exchange_row(
            title,
            question,
            entry.time,
            self._redacted(entry.model),
            entry.stats,
            entry.marks,
            calls,
            entry.conversation,
        )
        row |= {"number": entry.number, "is_over": is_over}
        if is_over:
            entry.row = row
        elif entry.answer.size:
            row["cost"] = f"{entry.answer.size:,} characters so far"
        return row

    def _redact(self, text: str) -> str:
        return self._secrets.redact(text)
