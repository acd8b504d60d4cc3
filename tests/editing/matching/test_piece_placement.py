"""Pieces of a file with omissions between them are placed together, or rejected if one could be elsewhere."""

import pytest

from adapter.core.errors import ToolError
from adapter.editing.apply import patch_text
from adapter.tools.operations import WholeFileRewrite

MARK = "# ... existing code ..."


def function(name, *body):
    return [f"def {name}(x):", *(f"    {line}" for line in body or (f"return {name} + x",)), "", ""]


def applied(old, new):
    return patch_text("\n".join(old), [WholeFileRewrite("", "\n".join(new))], path="a.py").text.split("\n")


FUNCTIONS = [
    *function("one"),
    *function("two", "y = x", "return y"),
    *function("three"),
    *function("four"),
    "end = 1",
    "",
]


def test_a_piece_whose_ends_repeat_is_placed_by_its_middle():
    old = ["{", "a", "}", "{", "b", "c", "}", "{", "d", "}", ""]
    assert applied(old, [MARK, "{", "b", "new", "c", "}", MARK]) == [*old[:5], "new", *old[5:]]


def test_an_insertion_deletes_nothing_although_its_first_line_repeats():
    old = [*function("one", "y = load(x)", "end()"), *function("two", "while run(): pass", "end()"), "last = 1", ""]
    added = function("compare_both_results", "return one(x) == two(x)")
    assert applied(old, [MARK, "    end()", "", "", *added, "last = 1", ""]) == [*old[:-2], *added, "last = 1", ""]


def test_pieces_of_twins_are_placed_in_their_order():
    old = [line for name in "abcdefgh" for line in (f"class {name}:", "    def f(self):", "        return 1", "")]
    new = [
        line for name in "bdg" for line in (MARK, f"class {name}:", MARK, "    def f(self):", "        return 2", "")
    ]
    expected = list(old)
    for name in "bdg":
        expected[old.index(f"class {name}:") + 2] = "        return 2"
    with pytest.raises(ToolError, match="could be"):
        applied(old, [*new, MARK])
    together = [line for name in "bdg" for line in (MARK, f"class {name}:", "    def f(self):", "        return 2", "")]
    assert applied(old, [*together, MARK]) == expected


def test_a_changed_line_at_an_end_of_a_piece_replaces_the_similar_one():
    new = [MARK, "def three(x, y):", "    return three + x", MARK]
    expected = ["def three(x, y):" if line == "def three(x):" else line for line in FUNCTIONS]
    assert applied(FUNCTIONS, new) == expected


def test_a_declaration_that_the_omitted_lines_contain_too_is_rejected():
    header = "func SetOutput(out io.Writer) {"
    body = [f"\tstd.field{number} = compute({number})" for number in range(12)]
    old = ["func Reset() {", "\tclear()", "}", "", header, *body, "}", "", "func Level() {", "\tx()", "}", ""]
    with pytest.raises(ToolError, match=r"'func SetOutput\(out io.Writer\) \{' would be in the file twice"):
        applied(old, [MARK, "\tclear()", "}", "", header, "\tstd.SetOutput(out)", "}", MARK])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (["{", "a", "}", "", "{", "a", "}", "", "b", ""], [MARK, "{", "a", "new", "}", MARK, "b"], "could be"),
        (FUNCTIONS, [MARK, "def five(x):", "    return 5", MARK], "does not occur"),
        (FUNCTIONS, [MARK, "def three(x):", "    pass", MARK, "def one(x):", "    pass", MARK], "does not occur"),
        (
            [*function("one", "a()", "end()"), *function("two", "b()", "end()"), "last = 1", ""],
            [MARK, "    end()", "", "", "last = 1", MARK],
            "could be",
        ),
        (
            ["import a", "", *function("set_it", "old()", "older()"), *function("last")],
            ["import a", "", "def set_it(x): # changed", "    new()", "", "", MARK, "def last(x):", MARK],
            "does not occur",
        ),
    ],
)
def test_a_piece_that_could_be_elsewhere_is_rejected(old, new, reason):
    with pytest.raises(ToolError, match=reason):
        applied(old, new)
