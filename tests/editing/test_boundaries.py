"""Limits of the edit engine: one line more or less changes the result."""

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.notations.registry import parse_notation
from adapter.tools.operations import Patch


def patched(text, old, new, line=None):
    return patch_text(text, [Patch(old, new, line)]).text


def refusal(text, old, new, line=None):
    with pytest.raises(EditError) as caught:
        patched(text, old, new, line)
    return str(caught.value)


# ------------------------------------------------------- a hint among very many equal places

BLOCK = "begin_here();\n# why it is so\nstep_along();\nfinish_all();\n"
SHORT = "begin_here();\nstep_along();\nfinish_all();\n"
BLOCKS = [f"{BLOCK}{''.join(f'line {row} of block {number}{chr(10)}' for row in range(20))}" for number in range(50)]


@pytest.mark.parametrize("number", [0, 1, 2, 25, 47, 48, 49])
def test_hint_selects_one_of_fifty_equal_matches(number):
    """From the first to the last, also if a comment in the file is missing in the old text."""
    line = 24 * number + 1
    wanted = [*BLOCKS[:number], BLOCKS[number].replace("finish_all", "finish_now"), *BLOCKS[number + 1 :]]
    assert patched("".join(BLOCKS), SHORT, SHORT.replace("finish_all", "finish_now"), line) == "".join(wanted)


# ---------------------------------------------------------------- lines that stay at the edges


def test_equal_lines_at_both_edges_of_a_change_are_counted_once():
    """A line inserted between equal lines, or removed from them, leaves the others."""
    put_in = patch_text("a\nb\n", [Patch("a\n", "a\na\n")])
    assert (put_in.text, put_in.places) == ("a\na\nb\n", (2,))
    assert put_in.diff.splitlines()[3:] == [" a", "+a", " b"]
    taken_out = patch_text("x\na\na\ny\n", [Patch("x\na\na\ny\n", "x\na\ny\n")])
    assert (taken_out.text, taken_out.places) == ("x\na\ny\n", (4,))
    assert taken_out.diff.splitlines()[3:] == [" x", " a", "-a", " y"]


def test_patch_may_change_context_lines_of_another():
    """At its start and at its end: context lines locate a change, but do not reserve the lines."""
    text = "one\ntwo\nthree\nfour\n"
    below = [Patch("one\ntwo\nthree\n", "1\ntwo\nthree\n"), Patch("two\nthree\nfour\n", "two\n3\nfour\n")]
    assert patch_text(text, below).text == "1\ntwo\n3\nfour\n"
    above = [Patch("two\nthree\nfour\n", "two\nthree\n4\n"), Patch("one\ntwo\nthree\n", "one\n2\nthree\n")]
    assert patch_text(text, above).text == "one\n2\nthree\n4\n"


# ------------------------------------------------------------------- the path above a block

EDIT = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("above", "path"),
    [
        ("", None),
        ("src/a.py\n", "src/a.py"),
        ("src/a.py\n```\n", "src/a.py"),
        ("src/a.py\n\n", "src/a.py"),
        ("src/a.py\n\n```\n", "src/a.py"),
        ("text\nsrc/a.py\n", "src/a.py"),
        ("src/a.py\nMakefile\n", "Makefile"),
        ("```\n", None),
    ],
)
def test_path_is_directly_above_its_block(above, path):
    """A fence and a blank line may be between, and the nearest name counts."""
    assert [edit.path for edit in parse_notation(above + EDIT)] == [path]


@pytest.mark.parametrize("above", ["", "```\n"])
def test_text_below_a_block_is_not_its_path(above):
    """Neither at the end of the text, nor at the head of the block."""
    assert [edit.path for edit in parse_notation(above + EDIT + "see src/b.py\nsrc/b.py")] == [None]
    assert [edit.path for edit in parse_notation(above + EDIT.replace("old", "src/old.py"))] == [None]
