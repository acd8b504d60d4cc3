"""What a text speaks of."""

from __future__ import annotations

import pytest

from adapter.constraints.mentions import directories, mentioned, quoted, runs, spelled_paths

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
    ],
)
def test_quoted_pieces(text, pieces):
    assert quoted(text) == pieces


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
        ("", []),
    ],
)
def test_spelled_paths(text, paths):
    assert spelled_paths(text) == paths


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
def test_mentioned_paths(text, paths):
    assert mentioned(FILES, text) == paths


def test_directories_are_those_with_files_in_them():
    assert directories(FILES) == ["src", "src/web", "tests"]


def test_runs_are_the_words_as_they_stand_together():
    assert runs("say (Hello World).", 2) == [
        "say",
        "say (Hello",
        "(Hello",
        "Hello",
        "(Hello World).",
        "Hello World",
        "World).",
        "World",
    ]
