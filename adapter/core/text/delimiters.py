"""Split a text at delimiters that occur once."""

from __future__ import annotations


def split_around(text: str, *words: str) -> list[str] | None:
    """Split ``text`` at the words, each of which must occur exactly once and in order; otherwise return None."""
    pieces = []
    for word in words:
        piece, found, text = text.partition(word)
        if not found or word in text:
            return None
        pieces.append(piece)
    return [*pieces, text]
