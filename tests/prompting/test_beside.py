"""A value is meant for the parameter whose name stands beside it; what stands beside none is anybody's."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.prompting.beside import beside
from adapter.prompting.choosing import choose
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError

TEXT: Any = {"type": "string"}
NUMBER: Any = {"type": "number"}


def tool(name: str, description: str, **properties: Any) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(properties)})


def offered(request: str, one: Tool) -> dict[str, Any]:
    """What each parameter may take: None for anything."""
    chosen = choose(request, ToolSet([one]), must_call=True)
    shown = chosen.tools[one.name].properties
    return {name: chosen.choices.get((one.name, name)) or shown[name].get("enum") for name in one.properties}


def each(request: str, one: Tool) -> list[dict[str, Any]]:
    """The values of each call that is to be made."""
    chosen = choose(request, ToolSet([one]), must_call=True)
    return [{name: held[one.name].properties[name].get("enum") for name in one.properties} for held in chosen.each]


AREA = tool("triangle_area", "The area of a triangle.", base=NUMBER, height=NUMBER)
FLAT = tool("rent_flat", "Rent a flat.", street=TEXT, parcel_number=TEXT, county=TEXT)
RATE = tool("exchange_rate", "What money is worth.", source_currency=TEXT, target_currency=TEXT)
TIGER = tool("count_animals", "How many there are.", species=TEXT, country={**TEXT, "description": "Where they live."})
MUTATION = tool("find_mutation", "Look a mutation up.", snp_id=TEXT)
HOTEL = tool("book_hotel", "Book a room.", hotel_name=TEXT, nights=NUMBER)
STAY = tool(
    "book_stay", "Book a stay.", arrival={**TEXT, "description": "A date."}, leaving={**TEXT, "description": "Date"}
)
SIDES = tool("triangle", "Of three sides.", side1=NUMBER, side2=NUMBER, side3=NUMBER)
LOAN = tool("interest", "Of a loan.", principal=NUMBER, rate=NUMBER)
LIFE = tool(
    "life_of", "A life.", person_name=TEXT, detail={**TEXT, "description": "How much: 'short', 'full' or 'all of it'."}
)
CITY = tool("find_hotel", "Find a hotel.", city=TEXT)
LIST: Any = {"type": "array", "items": NUMBER}
ROUTE = tool("find_route", "Plan a route.", start=TEXT, end=TEXT)
AVERAGE = tool("average", "Of numbers.", numbers=LIST)
PLAY = tool("play", "Play music.", artist=TEXT, minutes={"type": "integer"})
GROUPS = tool("compare", "Compare two groups.", first=LIST, second=LIST)
DAY: Any = {**TEXT, "description": "A date as YYYY-MM-DD."}
TRIP = tool("book_trip", "Book a trip.", first_day=DAY, last_day=DAY)
REPORT = tool("find_report", "A report.", patient_id=TEXT)
MAIL = tool(
    "send_mail",
    "Send a mail.",
    to={**TEXT, "description": "The mail address."},
    subject={**TEXT, "description": "The subject of the email."},
    body={**TEXT, "description": "The text of the email."},
)
SHOP = tool("prices", "Of things.", items={"type": "array", "items": TEXT})


@pytest.mark.parametrize(
    ("request_", "one", "values"),
    [
        ("A triangle with a height of 5 and a base of 10", AREA, {"base": [10], "height": [5]}),
        ("Base: 10, height: 5", AREA, {"base": [10], "height": [5]}),
        ("base=2.5 and height = four", AREA, {"base": [2.5], "height": [4]}),
        ("a height of 298K, base is 3m", AREA, {"base": [3], "height": [298]}),
        (
            "The flat with parcel number 1234567 in Santa Clara county",
            FLAT,
            {"parcel_number": ["1234567"], "county": ["Santa Clara"]},
        ),
        ("From British Pounds to Japanese Yen?", RATE, {"source_currency": ["GBP"], "target_currency": ["JPY"]}),
        ("How many Bengal Tigers live in the country India?", TIGER, {"country": ["India"]}),
        ("Which is SNP (a kind of variation) ID rs6034464?", MUTATION, {"snp_id": ["rs6034464"]}),
        ('"A height of 0.0000001 and a base of 2"', AREA, {"base": [2], "height": [1e-07]}),
        ("Two nights at the Grand Hotel", HOTEL, {"nights": [2]}),
        ("From May 3, 2022 to May 9, 2022", STAY, {"arrival": ["May 3, 2022"], "leaving": ["May 9, 2022"]}),
        ("Sides of 5, 4 and 3", SIDES, {"side1": [5], "side2": [4], "side3": [3]}),
        ("Three sides of 5, 4 and 3", SIDES, {"side1": [5], "side2": [4], "side3": [3]}),
        ("Three sides of -5, 4 and 3", SIDES, {"side1": [-5], "side2": [4], "side3": [3]}),
        ("Interest of 7 % on $2,000,000", LOAN, {"rate": [0.07], "principal": [2000000]}),
        ("Tell me in full about Ada Lovelace", LIFE, {"person_name": ["Ada Lovelace"], "detail": ["full"]}),
        ("A hotel near the lake in Olten, Switzerland", CITY, {"city": ["Olten, Switzerland", "Olten"]}),
        ("How far is it between Olten and Bern?", ROUTE, {"start": ["Olten"], "end": ["Bern"]}),
        ("Book from July 10, 2022 to July 20, 2022", TRIP, {"first_day": ["2022-07-10"], "last_day": ["2022-07-20"]}),
        ("The MRI report of patient 546382", REPORT, {"patient_id": ["546382"]}),
        (
            "Mail ann@b.org with the subject 'Meeting' and the body 'Let us meet'",
            MAIL,
            {"to": ["ann@b.org"], "subject": ["Meeting"], "body": ["Let us meet"]},
        ),
        ("Compare groups [1, 2] and [3, 4]", GROUPS, {"first": [[1, 2]], "second": [[3, 4]]}),
        ("Prices of tomatoes and lettuce", SHOP, {"items": [["tomatoes", "lettuce"]]}),
    ],
)
def test_a_parameter_takes_what_stands_beside_its_name(request_, one, values):
    found = offered(request_, one)
    assert {name: found[name] for name in values} == values


def test_what_is_far_from_every_name_is_left_to_the_model():
    """In another clause, and more of them than parameters."""
    found = offered("Is the base larger? I have 10, 20 or 30 for the height", AREA)
    assert found == {"base": [10, 20, 30], "height": [10, 20, 30]}


def test_what_is_said_several_times_is_several_calls():
    said = "The first has a base of 12 and a height of 15, the second has a base of 18 and a height of 24"
    assert each(said, AREA) == [{"base": [12], "height": [15]}, {"base": [18], "height": [24]}]
    assert each("The SNP ID 'rs12' and the SNP ID 'rs78'", MUTATION) == [{"snp_id": ["rs12"]}, {"snp_id": ["rs78"]}]
    once = "With a height of 7: a base of 1 and then a base of 2"
    assert each(once, AREA) == [{"base": [1], "height": [7]}, {"base": [2], "height": [7]}]
    assert each("A base of 12 and a height of 15", AREA) == []


def test_each_item_of_a_list_is_a_call():
    """Of numbers, pairs of names, lists as JSON, and of two lists that are as long."""
    assert each("A base of 4 for a height of 10, 20 and 30", AREA)[1:] == [
        {"base": [4], "height": [20]},
        {"base": [4], "height": [30]},
    ]
    assert each("Routes from Bern to Olten and Olten to Basel", ROUTE) == [
        {"start": ["Bern"], "end": ["Olten"]},
        {"start": ["Olten"], "end": ["Basel"]},
    ]
    assert each("Average [1, 2] and [3, 4]", AVERAGE) == [{"numbers": [[1, 2]]}, {"numbers": [[3, 4]]}]
    assert each("Play Anna Burr and Maroon 5 for 20 minutes and 15 minutes", PLAY) == [
        {"artist": ["Anna Burr"], "minutes": [20]},
        {"artist": ["Maroon 5"], "minutes": [15]},
    ]
    assert each("Switch it on and tell me", tool("switch", "It.", state={"enum": ["on", "off", "dim"]})) == []


def test_an_argument_that_may_be_left_out_is_written_where_the_request_has_it():
    lamp = Tool("set_lamp", "Switch a lamp.", {"type": "object", "properties": {"percent": NUMBER}, "required": []})
    (shown,) = choose("Switch the lamp on at 40 percent", ToolSet([lamp]), must_call=True).tools.values()
    assert list(shown.required) == ["percent"]


def test_common_words_are_enough_where_the_request_has_all_that_a_call_needs():
    """Of one tool no word is rare; what may be anything is there."""
    said = "What is the area of a triangle with a height of 5 and a base of 10?"
    assert choose(said, ToolSet([AREA])).tools
    assert not choose("What is the area of a triangle in general?", ToolSet([AREA])).tools
    any_ = tool("triangle_area", "The area of a triangle.", base=NUMBER, height=NUMBER, unit={})
    assert choose(said, ToolSet([any_])).tools


@given(st.text(max_size=60), st.lists(st.text(max_size=12), max_size=4), st.text(max_size=30))
def test_nothing_is_offered_that_was_not(request_, values, about):
    properties = {"one": {"type": "string", "description": about}, "two": TEXT}
    with suppress(UsageError):
        found = beside(f"{request_} one two {about}", properties, {"one": values, "two": values})
        assert all(value in values for places in found.values() for place in places for value in place.values)
