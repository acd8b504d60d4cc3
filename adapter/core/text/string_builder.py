"""Build a string from thousands of small ones without keeping an object for each."""

from __future__ import annotations

JOIN_AT = 64
"""Number of strings joined at a time."""


class StringBuilder:
    """Collects strings, which ``str()`` joins. ``size`` is the total number of characters. Adding a string takes
    amortized constant time."""

    __slots__ = ("_joined", "_new", "size")

    def __init__(self, *texts: str) -> None:
        self._joined: list[str] = []
        self._new = list(texts)
        self.size = sum(map(len, texts))

    def add(self, text: str) -> None:
        self.size += len(text)
        self._new.append(text)
        if len(self._new) >= JOIN_AT:
            self._joined.append("".join(self._new))
            self._new.clear()

    def __str__(self) -> str:
        return "".join((*self._joined, *self._new))
