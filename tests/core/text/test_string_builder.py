"""Texts that come in pieces."""

from __future__ import annotations

import pytest

from adapter.core.text.string_builder import JOINED, StringBuilder


@pytest.mark.parametrize("count", [0, 1, JOINED - 1, JOINED, JOINED + 1, 10 * JOINED + 7])
def test_pieces_give_their_text_back(count):
    """However many there are, with halves of surrogate pairs and line ends as they came; and it can go on."""
    texts = ["a", "", "\r\n", "\ud83d", "日本"] * count
    pieces = StringBuilder()
    for text in texts:
        pieces.add(text)
    assert (str(pieces), pieces.size) == ("".join(texts), len("".join(texts)))
    pieces.add("end")
    assert str(pieces) == "".join([*texts, "end"])


def test_pieces_go_on_from_texts():
    """What was there before comes first."""
    pieces = StringBuilder("a", "bc")
    pieces.add("d")
    assert (str(pieces), pieces.size) == ("abcd", 4)
