"""Keep what was built for the messages of a conversation, because its next request begins with the same messages."""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from adapter.core.events import Json, JsonObject
from adapter.protocols.tool_definitions import NO_REFERENCES

MAX_BYTES = 8_000_000
"""Maximum total length of the cached messages, in bytes. It is enough for some twenty conversations of two hundred
turns. With what is built, they take up to 60 MB."""
MAX_CONVERSATIONS = 256
"""Maximum number of cached conversations. Each request is compared with all of them."""
_HEAD = 5
"""Length of a marshalled list's type and length, in bytes. Its items follow."""


@dataclass(frozen=True, slots=True)
class ConvertedMessages:
    """The ``messages`` for the model, made from the first ``count`` messages of the client.

    ``names``: the names of the calls, by id. ``sha``: the hash of the JSON of all messages but the last, which the next
    message may change.
    """

    count: int
    messages: list[JsonObject]
    names: dict[str, str]
    sha: hashlib._Hash

    def extend(self, count: int, added: Sequence[JsonObject], names: dict[str, str]) -> ConvertedMessages:
        """Return the messages with ``added`` ones, made from the client's messages up to ``count``."""
        messages, sha = [*self.messages, *added], self.sha.copy()
        if settled := messages[max(0, len(self.messages) - 1) : -1]:
            sha.update(f"{json.dumps(settled, default=str)[1:-1]}, ".encode())
        return ConvertedMessages(count, messages, names, sha)

    def digest(self, ending: Sequence[JsonObject]) -> str:
        """Return the hash of the JSON of the messages with ``ending`` in place of the last one."""
        sha = self.sha.copy()
        sha.update(json.dumps(ending, default=str)[1:].encode())
        return sha.hexdigest()


NOTHING = ConvertedMessages(0, [], {}, hashlib.sha256(b"["))


Built = TypeVar("Built")


@dataclass(frozen=True, slots=True, eq=False)
class CachedConversation(Generic[Built]):
    """``encoded``: the client's messages. ``key``: everything else that ``built`` depends on."""

    encoded: bytes
    key: Hashable
    built: Built


class ConversationCache(Generic[Built]):
    """The conversations of the last requests. Threads may share a cache."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._conversations: list[CachedConversation[Built]] = []
        self._size, self._max_bytes = 0, max_bytes
        self._changing = Lock()

    def find(self, encoded: bytes, key: Hashable) -> CachedConversation[Built] | None:
        """Return the longest conversation with which the ``encoded`` messages begin."""
        found = [each for each in self._conversations[:] if encoded.startswith(each.encoded) and each.key == key]
        return max(found, key=lambda each: len(each.encoded), default=None)

    def store(self, conversation: CachedConversation[Built], instead_of: CachedConversation[Built] | None) -> None:
        """Store a conversation. ``instead_of``: its beginning."""
        with self._changing:
            if instead_of in self._conversations:
                self._remove(instead_of)
            self._conversations.append(conversation)
            self._size += len(conversation.encoded)
            while self._size > self._max_bytes or len(self._conversations) > MAX_CONVERSATIONS:
                self._remove(self._conversations[0])

    def _remove(self, conversation: CachedConversation[Built]) -> None:
        self._conversations.remove(conversation)
        self._size -= len(conversation.encoded)


def hash_messages(messages: Json) -> str:
    """Return the SHA-256 of the JSON of ``messages``."""
    return hashlib.sha256(json.dumps(messages, default=str).encode()).hexdigest()


def encode_messages(messages: Json) -> bytes:
    """Return bytes that begin with the bytes of other messages if and only if ``messages`` begin with them.

    They are empty for a value that is not a list.
    """
    return marshal.dumps(messages, NO_REFERENCES)[_HEAD:] if isinstance(messages, list) else b""
