"""Cache the data built for a conversation's messages, because its next request begins with the same messages."""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from adapter.core.events import Json, JsonObject
from adapter.protocols.tool_definitions import NO_REFERENCES

MAX_BYTES = 8_000_000
"""Maximum total length of the cached messages, in bytes. It is enough for about twenty conversations of two hundred
turns. With the data built for them, they take up to 60 MB.
"""
MAX_CONVERSATIONS = 256
"""Maximum number of cached conversations. Each request is compared with all of them."""
_HEAD = 5
"""Length of a marshalled list's type and length, in bytes. Its items follow."""


Blake2b: TypeAlias = hashlib.blake2b


def hash_beginning(encoded: bytes) -> Blake2b:
    """Return a hash of the first messages of a conversation, to which the bytes of later ones can be added."""
    return hashlib.blake2b(encoded, digest_size=16)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as sent. ``encoded``: its messages and what precedes them, as bytes; see `encode_messages`.
    ``beginnings``: for a shortened conversation, the hashes of the client's messages before each message, and of all.
    """

    messages: Json
    encoded: bytes = b""
    beginnings: Sequence[str] = ()

    @classmethod
    def shorten(cls, messages: Json, fitted: Sequence[Json], indices: Sequence[int]) -> Conversation:
        """Build the conversation from a client's ``messages`` after shortening. ``fitted``: the messages that remain;
        ``indices``: their positions in ``messages``.
        """
        hashes, beginning = list[str](), hash_beginning(b"")
        for message in messages:
            hashes.append(beginning.hexdigest())
            beginning.update(encode_messages([message]))
        beginnings = [*(hashes[index] for index in indices), beginning.hexdigest()]
        return cls(fitted, encode_messages(list(zip(beginnings, fitted, strict=False))), beginnings)

    def hash_before(self, index: int, beginning: Blake2b) -> str:
        """Return the hash of the client's messages before a message. ``beginning``: the hash of the sent messages
        before it.
        """
        return self.beginnings[index] if self.beginnings else beginning.hexdigest()


@dataclass(frozen=True, slots=True)
class ConvertedMessages:
    """The ``messages`` for the model, made from the first ``count`` messages of the client."""

    count: int
    messages: list[JsonObject]
    names: dict[str, str]
    """The names of the calls, by id."""
    sha: hashlib._Hash
    """The hash of the JSON of all messages but the last, which the next message may change."""
    beginning: Blake2b
    """`hash_beginning` of the client's messages."""

    def extend(
        self, count: int, added: Sequence[JsonObject], names: dict[str, str], beginning: Blake2b
    ) -> ConvertedMessages:
        """Return these messages followed by ``added``, so that they cover the client's messages up to ``count``."""
        messages, sha = [*self.messages, *added], self.sha.copy()
        if settled := messages[max(0, len(self.messages) - 1) : -1]:
            sha.update(f"{json.dumps(settled, default=str)[1:-1]}, ".encode())
        return ConvertedMessages(count, messages, names, sha, beginning)

    def hash_with_ending(self, ending: Sequence[JsonObject]) -> str:
        """Return the hash of the JSON of the messages with ``ending`` in place of the last one."""
        sha = self.sha.copy()
        sha.update(json.dumps(ending, default=str)[1:].encode())
        return sha.hexdigest()


@dataclass(frozen=True, slots=True)
class ReadTemplateMessages:
    """Messages for a chat template, one for each message of the client."""

    messages: list[JsonObject] = field(default_factory=list)
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The template's id and the name of each call, by the client's id."""
    order: dict[str, int] = field(default_factory=dict)
    """The position of each call, by the template's id."""
    written: dict[str, str] = field(default_factory=dict)
    """Text that the model wrote, as in `TemplateMessages`."""
    beginning: Blake2b = field(default_factory=lambda: hash_beginning(b""))
    """`hash_beginning` of the client's messages."""

    def copy(self) -> ReadTemplateMessages:
        return ReadTemplateMessages(
            [*self.messages], {**self.calls}, {**self.order}, {**self.written}, self.beginning.copy()
        )


NOTHING = ConvertedMessages(0, [], {}, hashlib.sha256(b"["), hash_beginning(b""))


Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class CachedConversation(Generic[Built]):
    """The data ``built`` for a conversation. ``encoded``: the client's messages. ``key``: everything else that
    ``built`` depends on.
    """

    encoded: bytes
    key: Hashable
    built: Built


class ConversationCache(Generic[Built]):
    """The conversations of the last requests. Threads may share a cache; a race between them loses at most a
    conversation.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._conversations: tuple[list[CachedConversation[Built]], int] = [], 0
        """The cached conversations, and the total length of their messages."""
        self._max_bytes = max_bytes

    def find(self, encoded: bytes, key: Hashable = None) -> CachedConversation[Built] | None:
        """Return the longest cached conversation that the ``encoded`` messages begin with. ``key``: None accepts any
        key.
        """
        conversations, _ = self._conversations
        found = [each for each in conversations if encoded.startswith(each.encoded) and key in (None, each.key)]
        return max(found, key=lambda each: len(each.encoded), default=None)

    def store(self, conversation: CachedConversation[Built], instead_of: CachedConversation[Built] | None) -> None:
        """Store a conversation. ``instead_of``: a cached beginning of the conversation, which is removed."""
        before, size = self._conversations
        kept = [each for each in before if each is not instead_of]
        if instead_of is not None and len(kept) < len(before):
            size -= len(instead_of.encoded)
        kept.append(conversation)
        size += len(conversation.encoded)
        while size > self._max_bytes or len(kept) > MAX_CONVERSATIONS:
            size -= len(kept.pop(0).encoded)
        self._conversations = kept, size


def hash_messages(encoded: bytes) -> str:
    """Return the SHA-256 of messages encoded by `encode_messages`."""
    return hashlib.sha256(encoded).hexdigest()


def encode_messages(messages: Json) -> bytes:
    """Return bytes that begin with the bytes of other messages if and only if ``messages`` begin with them.

    They are empty for a value that is not a list.
    """
    return marshal.dumps(messages, NO_REFERENCES)[_HEAD:] if isinstance(messages, list) else b""
