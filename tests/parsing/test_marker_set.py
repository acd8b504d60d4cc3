"""Markers are found where a plain search for every one of them finds the first, the longest first."""

from __future__ import annotations

import re
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.parsing.formats import FORMATS
from adapter.parsing.formats.cross_format import OTHERS
from adapter.parsing.marker_set import ROUGH, MarkerSet
from adapter.parsing.marker_tables import build_marker_tables
from adapter.parsing.parser import parse

ALL = build_marker_tables(tuple(FORMATS.values()), ()).text_markers.literals
ODD = ("abc", "on:", "Action:", "to=", "\n{", "a", "[[", "ab<", "<ab<", "é!", "\u017f")


@st.composite
def searches(draw):
    literals = draw(st.lists(st.sampled_from((*ALL, *ODD)), min_size=1, max_size=12))
    literal = st.sampled_from(literals)
    piece = st.one_of(
        literal,
        literal.map(str.upper),
        literal.map(lambda text: text[:-1]),
        st.sampled_from(["x", ": ", "[", "<", "{", "\n", "~`", "K\u212a"]).flatmap(
            lambda text: st.sampled_from([1, 40, 700]).map(lambda times: text * times)
        ),
    )
    text = "".join(draw(st.lists(piece, max_size=8)))
    return literals, text, draw(st.integers(0, 6)), draw(st.integers(0, len(text) + 1))


def both(literals):
    """The markers as a set of their own, and as a part of a larger one."""
    return MarkerSet(*literals), MarkerSet(*literals, *ODD, *ALL).part(*literals)


@given(searches())
def test_the_first_marker_is_found(search):
    """However long the text and wherever the search starts and ends."""
    literals, text, start, end = search
    whole, parts = both(literals)
    plain = re.compile("|".join(f"(?i:{re.escape(literal)})" for literal in whole.literals), re.ASCII)
    for limits in ((start,), (start, end)):
        expected = plain.search(text, *limits)
        for markers in (whole, parts):
            found = markers.search(text, *limits)
            assert found == (expected and expected.span())


@given(searches())
def test_what_may_become_a_marker_is_held(search):
    """The longest end of the text that some marker begins with, and never a whole one."""
    literals, text, start, _ = search
    whole, parts = both(literals)
    begun = (at for at in range(start, len(text)) if any(_begins(one, text[at:].lower()) for one in whole.literals))
    assert whole.held(text, start) == parts.held(text, start) == next(begun, len(text))


@given(searches())
def test_plain_text_ends_where_a_marker_may_have_begun(search):
    """As searching and holding back say it one after the other."""
    literals, text, _, _ = search
    for markers in both(literals):
        expected = markers.held(text, 0) if markers.search(text, 0) is None else -1
        assert markers.plain_end(text) == expected


TABLES = {
    "told": build_marker_tables((FORMATS["hermes"],), ("read_file",), OTHERS).text_markers,
    "any": build_marker_tables(FORMATS.all, ()).text_markers,
    "in reasoning": build_marker_tables((FORMATS["mistral"],), (), OTHERS).reasoning_markers,
}
for each in TABLES.values():
    assert (each._whole or each)._at_anchor  # compiled once
PIECES = st.one_of(
    st.sampled_from(TABLES["any"].literals).flatmap(lambda one: st.sampled_from([one, one.upper(), one[:-1], one[:4]])),
    st.sampled_from(
        ["\n[", "\n{", "[x", '{"a": 1}', '{"name"', "```json\n{", "```py\n", "```", "word ", "<b>", "\n[TOO", "<|"]
    ),
)


@given(st.sampled_from(sorted(TABLES)), st.lists(PIECES, max_size=9).map("".join))
def test_the_first_texts_are_searched_as_all_others_are(which, text):
    """By the anchors alone, as by the pattern that is compiled once enough text has come."""
    found = []
    for searched in (0, ROUGH + 1):
        markers = copy(TABLES[which])
        markers._whole, markers._searched = copy(markers._whole), searched
        if markers._whole is not None:
            markers._whole._searched = searched
        found.append([markers.search(text, start) for start in range(len(text))])
    assert found[0] == found[1]


@pytest.mark.parametrize("format", ["pythonic", "hermes", None])
def test_a_list_whose_first_letters_are_a_markers_begins_a_line(format):
    """``[TOO`` of ``[TOOL_CALLS]``, in any letter case, hides no call of a tool of such a name."""
    tools = [{"name": "toolbox", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
    turn = parse("I call it.\n[toolbox(a=1)]", tools, format)
    assert [(call.name, call.arguments) for call in turn.calls] == [("toolbox", {"a": 1})]


def _begins(literal: str, text: str) -> bool:
    return literal.startswith(text) and literal != text
