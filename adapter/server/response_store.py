"""Store responses and conversations in SQLite, either in memory or in a file that is kept when the server stops.

Expired entries are deleted. When the store is full, the least recently used entries are deleted.
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

from adapter.core.errors import TransportError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.private_files import open_private
from adapter.core.text.redaction import Redactor

_log = logging.getLogger("adapter")

MAX_MEMORY_BYTES = 64_000_000
"""Maximum size of a store in memory, in bytes. It is enough for about a thousand responses and their conversations."""

MAX_FILE_BYTES = 1_000_000_000
"""Maximum size of a store in a file, in bytes."""

MAX_AGE_S = 30 * 24 * 3600.0
"""Maximum age of an unused entry, in seconds, as in OpenAI's API."""

_VERSION = 1
"""Version of the database schema, which is stored in the file."""

_APPLICATION_ID = 0x41_44_50_54
"""Marks the file as a store of this program (``ADPT``), by SQLite's ``application_id``."""

LOCK_WAIT_S = 1.0
"""Maximum time, in seconds, to wait until another program has finished using the file."""

_TABLES = f"""
PRAGMA user_version = {_VERSION};
PRAGMA application_id = {_APPLICATION_ID};
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
"""The tables. A holder is a conversation, or a response with its new input and output as items."""


class StoreError(TransportError):
    """The file of stored responses cannot be read or written at the moment."""

    status = 503


class ResponseStore:
    """A thread-safe store of responses and conversations. Reads wait for earlier writes.

    ``file`` is the database; None keeps everything in memory. ``secrets`` redacts credentials before they are stored in
    a file, and ``now`` returns the time in seconds. Raises UsageError if the file cannot be used. Methods raise
    StoreError if another program locks the file.
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
        default = MAX_MEMORY_BYTES if file is None else MAX_FILE_BYTES
        self._max_bytes = default if max_bytes is None else max_bytes
        self._max_age_s, self._now = max_age_s, now
        self._lock = threading.Lock()
        self._writer = ThreadPoolExecutor(1, "store")
        self._last: Future[None] | None = None
        self._grown_bytes = self._max_bytes  # bytes added since the size was last checked
        try:
            if file is not None:
                os.close(open_private(file, os.O_RDWR))
            self._tables = _open(file)
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"cannot store responses in {str(file)!r}: {reason}. Choose another --store.") from error

    @property
    def is_enabled(self) -> bool:
        """False if nothing can be stored."""
        return self._max_bytes > 0

    def close(self) -> None:
        try:
            self._writer.shutdown()
        except RuntimeError:  # the garbage collector runs in the thread that writes, and cannot wait for it
            return
        with self._lock:
            self._tables.close()

    @contextmanager
    def _begin_transaction(self) -> Iterator[None]:
        if self._last is not None:
            self._last.result()
        try:
            with self._lock, self._tables:
                yield
        except sqlite3.Error as error:
            raise StoreError(f"stored responses are not accessible ({error}); retry later") from error

    def save_soon(self, response: JsonObject, inputs: Iterable[JsonObject], conversation: str | None = None) -> None:
        """Save a response in the background. Errors are logged and do not affect the answer."""
        self._last = self._writer.submit(self._save_or_log, response, inputs, conversation)

    def _save_or_log(self, response: JsonObject, inputs: Iterable[JsonObject], conversation: str | None) -> None:
        try:
            self.save(response, inputs, conversation)
        except sqlite3.Error as error:
            _log.warning("the response %s was not stored: %s", response["id"], error)

    def save(self, response: JsonObject, inputs: Iterable[JsonObject], conversation: str | None = None) -> None:
        """Save a response with its new input items. If ``conversation`` is set, append all items to it."""
        about = {key: value for key, value in response.items() if key != "output"}
        items = [(item, False) for item in map(_with_id, inputs)] + [(item, True) for item in response["output"]]
        with self._lock, self._tables:
            self._add(str(response["id"]), response.get("previous_response_id"), about, items)
            if conversation is not None and self._load_row(conversation) is not None:
                self._add_items(conversation, items)
            self._evict()

    def load_response(self, response_id: str) -> JsonObject | None:
        with self._begin_transaction():
            about = self._load_row(response_id) if response_id.startswith("resp_") else None
            return None if about is None else {**about, "output": self._load_items(response_id, outputs=True)}

    def load_input_items(self, response_id: str) -> list[JsonObject] | None:
        """Return the input items of a response's request, without earlier turns, or None if it is not stored."""
        with self._begin_transaction():
            return None if self._load_row(response_id) is None else self._load_items(response_id, outputs=False)

    def load_history(self, response_id: str) -> list[JsonObject] | None:
        """Return the items of a response and of all responses before it, or None if one of them is missing."""
        turns: list[list[JsonObject]] = []
        with self._begin_transaction():
            holder: str | None = response_id
            seen = set()
            while holder is not None and holder not in seen:
                seen.add(holder)
                row = self._execute("SELECT previous FROM holders WHERE id = ?", (holder,)).fetchone()
                if row is None:
                    return None
                turns.append(self._load_items(holder))
                self._execute("UPDATE holders SET used = ? WHERE id = ?", (self._now(), holder))
                holder = row[0]
        return [item for items in reversed(turns) for item in items]

    def load_item(self, item_id: str) -> JsonObject | None:
        """Return the item with this id, or None if it is not stored. Output items take precedence over input items."""
        query = "SELECT value FROM items WHERE id = ? ORDER BY is_output DESC, number DESC LIMIT 1"
        with self._begin_transaction():
            row = self._execute(query, (item_id,)).fetchone()
        return None if row is None else json.loads(row[0])

    def delete(self, holder: str, kind: str) -> bool:
        """Delete a response (``kind`` is ``resp_``) or a conversation (``conv_``), and return whether it existed."""
        if not holder.startswith(kind):
            return False
        with self._begin_transaction():
            return self._execute("DELETE FROM holders WHERE id = ?", (holder,)).rowcount > 0

    def create_conversation(self, metadata: Json, items: Sequence[JsonObject]) -> JsonObject:
        conversation_id = f"conv_{token_hex(16)}"
        about = {"id": conversation_id, "object": "conversation", "created_at": int(self._now())}
        about["metadata"] = metadata or {}
        with self._begin_transaction():
            self._add(conversation_id, None, about, [(_with_id(item), False) for item in items])
            self._evict()
        return about

    def load_conversation(self, conversation_id: str) -> JsonObject | None:
        with self._begin_transaction():
            return self._load_row(conversation_id) if conversation_id.startswith("conv_") else None

    def set_metadata(self, conversation_id: str, metadata: Json) -> JsonObject | None:
        """Replace the metadata of a conversation, and return the conversation, or None if it is not stored."""
        with self._begin_transaction():
            about = self._load_row(conversation_id)
            if about is None:
                return None
            about["metadata"] = metadata or {}
            self._execute("UPDATE holders SET about = ? WHERE id = ?", (self._dump_text(about), conversation_id))
            return about

    def add_items(self, conversation_id: str, items: Sequence[JsonObject]) -> list[JsonObject] | None:
        """Append items to a conversation, and return them with their ids, or None if the conversation is not stored."""
        with_ids = [_with_id(item) for item in items]
        with self._begin_transaction():
            if self._load_row(conversation_id) is None:
                return None
            self._add_items(conversation_id, [(item, False) for item in with_ids])
            self._evict()
        return with_ids

    def load_items(self, conversation_id: str) -> list[JsonObject] | None:
        with self._begin_transaction():
            return None if self._load_row(conversation_id) is None else self._load_items(conversation_id)

    def delete_item(self, conversation_id: str, item_id: str) -> bool:
        """Delete an item of a conversation, and return whether the item existed."""
        query = "DELETE FROM items WHERE holder = ? AND id = ?"
        with self._begin_transaction():
            return self._execute(query, (conversation_id, item_id)).rowcount > 0

    def _execute(self, query: str, values: Sequence[str | float | None] = ()) -> sqlite3.Cursor:
        """Execute a query. Lone surrogates in ``values``, such as ids from clients, are replaced by ``?``."""
        return self._tables.execute(
            query, [_replace_surrogates(value) if isinstance(value, str) else value for value in values]
        )

    def _load_row(self, holder: str) -> JsonObject | None:
        row = self._execute("SELECT about FROM holders WHERE id = ?", (holder,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _load_items(self, holder: str, *, outputs: bool | None = None) -> list[JsonObject]:
        query = "SELECT value FROM items WHERE holder = ? AND is_output IN (?, ?) ORDER BY number"
        kinds = (0, 1) if outputs is None else (int(outputs),) * 2
        rows = self._execute(query, (holder, *kinds))
        return [json.loads(value) for (value,) in rows]

    def _add(self, holder: str, previous: Json, about: JsonObject, items: Sequence[tuple[JsonObject, bool]]) -> None:
        row = (holder, previous or None, self._now(), 0, self._dump_text(about))
        self._execute("INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?, ?)", row)
        self._add_items(holder, items)

    def _add_items(self, holder: str, items: Sequence[tuple[JsonObject, bool]]) -> None:
        rows = [
            (holder, _replace_surrogates(item["id"]), is_output, self._dump_text(item)) for item, is_output in items
        ]
        self._tables.executemany("INSERT INTO items (holder, id, is_output, value) VALUES (?, ?, ?, ?)", rows)
        size = sum(len(value) for *_, value in rows) + 1_000  # including the overhead of the tables
        self._grown_bytes += size
        self._execute("UPDATE holders SET size = size + ?, used = ? WHERE id = ?", (size, self._now(), holder))

    def _evict(self) -> None:
        """Delete expired entries. If the store is too large, delete the least recently used entries."""
        self._execute("DELETE FROM holders WHERE used < ?", (self._now() - self._max_age_s,))
        if self._grown_bytes < self._max_bytes // 64:
            return
        self._grown_bytes = 0
        (size,) = self._execute("SELECT coalesce(sum(size), 0) FROM holders").fetchone()
        while size > self._max_bytes:
            oldest = "SELECT id, size FROM holders ORDER BY used, rowid LIMIT 1"
            holder, freed = self._execute(oldest).fetchone()
            self._execute("DELETE FROM holders WHERE id = ?", (holder,))
            size -= freed

    def _dump_text(self, value: Mapping[str, Json]) -> str:
        redacted = self._secrets.redact(dict(value)) if self._secrets is not None else value
        return json.dumps(redacted)


def _open(file: Path | None) -> sqlite3.Connection:
    tables = sqlite3.connect(file or ":memory:", LOCK_WAIT_S, check_same_thread=False)
    try:
        version = _check_owner(tables)
    except sqlite3.Error:
        tables.close()
        raise
    tables.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")
    if not version:
        tables.executescript(_TABLES)
    tables.execute("PRAGMA foreign_keys = ON")
    return tables


def _check_owner(tables: sqlite3.Connection) -> int:
    """Return the version of the store, or 0 if the database is empty. Raises DatabaseError if the database belongs to
    another program or has another version."""
    (version,) = tables.execute("PRAGMA user_version").fetchone()
    (application,) = tables.execute("PRAGMA application_id").fetchone()
    names = {name for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    is_ours = application == _APPLICATION_ID or (application == 0 and {"holders", "items"} <= names)
    if (names or version or application) and not is_ours:
        raise sqlite3.DatabaseError("it belongs to another program")
    if version not in (0, _VERSION):
        raise sqlite3.DatabaseError(f"expected store version {_VERSION}, got {version}")
    return int(version)


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _with_id(item: JsonObject) -> JsonObject:
    """Return an item with a type and an id, which are added if they are missing."""
    kind = str(item.get("type") or "message")
    return {"type": kind, **item, "id": str(item.get("id") or f"{_IDS.get(kind, 'item')}_{token_hex(16)}")}


_IDS = {"message": "msg", "reasoning": "rs", "function_call": "fc", "function_call_output": "fco"}
