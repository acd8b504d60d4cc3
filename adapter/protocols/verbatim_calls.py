"""The model's own text of the calls that clients send back, so that the model sees the same bytes again."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

from adapter.core.events import JsonObject

Call: TypeAlias = tuple[str, str, JsonObject]
"""(id, name, arguments)."""

MAX_CHARACTERS = 16_000_000
"""Maximum size of the cached answers and their keys, in characters: some thousand conversations."""


class VerbatimCallCache:
    """A cache of answers with calls, keyed by the client's version and the format; the oldest are evicted first.

    Only answers that the client returns unchanged are found.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0
        self._max = max_characters

    def remember(self, format: str, content: str, calls: Sequence[Call], text: str) -> None:
        """Store ``text``, the model's own text, for the ``content`` and ``calls`` sent to the client."""
        for key in _keys(format, content, calls):
            if (before := self._texts.pop(key, None)) is not None:
                self._size -= len(key) + len(before)
            self._texts[key] = text
            self._size += len(key) + len(text)
        while self._size > self._max and self._texts:
            key, text = self._texts.popitem(last=False)
            self._size -= len(key) + len(text)

    def recall(self, format: str, content: str, calls: Sequence[Call]) -> str | None:
        """Return the model's own text if the answer is cached."""
        for key in _keys(format, content, calls):
            if (text := self._texts.get(key)) is not None:
                with suppress(KeyError):  # evicted by another thread
                    self._texts.move_to_end(key)
                return text
        return None


def _keys(format: str, content: str, calls: Sequence[Call]) -> list[str]:
    """Build keys with call ids, which distinguish answers, and without, as Ollama's clients drop them."""
    bare = [[name, arguments] for _, name, arguments in calls]
    return [
        json.dumps([format, content.strip(), ids, bare], sort_keys=True)
        for ids in ([call_id for call_id, _, _ in calls], [])
    ]
