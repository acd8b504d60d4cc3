"""Lines: split where files split them, and nowhere else."""

from hypothesis import given
from hypothesis import strategies as st

from adapter.core.text.lines import split_line_texts, split_lines, strip_line_end, to_lf

TEXT = st.text(st.sampled_from("ab\n\r\x0b\x0c\x85\u2028"))


@given(TEXT)
def test_lines_joined_give_the_text_back(text):
    """Nothing is lost, and every line except the last has an end."""
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line[-1] in "\r\n" for line in lines[:-1])


@given(TEXT)
def test_line_texts_are_the_lines_without_their_ends(text):
    """The fast implementation gives the same result as the simple one."""
    assert split_line_texts(text) == [strip_line_end(line) for line in split_lines(text)]


@given(TEXT)
def test_line_feeds_replace_every_line_end(text):
    """The number of lines stays the same, and no carriage return remains."""
    assert to_lf(text) == "".join(
        strip_line_end(line) + "\n" * (strip_line_end(line) != line) for line in split_lines(text)
    )
