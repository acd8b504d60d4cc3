"""Cache the text that the model wrote for each call, so that later prompts repeat it byte for byte."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from adapter.core.events import JsonObject
from adapter.core.text.text_cache import TextCache
from adapter.protocols.conversation_cache import ConversationCache

Call: TypeAlias = tuple[str, str, JsonObject]
"""The id, name and arguments of a call."""

MAX_CHARACTERS = 16_000_000
"""Maximum total length of the cached answers and their keys, in characters. It is enough for about a thousand
conversations.
"""


class VerbatimCallCache:
    """A cache of texts that the model wrote. The key consists of the format, the conversation and the client's version
    of the answer.

    An answer is found only if the client sends it back unchanged after the same messages, so no client gets a text that
    the model wrote for another one. The least recently used answers are evicted. ``before`` is the `hash_beginning` of
    the messages before the answer.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._texts = TextCache(max_characters)
        self.conversations = ConversationCache()

    def remember(self, format: str, before: str, content: str, calls: Sequence[Call], text: str) -> None:
        """Store ``text``, which the model wrote, for the ``content`` and ``calls`` that the client got."""
        key = _build_key(format, before, content, calls)
        self._texts.store(key, text, len(key))

    def recall(self, format: str, before: str, content: str, calls: Sequence[Call]) -> str | None:
        """Return the text that the model wrote for an answer, or None if it is not cached."""
        return self._texts.find(_build_key(format, before, content, calls))


def _build_key(format: str, before: str, content: str, calls: Sequence[Call]) -> str:
    """Return the cache key of an answer. It does not contain call ids, because Ollama's clients do not return them."""
    bare = [[name, arguments] for _, name, arguments in calls]
    return json.dumps([format, before, content.strip(), bare], sort_keys=True)
