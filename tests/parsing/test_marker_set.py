"""Marker search finds the first marker in the text, and the longest one there."""

from __future__ import annotations

import re
from copy import copy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.parsing.bodies.worded_call_start import WordedCallStart
from adapter.parsing.formats import FORMATS
from adapter.parsing.marker_set import ROUGH_SEARCH_LIMIT, MarkerSet, WeakMarker, WeakMarkerSet
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
    """Return the markers as a set of their own, and as a part of a larger one."""
    return MarkerSet(*literals), MarkerSet(*literals, *ODD, *ALL).select_subset(
        [literal.lower() for literal in literals]
    )


@given(searches())
def test_search_finds_first_marker(search):
    """For any length of text, start and end."""
    literals, text, start, end = search
    whole, parts = both(literals)
    plain = re.compile("|".join(f"(?i:{re.escape(literal)})" for literal in whole.literals), re.ASCII)
    for limits in ((start,), (start, end)):
        expected = plain.search(text, *limits)
        for markers in (whole, parts):
            found = markers.search(text, *limits)
            assert found == (expected and expected.span())


@given(searches())
def test_partial_start_finds_longest_marker_prefix_at_end(search):
    """It never includes a complete marker."""
    literals, text, start, _ = search
    whole, parts = both(literals)
    begun = (at for at in range(start, len(text)) if any(_begins(one, text[at:].lower()) for one in whole.literals))
    assert whole.find_partial_start(text, start) == parts.find_partial_start(text, start) == next(begun, len(text))


@given(searches())
def test_find_plain_end_equals_search_and_partial_start(search):
    literals, text, _, _ = search
    for markers in both(literals):
        expected = markers.find_partial_start(text, 0) if markers.search(text, 0) is None else -1
        assert markers.find_plain_end(text) == expected


@given(searches(), st.lists(st.sampled_from((*ALL, *ODD, "xyz"))))
def test_added_markers_are_found_as_in_a_set_made_anew(search, added):
    """With and without an anchor in common."""
    literals, text, start, end = search
    weak = {"\n[": WeakMarker(r"\W"), "\n": WordedCallStart(())}
    changed = {"\n[": WeakMarker("[^x]"), "\n": WordedCallStart(("xyz", "ab"))}
    markers = WeakMarkerSet(weak, *literals).with_literals(changed, *added)
    anew = WeakMarkerSet(changed, *literals, *added)
    assert markers.search(text + "\n[x]", start, end + 4) == anew.search(text + "\n[x]", start, end + 4)
    assert markers.find_plain_end(text) == anew.find_plain_end(text)


TABLES = {
    "expected": build_marker_tables((FORMATS["hermes"],), ("read_file",), FORMATS.all).text_markers,
    "any": build_marker_tables(FORMATS.all, ()).text_markers,
    "in reasoning": build_marker_tables((FORMATS["mistral"],), (), FORMATS.all).reasoning_markers,
}
for each in TABLES.values():
    assert (each._parent or each)._exact_pattern  # compiled once
PIECES = st.one_of(
    st.sampled_from(TABLES["any"].literals).flatmap(lambda one: st.sampled_from([one, one.upper(), one[:-1], one[:4]])),
    st.sampled_from(
        ["\n[", "\n{", "[x", '{"a": 1}', '{"name"', "```json\n{", "```py\n", "```", "word ", "<b>", "\n[TOO", "<|"]
    ),
)


@given(st.sampled_from(sorted(TABLES)), st.lists(PIECES, max_size=9).map("".join))
@example("any", "\n<｜｜dsml｜｜ function_calls\n")
def test_rough_search_equals_compiled_search(which, text):
    """By anchors only, as by the pattern that is compiled once enough text was searched."""
    found = []
    for searched in (0, ROUGH_SEARCH_LIMIT + 1):
        markers = copy(TABLES[which])
        markers._parent, markers._searched = copy(markers._parent), searched
        if markers._parent is not None:
            markers._parent._searched = searched
        found.append([markers.search(text, start) for start in range(len(text))])
    assert found[0] == found[1]


@pytest.mark.parametrize("format", ["pythonic", "hermes", None])
def test_bare_list_that_begins_like_a_marker_is_parsed(format):
    """``[TOO`` of ``[TOOL_CALLS]``, in any letter case, hides no call of a tool of such a name."""
    tools = [{"name": "toolbox", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
    turn = parse("I call it.\n[toolbox(a=1)]", tools, format)
    assert [(call.name, call.arguments) for call in turn.calls] == [("toolbox", {"a": 1})]


def _begins(literal: str, text: str) -> bool:
    return literal.startswith(text) and literal != text


def test_marker_is_found_if_a_shorter_one_precedes_it_at_the_distance_of_a_longer_one():
    """The weak marker begins where a longer marker with the same anchor would begin."""
    markers = WeakMarkerSet({"\n": WeakMarker("[^a-z]")}, "action:", "\n", "\ntool result:")
    assert markers.search("one\nthe next action: read", 0) == (13, 20)
    assert markers.search("one\nnext action: read", 0) == (9, 16)
    assert markers.search("one\nThis action: read", 0) == (3, 4)
