"""A request that has a tool's values several times is one of several calls, each with what its part says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.prompting.choosing import choose
from adapter.prompting.repeating import parts
from adapter.tools.definition import Tool, ToolSet

TEXT: Any = {"type": "string"}
NUMBER: Any = {"type": "number"}
NUMBERS: Any = {"type": "array", "items": NUMBER}


def tool(name: str, about: str, *optional: str, **properties: Any) -> Tool:
    required = [each for each in properties if each not in optional]
    return Tool(name, about, {"type": "object", "properties": properties, "required": required})


HYPOTENUSE = tool("hypotenuse", "The longest side.", a=NUMBER, b=NUMBER)
HOUSE = tool("house_price", "What a house is worth.", location=TEXT, size=NUMBER)
CASES = tool("find_lawsuits", "Look lawsuits up.", company_name=TEXT, year=NUMBER)
CIRCLE = tool("circle_area", "Of a circle.", radius=NUMBER)
FLIGHT = tool("book_flight", "Book a seat.", start=TEXT, end=TEXT, date=TEXT)
SONG = tool("top_song", "What is played most.", genre=TEXT, region=TEXT)
PRESSURE = tool("absolute_pressure", "Of a gauge.", "atm_pressure", gauge_pressure=NUMBER, atm_pressure=NUMBER)
LOAN = tool("monthly_payment", "Of a loan.", loan_amount=NUMBER, loan_term={**NUMBER, "description": "In years."})
SUM = tool("add_up", "Add numbers.", numbers=NUMBERS)
SORT = tool("sort", "A list.", list=NUMBERS, order={"enum": ["ascending", "descending"]})
TEST = tool("chi_squared", "Test a table.", table={"type": "array", "items": NUMBERS})
NEWS = tool("news", "What is new.", topic=TEXT, count=NUMBER)
MODEL = tool("regression", "A model.", predictors={"type": "array", "items": TEXT}, target=TEXT)
MOVE = tool("move_file", "Move a file.", source={**TEXT, "description": "A path."}, target_path=TEXT)
TWO = [{"a": [3], "b": [4]}, {"a": [5], "b": [12]}]


def each(request: str, one: Tool) -> list[dict[str, Any]]:
    """The values that each call may take, of those that are narrowed."""
    chosen = choose(request, ToolSet([one]), must_call=True)
    shown = [held[one.name].properties for held in chosen.each]
    return [{name: schema["enum"] for name, schema in of.items() if "enum" in schema} for of in shown]


@pytest.mark.parametrize(
    ("request_", "one", "calls"),
    [
        ("Of two sides, 3 and 4, 5 and 12", HYPOTENUSE, TWO),
        ("For sides of 3 and 4. Do the same for 5 and 12.", HYPOTENUSE, TWO),
        ("Sin límite: 3 y 4, luego 5 y 12", HYPOTENUSE, TWO),
        (
            "A house of 3000 sq ft in New York and 4000 sq ft in Los Angeles",
            HOUSE,
            [{"location": ["New York"], "size": [3000]}, {"location": ["Los Angeles"], "size": [4000]}],
        ),
        (
            "Cases against 'Dara Inc' filed in 2019, then those of 2018 against the same",
            CASES,
            [{"company_name": ["Dara Inc"], "year": [2019]}, {"company_name": ["Dara Inc"], "year": [2018]}],
        ),
        (
            "Four circles: the first has a radius of 5cm, the second a radius of 10cm, and the third a radius of 15cm",
            CIRCLE,
            [{"radius": [5]}, {"radius": [10]}, {"radius": [15]}],
        ),
        (
            "Book from San Remo to Tokyo on May 3rd 2022 and from Tokyo to Sydney on May 18th 2022",
            FLIGHT,
            [
                {"start": ["San Remo"], "end": ["Tokyo"], "date": ["May 3rd 2022"]},
                {"start": ["Tokyo"], "end": ["Sydney"], "date": ["May 18th 2022"]},
            ],
        ),
        (
            "Move a.txt to old/a.txt and b.txt to old/b.txt",
            MOVE,
            [
                {"source": ["a.txt"], "target_path": ["old/a.txt"]},
                {"source": ["b.txt"], "target_path": ["old/b.txt"]},
            ],
        ),
        ("A loan amount of $400,000 and a loan term of 15, 20 and 30 years", LOAN, [15, 20, 30]),
        (
            "The news on 'Climate' and 'Chess', each with 5 articles",
            NEWS,
            [{"topic": ["Climate"], "count": [5]}, {"topic": ["Chess"], "count": [5]}],
        ),
    ],
)
def test_each_part_is_a_call(request_, one, calls):
    if isinstance(calls[0], int):
        calls = [{"loan_amount": [400000], "loan_term": [years]} for years in calls]
    assert each(request_, one) == calls


def test_names_with_the_same_word_beside_them_are_said_apart():
    found = each("Which Pop song is played most, and which Rock song in Oslo?", SONG)
    assert [call["genre"][0] for call in found] == ["Pop", "Rock"]


def test_choices_that_are_said_for_all_multiply_the_calls():
    found = each("Sort [2, 1] and [4, 3] in both ascending and descending order", SORT)
    assert [(call["list"], call["order"]) for call in found] == [
        ([[2, 1]], ["ascending"]),
        ([[2, 1]], ["descending"]),
        ([[4, 3]], ["ascending"]),
        ([[4, 3]], ["descending"]),
    ]


@pytest.mark.parametrize(
    ("request_", "one"),
    [
        ("Sides of 3 and 4", HYPOTENUSE),
        ("An atmospheric pressure of 1 atm and a gauge pressure of 2 atm", PRESSURE),
        ("The sum of 1, 2 and 3", SUM),
        ("A table of [[10, 20], [30, 40]]", TEST),
        ("A house of 50 square metres in Miami, Florida", HOUSE),
        ("A regression by 'Age', 'Income' and 'Rooms' with a target of 'Price'", MODEL),
        ("Move a.txt to b.txt and tell me when it is done", MOVE),
        ("", HYPOTENUSE),
    ],
)
def test_one_call_stays_one(request_, one):
    assert each(request_, one) == []


@given(st.text(max_size=120), st.sampled_from([HYPOTENUSE, HOUSE, FLIGHT, SONG]))
def test_parts_are_of_the_request(request_, one):
    said = f"{request_} 3 and 4, then {request_} 5 and 12"
    for text in (request_, said):
        assert all(part in text for part in parts(text, one, {}, ()))


@pytest.mark.parametrize("text", ["3 and 4, " * 900, "a" * 4_000, "Ab, " * 1_000, "'a' " * 1_000, "1. " * 1_300])
def test_long_requests_come_to_an_end(text):
    for one in (HYPOTENUSE, HOUSE, SONG):
        assert isinstance(parts(text, one, {}, ()), list)


def test_places_with_their_regions_are_listed():
    places = tool("find_food", "Where to eat.", city={**TEXT, "description": "A location."})
    found = each("Eat in Los Angeles, CA, then do the same for San Jose, CA and Seattle, WA", places)
    assert [call["city"] for call in found] == [["Los Angeles, CA"], ["San Jose, CA"], ["Seattle, WA"]]


def test_numbers_of_one_call_are_no_others():
    """Nor are those of a parameter that may be left out, where each part has one; a unit stands behind them."""
    loan = tool("future_value", "Of money.", present_value=NUMBER, years=NUMBER)
    assert [call["present_value"] for call in each("Of $1000 for 1, 5 and 10 years", loan)] == [[1000]] * 3
    turtles = tool("count_turtles", "How many.", "year", location=TEXT, year=NUMBER)
    found = each("Turtles of the Galapagos in 2015. And then the same for the year 2020", turtles)
    assert [call["year"] for call in found] == [[2015], [2020]]
    round_ = tool("circle_area", "Of a circle.", "unit", radius=NUMBER, unit=TEXT)
    chosen = choose("The area of a circle with a radius of 4 inches", ToolSet([round_]))
    assert chosen.choices["circle_area", "unit"] == ["inches"]


ODD: Any = st.sampled_from(
    [{}, True, TEXT, NUMBER, NUMBERS, {"enum": [[3], {"a": 4}, "x", "y", 5]}, {"enum": []}, {"type": "array"}]
)


@given(st.text(max_size=20), st.dictionaries(st.sampled_from(["a", "year", "city", "units"]), ODD), st.booleans())
def test_no_definition_is_too_odd_for_several_calls(text, properties, needs):
    one = tool("x", "y", *(() if needs else properties), **properties)
    found = choose(f"{text} 3 and 4, then {text} 5 and 12 of 'x' and 'y', each", ToolSet([one]), must_call=True)
    assert len(found.each) <= 8


def test_choices_of_many_parameters_are_no_flood():
    choices = {"enum": [f"c{letter}" for letter in "abcdefgh"]}
    many = tool("pick", "Pick.", **dict.fromkeys("pqrstuvwxyz", choices))
    said = "Pick ca, cb, cc, cd, ce, cf, cg and ch for 2015 and 2020"
    assert len(choose(said, ToolSet([many]), must_call=True).each) <= 8
