"""Answers and conversations that clients come back to: in memory, or in a file that outlives the server.

SQLite holds both. What is too old goes, and the oldest where there is too much.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import Redactor

_log = logging.getLogger("adapter")

MAX_MEMORY_BYTES = 64_000_000
"""Of what is kept without a file: some thousand answers with the conversations before them."""

MAX_FILE_BYTES = 1_000_000_000
"""Of what is kept in a file."""

MAX_AGE_S = 30 * 24 * 3600.0
"""How long something is kept that nobody used: as long as at OpenAI."""

_VERSION = 1
"""Of the tables, as the file says it."""

_TABLES = f"""
PRAGMA user_version = {_VERSION};
CREATE TABLE holders (
    id TEXT PRIMARY KEY, previous TEXT, used REAL NOT NULL, size INTEGER NOT NULL, about TEXT NOT NULL
);
CREATE INDEX holders_by_use ON holders (used);
CREATE TABLE items (
    number INTEGER PRIMARY KEY, holder TEXT NOT NULL REFERENCES holders (id) ON DELETE CASCADE,
    id TEXT NOT NULL, is_output INTEGER NOT NULL, value TEXT NOT NULL
);
CREATE INDEX items_by_holder ON items (holder);
CREATE INDEX items_by_id ON items (id);
"""
"""A holder is an answer, or a conversation; an answer's items are what it was given and what it says."""


class ResponseStore:
    """``file``: None keeps it in memory. ``secrets``: credentials that are not written to a file. ``now``: seconds.

    For any number of threads; what is read is read after what was kept before. Raises UsageError where the file cannot
    be used.
    """

    def __init__(
        self,
        file: Path | None = None,
        secrets: Redactor | None = None,
        *,
        max_bytes: int | None = None,
        max_age_s: float = MAX_AGE_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._secrets = secrets if file is not None else None
        self._max_bytes = max_bytes or (MAX_MEMORY_BYTES if file is None else MAX_FILE_BYTES)
        self._max_age_s, self._now = max_age_s, now
        self._lock = threading.Lock()
        self._keeping = ThreadPoolExecutor(1, "store")
        self._last: Future[None] | None = None
        self._grown = self._max_bytes  # since it was looked how much there is
        try:
            if file is not None:
                os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            self._tables = _opened(file)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot keep answers in {str(file)!r}: {error}. Choose another --store.") from error

    def close(self) -> None:
        self._keeping.shutdown()
        with self._lock:
            self._tables.close()

    @contextmanager
    def _using(self) -> Iterator[None]:
        if self._last is not None:
            self._last.result()
        with self._lock, self._tables:
            yield

    def keep_soon(self, response: JsonObject, given: Iterable[JsonObject], conversation: str | None = None) -> None:
        """`keep`, without waiting for it. What goes wrong is logged: no answer fails for that."""
        self._last = self._keeping.submit(self._kept, response, given, conversation)

    def _kept(self, response: JsonObject, given: Iterable[JsonObject], conversation: str | None) -> None:
        try:
            self.keep(response, given, conversation)
        except sqlite3.Error as error:
            _log.warning("the answer %s was not kept: %s", response["id"], error)

    def keep(self, response: JsonObject, given: Iterable[JsonObject], conversation: str | None = None) -> None:
        """An answer, and the items that were new in its request; in ``conversation``, too, where there is one."""
        about = {key: value for key, value in response.items() if key != "output"}
        items = [(item, False) for item in map(_named, given)] + [(item, True) for item in response["output"]]
        with self._lock, self._tables:
            self._add(str(response["id"]), response.get("previous_response_id"), about, items)
            if conversation is not None and self._about(conversation) is not None:
                self._fill(conversation, items)
            self._forget()

    def response(self, response_id: str) -> JsonObject | None:
        with self._using():
            about = self._about(response_id) if response_id.startswith("resp_") else None
            return None if about is None else {**about, "output": self._items(response_id, outputs=True)}

    def given(self, response_id: str) -> list[JsonObject] | None:
        """The items that were new in the request for an answer."""
        with self._using():
            return None if self._about(response_id) is None else self._items(response_id, outputs=False)

    def history(self, response_id: str) -> list[JsonObject] | None:
        """All that was said up to an answer and in it; None where something of that is not here any more."""
        said: list[list[JsonObject]] = []
        with self._using():
            holder: str | None = response_id
            seen = set()
            while holder is not None and holder not in seen:
                seen.add(holder)
                row = self._execute("SELECT previous FROM holders WHERE id = ?", (holder,)).fetchone()
                if row is None:
                    return None
                said.append(self._items(holder))
                self._execute("UPDATE holders SET used = ? WHERE id = ?", (self._now(), holder))
                holder = row[0]
        return [item for items in reversed(said) for item in items]

    def item(self, item_id: str) -> JsonObject | None:
        """An item of an answer, else one that a client sent."""
        query = "SELECT value FROM items WHERE id = ? ORDER BY is_output DESC, number DESC LIMIT 1"
        with self._using():
            row = self._execute(query, (item_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def forget(self, holder: str, kind: str) -> bool:
        """Whether there was such a ``resp_`` or ``conv_``."""
        if not holder.startswith(kind):
            return False
        with self._using():
            return self._execute("DELETE FROM holders WHERE id = ?", (holder,)).rowcount > 0

    def begin(self, metadata: Json, items: Sequence[JsonObject]) -> JsonObject:
        """A new conversation."""
        conversation_id = f"conv_{token_hex(16)}"
        about = {"id": conversation_id, "object": "conversation", "created_at": int(self._now())}
        about["metadata"] = metadata or {}
        with self._using():
            self._add(conversation_id, None, about, [(_named(item), False) for item in items])
            self._forget()
        return about

    def conversation(self, conversation_id: str) -> JsonObject | None:
        with self._using():
            return self._about(conversation_id) if conversation_id.startswith("conv_") else None

    def describe(self, conversation_id: str, metadata: Json) -> JsonObject | None:
        """The conversation with other metadata."""
        with self._using():
            about = self._about(conversation_id)
            if about is None:
                return None
            about["metadata"] = metadata or {}
            self._execute("UPDATE holders SET about = ? WHERE id = ?", (self._text(about), conversation_id))
            return about

    def add(self, conversation_id: str, items: Sequence[JsonObject]) -> list[JsonObject] | None:
        """The items as they are in the conversation, with ids."""
        named = [_named(item) for item in items]
        with self._using():
            if self._about(conversation_id) is None:
                return None
            self._fill(conversation_id, [(item, False) for item in named])
            self._forget()
        return named

    def items(self, conversation_id: str) -> list[JsonObject] | None:
        with self._using():
            return None if self._about(conversation_id) is None else self._items(conversation_id)

    def remove(self, conversation_id: str, item_id: str) -> bool:
        """Whether there was such an item."""
        query = "DELETE FROM items WHERE holder = ? AND id = ?"
        with self._using():
            return self._execute(query, (conversation_id, item_id)).rowcount > 0

    def _execute(self, query: str, values: Sequence[str | float | None] = ()) -> sqlite3.Cursor:
        """Ids are what clients say: half a surrogate pair in one becomes ``?``."""
        return self._tables.execute(query, [_sayable(value) if isinstance(value, str) else value for value in values])

    def _about(self, holder: str) -> JsonObject | None:
        row = self._execute("SELECT about FROM holders WHERE id = ?", (holder,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _items(self, holder: str, *, outputs: bool | None = None) -> list[JsonObject]:
        query = "SELECT value FROM items WHERE holder = ? AND is_output IN (?, ?) ORDER BY number"
        kinds = (0, 1) if outputs is None else (int(outputs),) * 2
        rows = self._execute(query, (holder, *kinds))
        return [json.loads(value) for (value,) in rows]

    def _add(self, holder: str, previous: Json, about: JsonObject, items: Sequence[tuple[JsonObject, bool]]) -> None:
        row = (holder, previous or None, self._now(), 0, self._text(about))
        self._execute("INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?, ?)", row)
        self._fill(holder, items)

    def _fill(self, holder: str, items: Sequence[tuple[JsonObject, bool]]) -> None:
        rows = [(holder, _sayable(item["id"]), is_output, self._text(item)) for item, is_output in items]
        self._tables.executemany("INSERT INTO items (holder, id, is_output, value) VALUES (?, ?, ?, ?)", rows)
        size = sum(len(value) for *_, value in rows) + 1_000  # with what the tables take
        self._grown += size
        self._execute("UPDATE holders SET size = size + ?, used = ? WHERE id = ?", (size, self._now(), holder))

    def _forget(self) -> None:
        """What is too old, and the oldest of what is too much."""
        self._execute("DELETE FROM holders WHERE used < ?", (self._now() - self._max_age_s,))
        if self._grown < self._max_bytes // 64:
            return
        self._grown = 0
        (size,) = self._execute("SELECT coalesce(sum(size), 0) FROM holders").fetchone()
        while size > self._max_bytes:
            oldest = "SELECT id, size FROM holders ORDER BY used, rowid LIMIT 1"
            holder, freed = self._execute(oldest).fetchone()
            self._execute("DELETE FROM holders WHERE id = ?", (holder,))
            size -= freed

    def _text(self, value: Mapping[str, Json]) -> str:
        shown = self._secrets.redact(dict(value)) if self._secrets is not None else value
        return json.dumps(shown)


def _opened(file: Path | None) -> sqlite3.Connection:
    tables = sqlite3.connect(file or ":memory:", check_same_thread=False)
    (version,) = tables.execute("PRAGMA user_version").fetchone()
    if version not in (0, _VERSION):
        tables.close()
        raise sqlite3.DatabaseError(f"it is of version {version}, and this program knows {_VERSION}")
    tables.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")
    if not version:
        tables.executescript(_TABLES)
    tables.execute("PRAGMA foreign_keys = ON")
    return tables


def _sayable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _named(item: JsonObject) -> JsonObject:
    """With an id, by which it can be asked for, and a type."""
    kind = str(item.get("type") or "message")
    return {"type": kind, **item, "id": str(item.get("id") or f"{_IDS.get(kind, 'item')}_{token_hex(16)}")}


_IDS = {"message": "msg", "reasoning": "rs", "function_call": "fc", "function_call_output": "fco"}
