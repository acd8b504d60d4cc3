"""Further calls of one answer: which values of the request they take, and when there are none left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.grammars.gbnf import MAX_CALLS
from adapter.prompting.intent.further_calls import find_further_arguments
from adapter.prompting.intent.guided_choice import plan_next_call
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.prompting.intent.test_guided_choice import MAIL, OPEN, PUT, ROUTE, TEXT, TRAINS, WHOLE, tool

NUMBER: Any = {"type": "number"}
BOX = tool("box_area", "Area of a box.", "width", "depth", width=NUMBER, depth=NUMBER)
ROOT = tool("take_root", "Root of a number.", "number", number=WHOLE)
SONG = tool("play_song", "Play a song.", "artist", "minutes", artist=TEXT, minutes=WHOLE, loud={"type": "boolean"})
MEAN = tool("find_mean", "Mean of numbers.", "numbers", numbers={"type": "array", "items": WHOLE})
LAMP = tool("set_lamp", "Switch a lamp.", "room", room={"enum": ["hall", "attic", "cellar"]})
GROWTH = tool("growth", "Growth of a herd.", "animals", "rate", animals=WHOLE, rate=NUMBER)


@pytest.mark.parametrize(
    ("request_", "called", "first", "further"),
    [
        ("Show a.py and lib/b.py", OPEN, ["a.py"], [["lib/b.py"]]),
        ("When do trains leave at Olten, Bern and Basel?", TRAINS, ["Olten"], [["Bern"], ["Basel"]]),
        ("When do trains leave at Olten, Bern and Basel?", TRAINS, ["Bern"], [["Olten"], ["Basel"]]),
        ("Switch the lamps in the hall and the attic on", LAMP, ["hall"], [["attic"]]),
        ("Widths of 3, 5 and 7 m with depths of 4, 6 and 8 m, respectively", BOX, [3, 4], [[5, 6], [7, 8]]),
        ("Roots of 16 and of 25", ROOT, [16], [[25]]),
        ("A herd of 50 animals at rates of 2 % and 3 %", GROWTH, [50, 0.02], [[50, 0.03]]),
        ("The mean of [1, 2], and of [3, 4]", MEAN, [[1, 2]], [[[3, 4]]]),
        ("Show 'a.py', 'b.py' and 'c.py', but not 'd.py'", OPEN, ["b.py"], [["a.py"], ["c.py"]]),
        ("Play Abba and Toto for 5 and 10 minutes respectively", SONG, ["Abba", 5], [["Toto", 10]]),
    ],
)
def test_further_calls_take_the_values_that_no_call_has(request_, called, first, further):
    arguments = dict(zip(called.required, first, strict=True))
    expected = [dict(zip(called.required, row, strict=True)) for row in further]
    assert find_further_arguments(request_, called, arguments) == expected


@pytest.mark.parametrize(
    ("request_", "called", "first"),
    [
        ("Show a.py", OPEN, ["a.py"]),
        ("Show a.py but not b.py", OPEN, ["a.py"]),
        ("Plan a route from Bern to Basel", ROUTE, ["Bern", "Basel"]),
        ("Plan a route from Bern to Basel at 6", ROUTE, ["Bern", "Basel"]),
        ("When do trains leave at Olten, Solothurn?", TRAINS, ["Olten"]),
        ("When do trains leave at Olten on Monday?", TRAINS, ["Olten"]),
        ("A box 3 by 4, number 7", BOX, [3, 4]),
        ("The mean of [1, 2]", MEAN, [[1, 2]]),
        ("Play Abba for 5 minutes at 80 percent", SONG, ["Abba", 5]),
        ("Play Abba or Toto for 4 or 5 minutes", SONG, ["Abba", 5]),
        ("Save 'hello and bye' as b.txt", PUT, ["b.txt", "hello and bye"]),
        ("Send a mail to a@b.org saying 'see you' and 'bye'", MAIL, ["c@d.org", "other"]),
        ("Send a mail", MAIL, ["a@b.org", "x"]),
    ],
)
def test_no_call_follows_if_no_value_is_left(request_, called, first):
    assert find_further_arguments(request_, called, dict(zip(called.required, first, strict=True))) == []


def test_other_arguments_are_kept():
    arguments = {"artist": "Abba", "minutes": 5, "loud": True}
    assert find_further_arguments("Play Abba and Toto for 5 minutes", SONG, arguments) == [
        {"artist": "Toto", "minutes": 5, "loud": True}
    ]


def test_plan_ends_after_the_last_call():
    """Each call has the next values only. There are at most `MAX_CALLS`, however many the request asks for."""
    request = '"The roots of 16, 25 and 36"'
    calls: list[Any] = [("take_root", {"number": 16})]
    for number in (25, 36):
        (planned,) = plan_next_call(request, ToolSet([ROOT]), calls).tools.values()
        assert planned.properties["number"]["enum"] == [number]
        calls.append(("take_root", {"number": number}))
    assert not plan_next_call(request, ToolSet([ROOT]), calls).tools
    many = f"The roots of {', '.join(map(str, range(10, 40)))} and 40"
    made: list[Any] = [("take_root", {"number": number}) for number in range(10, 10 + MAX_CALLS)]
    assert plan_next_call(many, ToolSet([ROOT]), made[:-1]).tools
    assert not plan_next_call(many, ToolSet([ROOT]), made).tools
    assert not plan_next_call(request, ToolSet([BOX]), calls).tools


@given(
    st.text(max_size=60),
    st.dictionaries(st.sampled_from(["width", "depth"]), st.none() | st.integers() | st.text() | st.lists(st.text())),
)
def test_any_text_can_be_searched(request_, arguments):
    """The result never contains the first call, and no call twice."""
    further = find_further_arguments(request_, BOX, arguments)
    assert arguments not in further
    assert all(row not in further[:index] for index, row in enumerate(further))


def test_long_documents_are_not_searched():
    assert find_further_arguments("the root of 16 and 25 " * 500, ROOT, {"number": 16}) == []


def test_equal_values_of_different_types_are_distinguished():
    assert find_further_arguments("5 and 6", SONG, {"artist": "5", "minutes": 5}) == [{"artist": "5", "minutes": 6}]


def test_tool_type_is_kept():
    (planned,) = plan_next_call("Roots of 4 and 9", ToolSet([ROOT]), [("take_root", {"number": 4})]).tools.values()
    assert isinstance(planned, Tool)
    assert planned.properties["number"]["type"] == "integer"


def test_candidates_may_be_lists():
    """A parameter that is a string or a list also has the request's lists as candidates."""
    paths = {"type": ["string", "array"], "items": {"type": "string"}}
    read = Tool("read", parameters={"type": "object", "properties": {"path": paths}})
    assert find_further_arguments("Search for [1, 2], a.txt and b.txt", read, {"path": "a.txt"}) is not None
