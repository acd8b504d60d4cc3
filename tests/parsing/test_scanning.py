"""What is taken up to each marker does not depend on how the text came."""

from __future__ import annotations

from hypothesis import example, given

from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import StreamBuffer
from tests.parsing.test_marker_set import both, searches


def scanned(markers, pieces):
    """The plain texts and the markers, in turn."""
    source, plain, found = StreamBuffer(), "", []
    for piece in (*pieces, None):
        source.final = piece is None
        source.feed(piece or "")
        while True:
            text, marker = source.scan(markers)
            plain += text
            if not marker:
                break
            found += [plain, marker]
            plain = ""
    return [*found, plain]


@given(searches())
@example((["action: ```json", "```"], "so Action: ```json and ```", 0, 0))
def test_pieces_do_not_show(search):
    literals, text, size, at = search
    for markers in both(literals):
        whole = scanned(markers, [text])
        assert scanned(markers, list(text)) == whole
        assert scanned(markers, [text[:at], text[at:]]) == whole
        assert scanned(markers, [text[start : start + size + 1] for start in range(0, len(text), size + 1)]) == whole


def test_a_marker_within_a_longer_one_waits_for_it():
    """Only while that may still come."""
    markers = MarkerSet("action:\n```json", "```")
    assert scanned(markers, "Action:\n```json") == ["", "Action:\n```json", ""]
    assert scanned(markers, "Action:\n```python") == ["Action:\n", "```", "python"]
