"""Numbers between two bounds as GBNF, read as the regular expressions that these grammars are."""

from __future__ import annotations

import re
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from adapter.grammars.number_ranges import (
    MAX_NUMBER,
    PLACES,
    build_decimal_range,
    build_integer_range,
    build_open_range,
)


def admits(grammar: str, text: str) -> bool:
    """GBNF without names differs from a regular expression in its quotes and blanks."""
    parts = re.split(r'"([^"]*)"', grammar)
    expression = "".join(re.escape(part) if index % 2 else part.replace(" ", "") for index, part in enumerate(parts))
    return re.fullmatch(expression, text) is not None


NUMBERS = st.integers(-MAX_NUMBER, MAX_NUMBER) | st.integers(-1100, 1100)


@given(bounds=st.tuples(NUMBERS, NUMBERS).map(sorted), others=st.lists(NUMBERS))
def test_the_integers_between_two_bounds_and_no_others(bounds, others):
    lowest, highest = bounds
    grammar = build_integer_range(lowest, highest)
    for number in {lowest, highest, lowest - 1, highest + 1, 0, -lowest, *others}:
        assert admits(grammar, str(number)) == (lowest <= number <= highest), number


DECIMALS = st.builds(lambda number, places: Decimal(number).scaleb(-places), NUMBERS, st.integers(0, PLACES))


@given(bounds=st.tuples(DECIMALS, DECIMALS).map(sorted), others=st.lists(DECIMALS))
def test_the_decimals_between_two_bounds_and_no_others(bounds, others):
    lowest, highest = bounds
    grammar, step = build_decimal_range(lowest, highest), Decimal(1).scaleb(-PLACES)
    for number in {lowest, highest, lowest - step, highest + step, *others}:
        text = f"{number:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        if text not in ("-0", ""):
            assert admits(grammar, text) == (lowest <= number <= highest), text


@given(bounds=st.tuples(DECIMALS, DECIMALS).map(sorted), digits=st.integers(10, 99), exponent=st.integers(1, 99))
def test_small_and_large_numbers_may_have_an_exponent_within_bounds(bounds, digits, exponent):
    """8.854e-12 between 0 and 1, 6.022e23 from 0 on; never a number outside."""
    lowest, highest = bounds
    mantissa = f"{digits // 10}.{digits % 10}"
    for text in (f"{mantissa}e-{exponent}", f"-{mantissa}e-{exponent}"):
        if admits(build_decimal_range(lowest, highest), text):
            assert lowest <= Decimal(text) <= highest
        assert admits(build_decimal_range(min(lowest, -highest, Decimal(-1)), max(-lowest, highest, Decimal(1))), text)
    for text in (f"{mantissa}e{exponent}", f"-{mantissa}e+{exponent}"):
        for low, high in ((lowest, None), (None, highest), (None, None)):
            if any(admits(way, text) for way in build_open_range(low, high)):
                assert low is None or low <= Decimal(text)
                assert high is None or Decimal(text) <= high
    assert any(admits(way, "6.022e23") for way in build_open_range(Decimal(0), None))
