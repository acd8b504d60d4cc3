"""Context scores in bits: changing any constant breaks one of these tests."""

from math import log2

import pytest

from adapter.editing.document import TextDocument
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.normalize import is_distinctive
from adapter.editing.matching.stale_context import ContextScorer

SIZE = 1_000
FILLING = [f"filling {number} of the document" for number in range(SIZE)]
AT = 500
RARE = "a line that stands nowhere else"
ONCE = log2(SIZE + 1)
"""Bits of a long line that occurs once among so many."""


def around(lines, old, first=AT):
    """Return the bits above the last old line, which is at ``first``."""
    context = ContextScorer(DocumentIndex(TextDocument("\n".join(lines))), old)
    return context.score_location(range(len(old) - 1, len(old)), first, first).above


def with_lines(*placed):
    lines = list(FILLING)
    for at, line in placed:
        lines[at] = line
    return lines


def test_each_line_between_costs_half_a_bit():
    """A context line counts less, the more lines separate it from the location."""
    said = [around(with_lines((AT - 1 - between, RARE)), [RARE, FILLING[AT]]) for between in (0, 1, 4)]
    assert said == pytest.approx([ONCE, ONCE - 0.5, ONCE - 2.0])


def test_blank_lines_between_cost_nothing():
    """They are not counted."""
    lines = with_lines((AT - 3, RARE), (AT - 2, ""), (AT - 1, ""))
    assert around(lines, [RARE, FILLING[AT]]) == pytest.approx(log2(SIZE - 1))


def test_search_distance_is_context_size_plus_fifteen():
    """Lines farther away are unrelated."""
    shown = [RARE, FILLING[AT]]
    assert around(with_lines((AT - 16, RARE)), shown) == pytest.approx(ONCE - 15 * 0.5)
    assert around(with_lines((AT - 17, RARE)), shown) == 0


def test_only_the_nearest_forty_context_lines_are_searched():
    """On each side."""
    absent = [f"<{number}>" for number in range(40)]
    lines = with_lines((AT - 1, RARE))
    assert around(lines, [RARE, *absent[1:], FILLING[AT]]) == pytest.approx(ONCE)
    assert around(lines, [RARE, *absent, FILLING[AT]]) == 0


def test_missing_line_counts_by_similarity():
    """From 70 % similarity on; 50 % counts nothing."""
    shown = "abcdefghijklmnopqrst"

    def said(equal):
        other = shown[:equal] + "_" * (20 - equal)
        return around(with_lines((AT - 1, other)), [shown, FILLING[AT]])

    assert said(18) == pytest.approx(0.8 * ONCE)
    assert said(14) == pytest.approx(0.4 * ONCE)
    assert said(13) == 0


def test_similarity_counts_for_lines_of_eight_letters():
    """``value()`` is like too many."""
    assert is_distinctive("abcd 1234")
    assert not is_distinctive("abc 1234 ()[]{}")


def test_small_documents_count_as_250_lines():
    """A line that occurs once among ten is not significant."""
    assert around([*FILLING[:3], RARE, FILLING[4]], [RARE, FILLING[4]], 4) == pytest.approx(log2(251))


@pytest.mark.parametrize(("line", "bits"), [("}", 2.0), ("})", 2.0), ("a }", 3.0), ("end", 5.0)])
def test_punctuation_has_two_bits_and_each_letter_one_more(line, bits):
    """However rare it is."""
    assert around(with_lines((AT - 1, line)), [line, FILLING[AT]]) == pytest.approx(bits)
