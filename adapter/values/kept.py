"""What was made of texts, kept for the next time the same comes, within a bound of characters and not of entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

Value = TypeVar("Value")

MAX_VALUES = 1_000
"""That one keeps, however short their texts."""


class Kept(Generic[Value]):
    """Values by text, ``max_characters`` of texts together: the oldest go first, and a text of more than a quarter of
    that is not kept, so that it takes nobody's place. Threads may share it: at worst one makes again what another has
    just made."""

    def __init__(self, max_characters: int) -> None:
        self._values: OrderedDict[tuple[str, Hashable], Value] = OrderedDict()
        self._max = max_characters

    def of(self, text: str, make: Callable[[], Value], *rest: Hashable) -> Value:
        """The value for ``text`` and ``rest``: what ``make`` gave for them before, or gives now."""
        key = (text, rest)
        with suppress(KeyError):
            value = self._values[key]
            self._values.move_to_end(key)
            return value
        value = make()
        if len(text) * 4 <= self._max:
            self._values[key] = value
            while self._is_full():
                self._values.popitem(last=False)
        return value

    def _is_full(self) -> bool:
        kept = list(self._values)
        return len(kept) > MAX_VALUES or sum(len(text) for text, _ in kept) > self._max
