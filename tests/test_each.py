"""A test of many cases names each failing case."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.command_line import PRELOADED
from tests.each import each


def test_all_are_tried_and_each_failure_is_named():
    tried = []

    def check(number):
        tried.append(number)
        if number == 2:
            pytest.fail("two")
        assert number != 3

    with pytest.raises(BaseExceptionGroup, match="2 of 4: the second, the third") as caught:
        each({"the first": 1, "the second": 2, "the third": 3, "the fourth": 4}, check)
    assert tried == [1, 2, 3, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the second"], ["in the third"]]


def test_where_none_fails_nothing_is_raised():
    """But an interrupt is raised."""
    each({"a": 1}, lambda number: number)
    with pytest.raises(KeyboardInterrupt):
        each({"a": 1}, lambda _: (_ for _ in ()).throw(KeyboardInterrupt))


def test_preloaded_modules_exist():
    """A misspelled one would make each forked command import everything again."""
    assert [name for name in PRELOADED if name != "__main__" and find_spec(name) is None] == []
