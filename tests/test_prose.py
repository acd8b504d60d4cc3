"""The project's English stays within twice the rate of habits of well-written projects."""

from __future__ import annotations

import pytest

from tests.prose import HABITS, Kind, Passage, headless, hits, report, walls


@pytest.mark.parametrize("kind", ["code", "docs", "tests"])
def test_habits_are_within_their_limits(kind: Kind):
    _, above = report(kind)
    assert above == [], "python -m tests.prose --list names the lines"


def test_a_habit_is_found_outside_of_code():
    text = "What stands here is `what stands there`, and nobody said so."
    found = [Passage("a.py", 1, text)]
    assert [len(hits(habit, found)) for habit in HABITS[:3]] == [1, 1, 1]


def test_a_headless_docstring_is_found():
    found = [Passage("a.py", 1, "Whether it is so.", True), Passage("a.py", 9, "Return whether it is so.", True)]
    assert [passage.line for passage in headless(found)] == [1]


def test_a_wall_of_fields_is_found():
    wall = "A file. ``name``: its name; ``size``: its length; ``mode``: its rights."
    listed = "A file.\n\nArgs:\n    name: Its name.\n    size: Its length.\n    mode: Its rights."
    found = [Passage("a.py", 1, wall, True), Passage("a.py", 9, listed, True)]
    assert [passage.line for passage in walls(found)] == [1]
