"""Cache data that is built from a conversation's messages, and the model's answers as the model wrote them.

The next request of a conversation begins with the same messages, so only new messages are converted. Its prompt repeats
the model's answers byte for byte, so the model server can reuse its prompt cache.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from adapter.core.events import Json, JsonObject
from adapter.core.text.text_cache import TextCache
from adapter.protocols.tool_definitions import NO_REFERENCES

MAX_BYTES = 8_000_000
"""Maximum total length of the cached messages, in bytes: about twenty conversations of two hundred turns. With the
cached data, they take up to 60 MB of memory.
"""
MAX_CONVERSATIONS = 256
"""Maximum number of cached conversations. Each request is compared with all of them."""
MAX_BUILT = 6
"""Maximum number of objects cached for one conversation. A client that never changes its tools needs three."""
_HEAD = 5
"""Length of the header of a marshalled list, in bytes: its type and its number of items."""


Blake2b: TypeAlias = hashlib.blake2b
Built = TypeVar("Built")


def hash_beginning(encoded: bytes) -> Blake2b:
    """Return a hash object of a conversation's first messages, given their encoding. It can be updated with later
    messages."""
    return hashlib.blake2b(encoded, digest_size=16)


def encode_messages(messages: Json) -> bytes:
    """Encode messages so that one conversation is a prefix of another exactly if its encoding is a prefix of the
    other's."""
    return marshal.dumps(messages, NO_REFERENCES)[_HEAD:]


def copy_messages(messages: Json) -> Json:
    """Return a deep copy of ``messages``, which the caller may change later."""
    return marshal.loads(marshal.dumps(messages, NO_REFERENCES)) if isinstance(messages, list) else messages


@dataclass(slots=True, eq=False)
class Conversation:
    """The messages of a request, which must not be changed, and the objects that were built from them."""

    messages: Json
    beginnings: Sequence[str] = ()
    """Only for a shortened conversation: the hash of the client's original messages before each remaining message, and
    finally of all original messages."""
    known: int = 0
    """Number of messages at the beginning that an earlier request already contained."""
    size: int = 0
    """Length of the ``known`` messages, in bytes; after `ConversationCache.store`, of all messages."""
    compared: list[Any] = field(init=False)
    """One item for each message, to compare conversations: the message, with its hash if the conversation was
    shortened."""
    _built: dict[Hashable, Any] = field(default_factory=dict)
    _found: Conversation | None = None
    """The cached conversation that this one continues."""

    def __post_init__(self) -> None:
        messages = self.messages if isinstance(self.messages, list) else []
        self.compared = [*zip(self.beginnings, messages, strict=False)] if self.beginnings else messages

    def continue_from(self, beginning: Conversation) -> None:
        """Reuse the objects built for ``beginning``, a conversation that consists of the first messages of this
        conversation."""
        self.known, self.size, self._found = len(beginning.compared), beginning.size, beginning
        self._built = dict([*beginning._built.items()][-MAX_BUILT:])

    def get_built(self, key: Hashable, default: Built) -> Built:
        """Return the object stored under ``key`` for this conversation or its beginning, or ``default``."""
        built: Built = self._built.get(key, default)
        return built

    def store_built(self, key: Hashable, built: object) -> None:
        self._built.pop(key, None)
        self._built[key] = built

    def encode_new(self) -> bytes:
        """Encode the messages that no earlier request contained."""
        return encode_messages(self.compared[self.known :])

    def hash_messages(self) -> str:
        """Return the hash of all messages as a hexadecimal string. Only new messages are hashed."""
        count, before = self.get_built("hash", (0, hash_beginning(b"")))
        beginning = before.copy()
        beginning.update(encode_messages(self.compared[count:]))
        self.store_built("hash", (len(self.compared), beginning))
        return beginning.hexdigest()

    def hash_before(self, index: int, beginning: Blake2b) -> str:
        """Return the hash of the client's original messages before the message at ``index``.

        ``beginning`` is the hash of this conversation's messages before ``index``. The two hashes differ only if the
        conversation was shortened.
        """
        return self.beginnings[index] if self.beginnings else beginning.hexdigest()

    def shorten(self, fitted: Sequence[Json], indices: Sequence[int]) -> Conversation:
        """Return a conversation with only the messages ``fitted``. ``indices`` are their positions in this one."""
        hashes, beginning = list[str](), hash_beginning(b"")
        for message in self.messages:
            hashes.append(beginning.hexdigest())
            beginning.update(encode_messages([message]))
        return Conversation([*fitted], [*(hashes[index] for index in indices), beginning.hexdigest()])


@dataclass(frozen=True, slots=True)
class ConvertedMessages:
    """Messages for the model, built from the client's first ``count`` messages."""

    count: int
    messages: list[JsonObject]
    names: dict[str, str]
    """The names of the called tools, by call id."""
    beginning: Blake2b
    """Hash of the client's messages that were converted."""


@dataclass(frozen=True, slots=True)
class ConvertedTemplateMessages:
    """Messages for a chat template, one for each of the client's messages."""

    messages: list[JsonObject] = field(default_factory=list)
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The id shown to the template and the tool name of each call, by the client's call id."""
    order: dict[str, int] = field(default_factory=dict)
    """The position of each call, by the id shown to the template."""
    written: dict[str, str] = field(default_factory=dict)
    """Answers as the model wrote them, by placeholder; see `TemplateMessages`."""
    beginning: Blake2b = field(default_factory=lambda: hash_beginning(b""))
    """Hash of the client's messages that were converted."""

    def copy(self) -> ConvertedTemplateMessages:
        return ConvertedTemplateMessages(
            [*self.messages], {**self.calls}, {**self.order}, {**self.written}, self.beginning.copy()
        )


NOTHING = ConvertedMessages(0, [], {}, hash_beginning(b""))


class ConversationCache:
    """The conversations of the last requests. Threads can share a cache; a race may lose one entry."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._conversations: tuple[list[Conversation], int] = [], 0
        """The cached conversations, and the total length of their messages."""
        self._max_bytes = max_bytes

    def continue_longest(self, conversation: Conversation) -> Conversation:
        """Let ``conversation`` reuse the objects of the longest cached conversation that it continues, and return it.
        Values such as 1 and True count as equal."""
        compared, longest = conversation.compared, 0
        for each in self._conversations[0]:
            known, count = each.compared, len(each.compared)
            # The last messages usually differ.
            if longest < count <= len(compared) and compared[count - 1] == known[-1] and compared[:count] == known:
                conversation.continue_from(each)
                longest = count
        return conversation

    def store(self, conversation: Conversation) -> None:
        """Store a conversation. It replaces the cached conversation that it continues."""
        before, size = self._conversations
        found, conversation._found = conversation._found, None
        kept = [each for each in before if each is not found]
        if found is not None and len(kept) < len(before):
            size -= found.size
        conversation.size += len(conversation.encode_new())
        kept.append(conversation)
        size += conversation.size
        while size > self._max_bytes or len(kept) > MAX_CONVERSATIONS:
            size -= kept.pop(0).size
        self._conversations = kept, size


Call: TypeAlias = tuple[str, str, JsonObject]
"""The id, name and arguments of a call."""

MAX_CHARACTERS = 16_000_000
"""Maximum total length of the cached answers and their keys, in characters: about a thousand conversations."""


class VerbatimCallCache:
    """A cache of the model's answers as the model wrote them.

    The key consists of the format, the hash of the messages ``before`` the answer, and the ``content`` and ``calls``
    that the client received. An answer is found only if the client sends it back unchanged after the same messages, so
    no client gets an answer meant for another one. The least recently used answers are evicted.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._texts = TextCache(max_characters)
        self.conversations = ConversationCache()

    def remember(self, format: str, before: str, content: str, calls: Sequence[Call], text: str) -> None:
        """Store ``text``, the answer as the model wrote it, which the client received as ``content`` and ``calls``."""
        key = _build_key(format, before, content, calls)
        self._texts.store(key, text, len(key))

    def recall(self, format: str, before: str, content: str, calls: Sequence[Call]) -> str | None:
        """Return an answer as the model wrote it, or None if it is not cached."""
        return self._texts.find(_build_key(format, before, content, calls))


def _build_key(format: str, before: str, content: str, calls: Sequence[Call]) -> str:
    """Return the cache key of an answer. It does not contain call ids, because Ollama's clients do not return them."""
    bare = [[name, arguments] for _, name, arguments in calls]
    return json.dumps([format, before, content.strip(), bare], sort_keys=True)
