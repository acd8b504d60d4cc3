"""Regular expressions written by a model: they match the same text, but cannot exhaust memory or time."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import ToolError
from adapter.core.text.safe_regex import MAX_CAPTURED, MAX_CAPTURING, clip_searched_part, compile_pattern

PIECES = [
    "a",
    "b",
    "(",
    ")",
    "(?:",
    "(?P<n>",
    "(?<m>",
    "(?=",
    "(?<!",
    "[(]",
    "[^)]",
    "\\(",
    "\\\\",
    "|",
    "*",
    "+?",
    "{2}",
    "$",
    "\\w",
]


@pytest.mark.parametrize(
    "pattern",
    ["(?R)", "a(?0)?b", "(a(?1)?b)", "(a(?-1)?b)", "(?+1)(a)", "(?P<n>a(?&n)?)", "(?P<n>a(?P>n)?)", r"\\(?R)"],
)
def test_recursion_is_refused(pattern):
    """In each spelling, with the alternative to use."""
    with pytest.raises(ToolError, match="contains recursion"):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"\(\?R\)", r"\(\?1\)", "(?P<R>a)", "(?i)a", "(?:R)", "(?=R)"])
def test_compile_pattern_accepts_escaped_recursion_syntax(pattern):
    assert compile_pattern(pattern)


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.text("ab()!", max_size=12))
def test_groups_that_keep_nothing_match_the_same(pattern, text):
    try:
        plain = regex.compile(pattern)
        ours = compile_pattern(pattern)
    except (regex.error, ToolError):
        return
    assert [match.span() for match in ours.finditer(text)] == [match.span() for match in plain.finditer(text)]
    assert ours.groups == 0


def test_groups_that_are_referred_to_are_few_and_see_little():
    """References work, but their number and length are limited because they use memory."""
    pattern = compile_pattern(r"(a)b\1")
    assert pattern.search(clip_searched_part(pattern, "aba"))
    assert len(clip_searched_part(pattern, "a" * 10 * MAX_CAPTURED)) == MAX_CAPTURED
    with pytest.raises(ToolError, match="the maximum is 20"):
        compile_pattern("(a)" * (MAX_CAPTURING + 1) + r"\1")
