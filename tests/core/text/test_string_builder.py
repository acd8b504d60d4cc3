"""Strings that are built from pieces."""

from __future__ import annotations

import pytest

from adapter.core.text.string_builder import JOIN_AT, StringBuilder


@pytest.mark.parametrize("count", [0, 1, JOIN_AT - 1, JOIN_AT, JOIN_AT + 1, 10 * JOIN_AT + 7])
def test_pieces_give_their_text_back(count):
    """With halves of surrogate pairs and any line ends. More pieces can follow."""
    texts = ["a", "", "\r\n", "\ud83d", "日本"] * count
    pieces = StringBuilder()
    for text in texts:
        pieces.add(text)
    assert (str(pieces), pieces.size) == ("".join(texts), len("".join(texts)))
    pieces.add("end")
    assert str(pieces) == "".join([*texts, "end"])


def test_pieces_go_on_from_texts():
    pieces = StringBuilder("a", "bc")
    pieces.add("d")
    assert (str(pieces), pieces.size) == ("abcd", 4)
