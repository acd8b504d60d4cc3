"""`StreamBuffer.search` examines text a bounded number of times, and finds the same as a fresh search."""

from __future__ import annotations

from random import Random

from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import StreamBuffer


def test_search_equals_fresh_search():
    """After any searches, takes, put-backs and feeds."""
    markers, others = MarkerSet("<a>", "<ab>", "b<"), MarkerSet("a<", "<")
    for seed in range(300):
        chance = Random(seed)
        source = StreamBuffer("".join(chance.choices("<ab> ", k=30)))
        for _ in range(40):
            match chance.randrange(4):
                case 0:
                    source.feed("".join(chance.choices("<ab> ", k=chance.randrange(6))))
                case 1:
                    source.position = chance.randint(source.position, len(source.text))
                case 2:
                    source.push_back(source.text[chance.randint(0, source.position) : source.position])
                case _:
                    looked_for, end = chance.choice((markers, others)), source.position + chance.randrange(30)
                    expected = looked_for.search(source.text, source.position, end)
                    assert source.search(looked_for, end) == expected


def test_text_without_marker_is_searched_once():
    """Also for many long lookaheads, and while the text is arriving."""
    looked_at = 0

    class Counting(MarkerSet):
        def search(self, text, start, end=0):
            nonlocal looked_at
            looked_at += max(0, min(end, len(text)) - start)
            return super().search(text, start, end)

    source, markers = StreamBuffer(), Counting("</end>")
    for _ in range(1_000):
        source.feed("open")
        for _ in source.peek_marker(markers, 2_000):
            break
    source.final = True
    for source.position in range(0, 4_000, 4):
        list(source.peek_marker(markers, 2_000))
    assert looked_at < 4_000 + 2_000 * len("</end>")
