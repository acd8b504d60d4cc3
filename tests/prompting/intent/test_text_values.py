"""Values found in a text."""

from __future__ import annotations

import pytest

from adapter.prompting.intent.text_values import (
    find_known_paths,
    find_lists,
    find_numbers,
    find_paths,
    find_quoted,
    find_runs,
    unquote,
)
from adapter.prompting.intent.tool_ranking import list_request_terms
from tests.processor_time import processor_limit

FILES = ["README.md", "src/app.py", "src/web/app.js", "tests/test_app.py"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("replace 'a b' by \"c\"", ["a b", "c"]),
        ("use `x = 1`, not “y”", ["x = 1", "y"]),
        ("don't touch what isn't yours", []),
        ('<h1 class="big">', []),
        ("change 'don't' to 'do not'", ["don't", "do not"]),
        ("'a': 'b'.", ["a", "b"]),
        ("«один» 「二」 („drei“)", ["один", "二", "drei"]),
        ("", []),
        ("« un mot » et «deux»", ["un mot", "deux"]),
    ],
)
def test_find_quoted_returns_strings_without_quotes(text, pieces):
    assert find_quoted(text) == pieces


@pytest.mark.parametrize("text", ["('a " * 20_000, '"a\n' * 20_000, "a-" * 20_000, "a/b 'c' " * 20_000])
def test_values_of_a_long_request_are_found_in_linear_time(text):
    with processor_limit(2):
        list_request_terms(text)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("'Show \"a b\" now'", 'Show "a b" now'),
        (" “Show a.py” ", "Show a.py"),
        ("'a' and 'b'", "'a' and 'b'"),
        ("don't", "don't"),
        ("", ""),
    ],
)
def test_unquote_removes_quotes_around_all_of_a_text(text, inner):
    assert unquote(text) == inner


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("the mean of [1, 2.5] and [3]", [[1, 2.5], [3]]),
        ("""sort ['b', 'a'] and ["it's"]""", [["b", "a"], ["it's"]]),
        ("a[0], [x] and [1, [2]]", [[0], [2]]),
        ("", []),
    ],
)
def test_find_lists_returns_lists_with_either_quotes(text, lists):
    assert [value for value, _ in find_lists(text)] == lists


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("read src/main.rs and README.md.", ["src/main.rs", "README.md"]),
        (r"Please read C:\work\notes.txt", [r"C:\work\notes.txt"]),
        ("look into src/ please", ["src/"]),
        ("~/x.txt, ../y.txt and .gitignore", ["~/x.txt", "../y.txt", ".gitignore"]),
        ("version 1.25 is out. Really, e.g. https://example.com/x", []),
        ("change <h1>a</h1> to <br/>", []),
        ("src/app.py:12: error", ["src/app.py:12"]),
        ("add *.pyc to .gitignore", [".gitignore"]),
        ("src/*.py, docs/** and **/x.py, test_*.py, not **a.md**", ["a.md"]),
        ("", []),
    ],
)
def test_find_paths_returns_spelled_paths(text, paths):
    assert find_paths(text) == paths


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("what is in src/app.py?", ["src/app.py"]),
        ("open app.js", ["src/web/app.js"]),
        ("show the readme", ["README.md"]),
        ("fix app", ["src/app.py", "src/web/app.js"]),
        ("(`./src/app.py`)", ["src/app.py"]),
        (r"src\app.py", ["src/app.py"]),
        ("myapp.py", []),
        ("nothing", []),
    ],
)
def test_find_known_paths_matches_names_in_a_text(text, paths):
    assert find_known_paths(FILES, text) == paths


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5cm and 2,000,000 at 5 %", [(5, 5), (2000000, 2000000), (5, 0.05)]),
        ("-1.5 to 3e2", [(-1.5, -1.5), (300, 300)]),
        ("version 1.2.3, x^2, B1004", []),
        ("1" * 30, []),
    ],
)
def test_find_numbers_returns_values_and_shares(text, numbers):
    assert [(each.value, each.share) for each in find_numbers(text)] == numbers


def test_find_runs_with_and_without_punctuation():
    assert find_runs("buy milk, now", 2) == ["buy", "buy milk,", "buy milk", "milk,", "milk", "milk, now", "now"]
