"""Lines: split where files split them, and nowhere else."""

from hypothesis import given
from hypothesis import strategies as st

from adapter.core.text.lines import line_texts, split_lines, to_lf, without_end

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
    assert line_texts(text) == [without_end(line) for line in split_lines(text)]


@given(TEXT)
def test_line_feeds_replace_every_line_end(text):
    """The number of lines stays the same, and no carriage return remains."""
    assert to_lf(text) == "".join(without_end(line) + "\n" * (without_end(line) != line) for line in split_lines(text))
