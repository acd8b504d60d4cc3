"""Split a string at words that each occur once."""

from __future__ import annotations


def split_around(text: str, *words: str) -> list[str] | None:
    """Split ``text`` at ``words``. Return None unless each word occurs exactly once, and in this order."""
    pieces = []
    for word in words:
        piece, found, text = text.partition(word)
        if not found or word in text:
            return None
        pieces.append(piece)
    return [*pieces, text]
