"""Lists of things, currencies and places are found in a request, and little words in four languages."""

from __future__ import annotations

import pytest

from adapter.prompting import currencies, dates, places, series
from adapter.prompting.languages import DEMANDED, REFUSED


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ("The price of tomatoes and lettuce at the market", ["tomatoes", "lettuce"]),
        ("Buy milk, eggs and two loaves", ["milk", "eggs", "two loaves"]),
        ("Use 'Age', 'Income', and 'Education'", ["Age", "Income", "Education"]),
        ("Of the S&P 500 and the Dow Jones over a week", ["S&P 500", "Dow Jones"]),
        ("Wie ist es in Bern, Basel und Olten?", ["Bern", "Basel", "Olten"]),
        ("In Los Angeles, CA and Seattle, WA", ["Los Angeles, CA", "Seattle, WA"]),
        ("Only tomatoes", []),
        ("Salt and pepper for tea and coffee", []),
    ],
)
def test_the_only_list_of_a_request_is_found(request_, found):
    assert series.things(request_) == found


@pytest.mark.parametrize(
    "text", ["Rome" + ", CA" * 900, "Ab " * 1300, "Ab, " * 30_000, "a, " * 30_000, "In A" * 20_000]
)
def test_a_text_that_could_be_read_in_many_ways_is_read_in_one(text):
    """It would not come to an end."""
    assert isinstance([series.names(text), series.things(text), series.pairs(text), places.named(text)], list)


def test_pairs_have_to_between_them():
    assert series.pairs("From Olten to Bern and Bern to Basel") == [("Olten", "Bern"), ("Bern", "Basel")]


@pytest.mark.parametrize(
    ("request_", "codes"),
    [
        ("Convert 150 Euros to Canadian dollars", ["EUR", "CAD"]),
        ("In British Pounds, if I have 200 US dollars", ["USD", "GBP"]),
        ("5 New Zealand Dollars", ["NZD"]),
        ("USD to JPY", ["USD", "JPY"]),
        ("Try it, we won a rand", []),
    ],
)
def test_currencies_are_codes_that_of_an_amount_first(request_, codes):
    assert currencies.said(request_) == codes


@pytest.mark.parametrize(
    ("text", "description", "written"),
    [
        ("July 10, 2022", "As YYYY-MM-DD.", "2022-07-10"),
        ("10 July 2022", "Like '2020-01-31'", "2022-07-10"),
        ("March 3rd, 2023", "MM/DD/YYYY", "03/03/2023"),
        ("2022/08/16", "(mm-dd-yyyy)", "08-16-2022"),
        ("31/12/2022", "yyyy-mm-dd", "2022-12-31"),
        ("February 31, 2022", "YYYY-MM-DD", "February 31, 2022"),
        ("July 10, 2022", "A day.", "July 10, 2022"),
        ("2022-07", "YYYY-MM-DD", "2022-07"),
        ("no day", "YYYY-MM-DD", "no day"),
    ],
)
def test_a_date_is_written_as_the_definition_says(text, description, written):
    assert dates.written([text], {"type": "string", "description": description}) == [written]
    assert dates.written(["May 1, 2020"], {"type": "string", "format": "date"}) == ["2020-05-01"]


def test_places_stand_behind_little_words():
    assert places.named("At the Grand Hotel in Olten, Switzerland") == ["Olten, Switzerland", "Olten"]
    assert places.named("Ein Hotel bei Bern") == ["Bern"]
    assert places.named("Who wrote Faust?") == []
    assert places.folders("Put it in the folder src/app, in my project") == ["src/app"]


@pytest.mark.parametrize(
    "request_",
    ["Do not use any tool", "Without tools", "Ohne Werkzeug", "Benutze kein Tool", "sans outil",
     "N'utilise pas d'outil", "sin herramientas", "no uses ninguna herramienta"],
)  # fmt: skip
def test_no_tool_is_said_in_four_languages(request_):
    assert REFUSED.search(request_)


@pytest.mark.parametrize("request_", ["Use the tool", "mit dem Werkzeug", "avec l'outil", "usa la herramienta"])
def test_a_tool_is_demanded_in_four_languages(request_):
    assert DEMANDED.search(request_)
    assert not REFUSED.search(request_)
