"""Removals from a file: the lines that may go, and those that must stay."""

import pytest

from adapter.prompting.intent.removals import (
    find_named_words,
    find_removed_lines,
    find_unrelated_line,
    list_removals,
)

YAML = "services:\n  web:\n    ports:\n      - 8080\n      - 8081\n    image: web\n"
REQUEST = "Remove the port 8081 from the ports in compose.yaml."


@pytest.mark.parametrize(
    ("lost", "line"),
    [
        (["      - 8081"], ""),
        (["      - 8081", "    image: web"], "image: web"),
        (["    ports:", "      - 8080", "      - 8081"], ""),
        (["    image: web"], ""),
    ],
)
def test_line_outside_the_named_block_is_unrelated(lost, line):
    new = "\n".join(each for each in YAML.splitlines() if each not in lost)
    assert find_removed_lines(YAML, new) == lost
    assert find_unrelated_line(lost, find_named_words(REQUEST)) == line


def test_changed_lines_are_not_removed():
    assert find_removed_lines("a\nb\n", "a\nc\n") == []


@pytest.mark.parametrize(
    ("request_", "text", "texts"),
    [
        (REQUEST, "ports:\n  - 8080\n  - 8081\nimage: x\n", ["image: x\n", "ports:\n  - 8080\nimage: x\n"]),
        ("Remove b from a.json", '{\n  "a": 1,\n  "b": 2\n}\n', ['{\n  "a": 1\n}\n']),
        ("Remove c from a.json", '{\n  "c": 1,\n  "b": 2\n}\n', ['{\n  "b": 2\n}\n']),
        ("Take Kevin out of a.md", "# Kevin's team\n- Ann\n- Kevin\n", ["- Ann\n- Kevin\n", "# Kevin's team\n- Ann\n"]),
        ("Remove it from a.md", "one\ntwo\n", []),
    ],
)
def test_removals_take_one_line_with_the_lines_below_it(request_, text, texts):
    assert list_removals(request_, text) == texts
