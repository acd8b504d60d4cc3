"""What the model wrote for the calls that a client sends back, so that it is shown the same bytes again."""

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
"""Of the answers that are kept, keys included: some thousand conversations."""


class VerbatimCallCache:
    """Answers with calls, by what the client was given of them and the format; the oldest go first.

    What is not exactly what the client was given, or is not known any more, is not recalled.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0
        self._max = max_characters

    def remember(self, format: str, content: str, calls: Sequence[Call], text: str) -> None:
        """``content`` and ``calls`` are what the client gets, ``text`` is what the model wrote."""
        for key in _keys(format, content, calls):
            if (before := self._texts.pop(key, None)) is not None:
                self._size -= len(key) + len(before)
            self._texts[key] = text
            self._size += len(key) + len(text)
        while self._size > self._max and self._texts:
            key, text = self._texts.popitem(last=False)
            self._size -= len(key) + len(text)

    def recall(self, format: str, content: str, calls: Sequence[Call]) -> str | None:
        """What the model wrote, where this is an answer that was remembered."""
        for key in _keys(format, content, calls):
            if (text := self._texts.get(key)) is not None:
                with suppress(KeyError):  # another thread's answer has just taken its place
                    self._texts.move_to_end(key)
                return text
        return None


def _keys(format: str, content: str, calls: Sequence[Call]) -> list[str]:
    """With ids, which tell answers apart, and without, for Ollama's clients lose them."""
    bare = [[name, arguments] for _, name, arguments in calls]
    return [
        json.dumps([format, content.strip(), ids, bare], sort_keys=True)
        for ids in ([call_id for call_id, _, _ in calls], [])
    ]
