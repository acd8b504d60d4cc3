"""A cache of strings that is limited by their total length rather than their number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress


class TextCache:
    """A cache of strings that evicts the least recently used strings.

    ``max_characters``: maximum total length of strings and keys. Threads may share a cache; a race loses at most one
    entry.
    """

    def __init__(self, max_characters: int) -> None:
        self._texts: OrderedDict[Hashable, tuple[str, int]] = OrderedDict()
        self._size = 0
        self._max = max_characters

    def store(self, key: Hashable, text: str, key_size: int) -> None:
        """Store ``text``. ``key_size`` is the length of the text in ``key``, in characters."""
        self._size -= self._texts.pop(key, ("", 0))[1]
        self._texts[key] = text, key_size + len(text)
        self._size += key_size + len(text)
        with suppress(KeyError):  # emptied by another thread
            while self._size > self._max:
                _, (_, size) = self._texts.popitem(last=False)
                self._size -= size
        if not self._texts:
            self._size = 0

    def find(self, key: Hashable) -> str | None:
        """Return the text for ``key``, or None if it is not cached."""
        if (found := self._texts.get(key)) is None:
            return None
        with suppress(KeyError):  # evicted by another thread
            self._texts.move_to_end(key)
        return found[0]
