"""Truncation: the documented rule, and a limit in bytes that always holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.text.truncate import truncate, with_notes


@given(st.text(st.characters(codec=None), max_size=400), st.integers(1, 300), st.integers(1, 20))
def test_result_always_fits_and_encodes(text, max_bytes, max_lines):
    """For any text, the result is valid UTF-8 within the limit."""
    result = truncate(text, max_bytes, max_lines, head=3, tail=2)
    assert len(result.encode()) <= max_bytes


@given(st.text(max_size=300))
def test_small_results_are_unchanged(text):
    assert truncate(text) == text


def test_two_thousand_lines_pass_and_one_more_is_cut():
    """C223: the documented line limit is exact."""
    lines = [f"{i}\n" for i in range(1, 2002)]
    assert truncate("".join(lines[:2000])) == "".join(lines[:2000])
    cut = truncate("".join(lines))
    assert cut.startswith("".join(lines[:100]))
    assert cut.endswith("".join(lines[-50:]))
    assert "101\n" not in cut
    assert f"{len(''.join(lines))} bytes, 2001 lines" in cut
    assert "first 100 and last 50 lines" in cut


def test_over_50_kb_shows_the_first_100_and_last_50_lines():
    """C223: the documented size limit counts bytes."""
    text = "".join(f"line {i:04}  {'x' * 40}\n" for i in range(1, 1500))
    cut = truncate(text)
    assert cut.startswith("line 0001")
    assert "line 0100" in cut
    assert "line 0101" not in cut
    assert "line 1450" in cut
    assert "line 1449" not in cut


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "é" * 600_000, ("y" * 7_000 + "\n") * 151, ("😀" * 40_000 + "\n") * 3],
    ids=["one 1 MB line", "one line of two-byte characters", "151 lines of 7 KB", "emoji"],
)
def test_long_lines_cannot_pass_the_byte_limit(text):
    """D7: a limit on lines alone let a single line of 1 MB through."""
    cut = truncate(text)
    assert 40_000 < len(cut.encode()) <= 51_200
    assert "TRUNCATED" in cut
    assert cut[0] == text[0]
    assert cut[-1] == text[-1]


def test_two_thirds_of_the_bytes_go_to_the_start():
    """The start identifies a text. The whole budget is used."""
    cut = truncate("~" * 60_000 + "^" * 60_000)
    start, end = cut.count("~"), cut.count("^")
    assert len(cut.encode()) == 51_200
    assert start == (start + end) * 2 // 3


def test_truncate_gives_unused_bytes_to_the_other_part():
    """A short end is kept whole, below as much of the start as fits, or the other way round."""
    short, long = [f"{i}\n" for i in range(1000, 3000)], [f"{i}{'~' * 2_000}\n" for i in range(1000, 1100)]
    cut = truncate("".join(long + short))
    assert len(cut.encode()) == 51_200
    assert cut.endswith("]\n" + "".join(short[-50:]))
    cut = truncate("".join(short + long))
    assert len(cut.encode()) == 51_200
    assert cut.startswith("".join(short[:100]) + "\n[TRUNCATED")


def test_lone_surrogates_become_encodable():
    """A surrogate in a result would make the next request fail."""
    assert truncate("a\ud800b") == "a\ufffdb"


def test_message_names_the_next_step():
    """A model asks for less if it knows how."""
    assert "Request less" in truncate("x\n" * 5000)


def test_notes_follow_a_result_that_lacks_them():
    """Each appears once, within the limits, even if the cut would have removed it."""
    assert with_notes("a\n", ()) == "a\n"
    assert with_notes("a\n", ("n", "m")) == "a\n(note: n)\n(note: m)"
    assert with_notes("a (note: n)", ("n",)) == "a (note: n)"
    long = "x" * 500 + "the note" + "y" * 500
    cut = with_notes(long, ("the note",), max_bytes=400)
    assert cut.endswith("\n(note: the note)")
    assert len(cut.encode()) <= 400
