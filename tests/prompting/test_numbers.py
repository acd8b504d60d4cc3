"""The numbers of a request are what it says, however it writes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.prompting.numbers import meant, said, series


@pytest.mark.parametrize(
    ("request_", "values"),
    [
        ("$2,000,000 of 1,234.5 and 5,10", [2000000, 1234.5, 5, 10]),
        ("[1,200,300]", [1, 200, 300]),
        ("1.3 billion people, 20 thousand, 2 Millionen, 3 millones", [1300000000, 20000, 2000000, 3000000]),
        ("three, zwei, cuatro, dix", [3, 2, 4, 10]),
        ("-3 at 298K, 10kg", [-3, 298, 10]),
        ("$1M, $1.2M and €30k, but 5M", [1000000, 1200000, 30000, 5]),
        ("x^2, 3.5 m/s^2, version 1.2.3a, Sept. 5", [3.5, 5]),
        ("1.000.000 Euro, 0.0000001", [1000000, 1e-07]),
        ("9" * 5_000 + " and 7", [7]),
        ("on base 8, height 5.", [8, 5]),
        ("8.854e-12, 2.5E3", [8.854e-12, 2500]),
        ("3万元, 1.5亿, 504", [30000, 150000000, 504]),
    ],
)
def test_numbers_are_read_as_they_are_written(request_, values):
    assert [each.value for each in said(request_)] == values


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"type": "number"}, [0.05]),
        ({"type": "integer"}, [5]),
        ({"type": "number", "description": "The rate in percent."}, [5]),
        ({"type": "number", "description": "As a percentage."}, [5]),
        ({"type": "number", "maximum": 1}, [0.05]),
        ({"type": "integer", "minimum": 10}, [20]),
    ],
)
def test_a_percentage_is_a_share_unless_percent_are_meant(schema, values):
    assert meant("5 % of 20", "rate", schema) == values
    assert meant("5 percent of 20", "rate", schema) == values


def test_what_is_no_rate_takes_the_other_numbers():
    assert meant("5 % of 20", "amount", {"type": "number"}) == [20]
    assert meant("5 % of it", "amount", {"type": "number"}) == [0.05]


def test_a_series_has_nothing_but_commas_and_an_and_between():
    def listed(request: str) -> list[list[Any]]:
        return [[each.value for each in run] for run in series(request)]

    assert listed("for 10, 20 and 30 years, or 7") == [[10, 20, 30]]
    assert listed("5,10 und 15") == [[5, 10, 15]]
    assert listed("20 minutes and 15 minutes") == [[20, 15]]
    assert listed("5 % and 7 %") == [[5, 7]]
    assert listed("20 minutes and 15 dollars") == []
    assert listed("from 10 to 20") == []


@given(st.text(max_size=40), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_has_its_numbers_where_it_says_them(text, number):
    request = f"{text} {number}"
    assert all(request[each.start : each.end].strip() for each in said(request))
    assert all(len(run) > 1 for run in series(request))
