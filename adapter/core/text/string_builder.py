"""A text that comes in thousands of small pieces, each of which by itself would weigh ten times its characters."""

from __future__ import annotations

JOINED = 64
"""Pieces that become one."""


class StringBuilder:
    """``size``: characters so far. Adding costs the same however many there are."""

    __slots__ = ("_joined", "_new", "size")

    def __init__(self, *texts: str) -> None:
        self._joined: list[str] = []
        self._new = list(texts)
        self.size = sum(map(len, texts))

    def add(self, text: str) -> None:
        self.size += len(text)
        self._new.append(text)
        if len(self._new) >= JOINED:
            self._joined.append("".join(self._new))
            self._new.clear()

    def __str__(self) -> str:
        """All of it."""
        return "".join((*self._joined, *self._new))
