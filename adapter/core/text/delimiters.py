"""A text taken apart at words that are known to stand in it."""

from __future__ import annotations


def split_around(text: str, *words: str) -> list[str] | None:
    """What stands around the words, of which each must come once and in this order; None where they do not."""
    pieces = []
    for word in words:
        piece, found, text = text.partition(word)
        if not found or word in text:
            return None
        pieces.append(piece)
    return [*pieces, text]
