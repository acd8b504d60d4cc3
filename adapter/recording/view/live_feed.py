"""The last exchanges of a server while it serves, within bounds, for pages that look on.

`LiveExchanges.listen` is told of them, from any thread, and puts off all that it can until somebody looks: an event of a stream
costs a few list operations. Each change has a version, and who looks asks for what is newer than the last one seen.
Nothing is kept for him: one who does not read costs nothing.
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
from adapter.recording.view.answer_rows import NO_ANSWER, UNKNOWN, ExchangeStats, exchange_row, truncate_for_page
from adapter.recording.view.live_answer import MAX_HEAD, WRITING, LiveAnswer, safe_prefix, tail_spans
from adapter.recording.view.page_data import ReparseOptions, exchange_stats, retry_badges, view_exchanges

MAX_KEPT = 5_000
"""Exchanges that the page of a server shows; those go first that changed longest ago."""
MAX_KEPT_BYTES = 64_000_000
"""Of what they were sent and said, compressed, and what of it can be searched."""
MAX_ROWS = 500
"""Told at a time of what has changed."""
MAX_SAID = 20_000
"""Characters of an answer, and of its reasoning, that can be searched."""
MAX_WHY = 2_000
"""Characters of why there was no answer."""
PACK_S = 0.2
"""After the end of an exchange until it is compressed, with those that end meanwhile."""

WAITING = "waiting"
"""The mark of what nothing was answered to yet."""


@dataclass(slots=True)
class _RetainedAnswer:
    """``record``: what was asked, and the answer once ``is_over``; compressed soon after. ``why``: no answer came."""

    number: int
    time: str
    model: str
    record: RecordedExchange | bytes
    version: int = 0
    is_over: bool = False
    why: str = ""
    figures: ExchangeStats = UNKNOWN
    asking: Sequence[str] = ()
    coming: LiveAnswer = field(default_factory=LiveAnswer)
    said: str = ""
    """What is searched, in lower case; once it is over."""
    row: JsonObject | None = None
    """Once it is over, and somebody looked."""

    @property
    def size(self) -> int:
        """Of what is kept for long; 0 until that is."""
        return len(self.record) + len(self.said) if isinstance(self.record, bytes) else 0

    @property
    def marks(self) -> list[str]:
        if self.why:
            return [NO_ANSWER]
        if self.is_over:
            return [*self.coming.marks, *self.asking]
        there = [mark for mark in self.coming.marks if mark != "no call"]
        return [WRITING if self.coming.size else WAITING, *there]


class _ExchangeListener:
    """Told of one exchange while it comes."""

    def __init__(self, live: LiveExchanges, kept: _RetainedAnswer) -> None:
        self._live, self._kept = live, kept

    def take(self, events: Sequence[Event]) -> None:
        self._live.took(self._kept, events)

    def end(self, exchange: RecordedExchange | None, why: str) -> None:
        self._live.ended(self._kept, exchange, why)


class LiveExchanges:
    """``hidden``: what nobody gets to see. ``version``: of the last change; of another ``epoch`` it means nothing.
    ``size``: bytes that are kept."""

    def __init__(self, hidden: Redactor, max_kept: int = MAX_KEPT, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._hidden, self._max_kept, self._max_bytes = hidden, max_kept, max_bytes
        self._kept: OrderedDict[int, _RetainedAnswer] = OrderedDict()  # what changed last stands last
        self._lock = threading.Lock()
        self._packing = ThreadPoolExecutor(1, "view")
        self._unpacked: list[_RetainedAnswer] = []
        self._number = self.size = self.version = 0
        self._redacted = lru_cache(2 * MAX_ROWS)(self._redact)
        self.epoch = secrets.token_hex(4)

    def listen(self, asked: RecordedExchange) -> _ExchangeListener:
        """As of `adapter.protocols.translation_options.TranslationOptions`."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            self._number += 1
            kept = _RetainedAnswer(self._number, now, asked.model[:MAX_HEAD], asked)
            self._changed(kept)
        return _ExchangeListener(self, kept)

    def took(self, kept: _RetainedAnswer, events: Sequence[Event]) -> None:
        with self._lock:
            for event in events:
                kept.coming.take(event)
            self._changed(kept)

    def ended(self, kept: _RetainedAnswer, exchange: RecordedExchange | None, why: str) -> None:
        with self._lock:
            if exchange is not None:
                kept.record = exchange
                kept.said = f"{exchange.text[:MAX_SAID]}\n{exchange.reasoning[:MAX_SAID]}".lower()
                kept.figures, kept.asking = exchange_stats(exchange), retry_badges(exchange)
            else:
                kept.why = (why if len(why) < MAX_WHY else safe_prefix(why[:MAX_WHY])) or "it ended without one"
            kept.is_over = True
            self._changed(kept)
            self._unpacked.append(kept)
            is_first = len(self._unpacked) == 1
        if is_first:
            with suppress(RuntimeError):  # the server stops
                self._packing.submit(self._pack)

    def close(self, *, wait: bool = False) -> None:
        """``wait``: until all is as small as it becomes."""
        self._packing.shutdown(wait=wait, cancel_futures=not wait)

    def changes(self, since: int) -> JsonObject:
        """The rows that changed after the version ``since``, those that did so first and not too many at a time, and
        the version that is then known. ``oldest``: of what changed before that, and is not told of, nothing is kept.
        ``is_part``: there may be more."""
        with self._lock:
            newer = takewhile(lambda kept: kept.version > since, reversed(self._kept.values()))
            found = [(kept, kept.version) for kept in islice(reversed(list(newer)), MAX_ROWS)]
            oldest = next(iter(self._kept.values())).version if self._kept else 0
        version = found[-1][1] if found else since
        rows = [{**self._row(kept), "version": at} for kept, at in found]
        is_part = len(found) == MAX_ROWS
        return {"epoch": self.epoch, "version": version, "oldest": oldest, "rows": rows, "is_part": is_part}

    def detail(
        self, number: int, again: ReparseOptions | None = None, *, answer_only: bool = False
    ) -> JsonObject | None:
        """One exchange as the page of `adapter view` has it, with its parts; None where it is kept no more.
        ``answer_only``: not what was asked, as long as the answer comes."""
        with self._lock:
            kept = self._kept.get(number)
            if kept is None:
                return None
            tail, record, version, is_over = list(kept.coming.tail), kept.record, kept.version, kept.is_over
        own = {**self._row(kept), "version": version, "is_over": is_over}
        if not is_over:
            own |= {"notes": [], "readings": [{"name": "The answer so far", "spans": tail_spans(tail, self._hidden)}]}
            if answer_only:
                return own
        elif kept.why:
            own |= {"notes": [truncate_for_page(f"No answer came: {self._redacted(kept.why)}")], "readings": []}
        said = json.loads(zlib.decompress(record)) if isinstance(record, bytes) else record.model_dump(mode="json")
        said = self._hidden.redact(said | {"time": kept.time})
        data = view_exchanges([RecordedExchange.model_validate(said)], "", again).data
        found = data["exchanges"][0]
        if is_over and not kept.why:
            own["marks"] = list(dict.fromkeys([*own["marks"], *found["marks"]]))
        return {**found, **own, "parts": data["parts"]}

    def holding(self, words: str) -> list[int]:
        """The numbers of those that are over, and whose answer holds ``words``, in lower case or not."""
        with self._lock:
            every = list(self._kept.values())
        return [kept.number for kept in every if words.lower() in kept.said]

    def _changed(self, kept: _RetainedAnswer) -> None:
        self.version += 1
        kept.version = self.version
        if kept.number in self._kept:
            self._kept.move_to_end(kept.number)
        else:
            self._kept[kept.number] = kept
            self._bound()

    def _bound(self) -> None:
        while len(self._kept) > self._max_kept or (self.size > self._max_bytes and len(self._kept) > 1):
            _, gone = self._kept.popitem(last=False)
            self.size -= gone.size

    def _pack(self) -> None:
        """Beside the streams, and several at once: each time that a thread wakes they wait."""
        time.sleep(PACK_S)
        with self._lock:
            over, self._unpacked = self._unpacked, []
        for kept in over:
            kept.coming.close()
            assert isinstance(kept.record, RecordedExchange)
            record = zlib.compress(json.dumps(kept.record.model_dump(mode="json")).encode(), 1)
            with self._lock:
                kept.record = record
                if kept.number in self._kept:
                    self.size += kept.size
                    self._bound()

    def _row(self, kept: _RetainedAnswer) -> JsonObject:
        if kept.row is not None:
            return kept.row
        is_over, head = kept.is_over, kept.coming.title
        is_whole = is_over and len(head) < MAX_HEAD
        title = self._redacted(head if is_whole else safe_prefix(head)) or self._redacted(kept.why)
        calls = Counter({self._redacted(name): times for name, times in kept.coming.calls.copy().items()})
        made = exchange_row(title, kept.time, self._redacted(kept.model), kept.figures, kept.marks, calls)
        made |= {"number": kept.number, "is_over": is_over}
        if is_over:
            kept.row = made
        elif kept.coming.size:
            made["cost"] = f"{kept.coming.size:,} characters so far"
        return made

    def _redact(self, text: str) -> str:
        return self._hidden.redact(text)
