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
    body = [f"\tstd.field{number} = compute({number})" for number in range(44)]
    old = ["func Reset() {", "\tclear()", "}", "", header, *body, "}", "", "func Level() {", "\tx()", "}", ""]
    with pytest.raises(ToolError, match=r"'func SetOutput\(out io.Writer\) \{' would be in the file twice"):
        applied(old, [MARK, "\tclear()", "}", "", header, "\tstd.SetOutput(out)", "}", MARK])


def test_an_unchanged_piece_at_the_top_deletes_nothing_although_its_last_line_repeats():
    old = [
        "on:",
        "  push:",
        "    branches: [main]",
        "  pull_request:",
        "    branches: [main]",
        "jobs:",
        "  a: 1",
        "b: 2",
        "",
    ]
    assert applied(old, [*old[:3], MARK, "  a: 1", "b: 3", ""]) == [*old[:-2], "b: 3", ""]


def test_a_header_that_stands_for_its_unchanged_block_may_repeat():
    old = [line for name in "ab" for line in (f"class {name}:", "    def f(self):", "        return 1", "")]
    old += ["def last():", "    return 1", ""]
    new = [MARK, "    def f(self):", MARK, "def last():", "    return 2", ""]
    assert applied(old, new) == [*old[:-2], "    return 2", ""]


def test_lines_that_are_joined_are_not_lost():
    old = ["start = 1", "x = f(", "    alpha,", "    beta,", "    gamma,", ")", "end = 2", *FUNCTIONS]
    joined = "x = f(alpha, beta, gamma)"
    assert applied(old, [MARK, "start = 1", joined, "end = 2", MARK]) == ["start = 1", joined, "end = 2", *FUNCTIONS]


def test_the_end_of_an_import_is_no_declaration():
    old = ["import { a } from './x'", "import { b } from './y'", "import {", "  c,", "} from './common/z'", "go()", ""]
    added = ["import {", "  d,", "} from './common/z'"]
    assert applied(old, [*old[:1], *added, *old[1:2], MARK]) == [*old[:1], *added, *old[1:]]


def test_lines_that_are_wrapped_in_a_block_stay_in_their_function():
    drop = ["def drop(path):", "    db = open_database(path)", "    if name in db.names():", "        db[name].drop()"]
    body = [f"column_{number} = db.execute(queries[{number}])" for number in range(16)]
    query = ["@command()", "def query(path, sql):", "    db = open_database(path)", *(f"    {line}" for line in body)]
    end = ["", "", "@command()", "def last():", "    pass", ""]
    wrapped = ["    with db.conn:", *(f"        {line}" for line in body)]
    new = [MARK, "    db = open_database(path)", *wrapped, "", "", "@command()", MARK]
    assert applied([*drop, "", "", *query, *end], new) == [*drop, "", "", *query[:3], *wrapped, *end]


def test_the_file_ends_like_an_unchanged_last_piece():
    old = [*function("one"), *function("two")[:-1], "", ""]
    expected = ["def one(y):", *function("one")[1:], *function("two")[:-2], ""]
    assert applied(old, ["def one(y):", *function("one")[1:], MARK, *function("two")[:-2], ""]) == expected


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_the_file_ends_with_as_many_blank_lines_as_a_changed_last_piece(blank):
    old = [*function("one"), "last = 1", "", "", ""]
    assert applied(old, [MARK, "last = 1", "more = 2", *[""] * blank, ""]) == [*old[:-3], "more = 2", *[""] * blank, ""]


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
        (  # the second test of this name, or the first
            [
                *("it('adds', () => {", "  run('a')", "})", "", "it('refuses', () => {", "  send({", "    to: '/x',"),
                *("  })", "})", "", "it('refuses', () => {", "  send({", "    to: '/y',", "  })", "})", ""),
            ],
            [
                *("// ...", "  run('a')", "})", "", "it('sends', () => {", "  send({", "    to: '/z',", "  })", "})"),
                *("", "it('refuses', () => {", "// ..."),
            ],
            "could be",
        ),
        (  # the declaration is elsewhere
            [
                *("static int grow(Reader *r) {", "    return r;", "}", "", "static void set_error(Reader *r) {"),
                *(
                    "    if (r->reply && r->fn)",
                    "        r->fn->free(r->reply);",
                    "}",
                    *FUNCTIONS,
                    "    return r;",
                    "}",
                ),
                *("", "int replace_all(Reader *r, Functions *fn) {", "    r->fn = fn;", "    return OK;", "}", ""),
                *(
                    "void free_reader(Reader *r) {",
                    "    if (r->reply != NULL)",
                    "        r->fn->free(r->reply);",
                    "}",
                    "",
                ),
            ],
            [
                *("// ...", "    return r;", "}", "", "void free_reader(Reader *r) {", "    if (r->reply && r->fn)"),
                *("        r->fn->free(r->reply);", "// ..."),
            ],
            "could be|twice",
        ),
        (  # the last test may be new, or replace the one before
            [
                *(
                    "func TestFirst(t *T) {",
                    "	serve(request)",
                    "	if code != 200 {",
                    "		fail(1)",
                    "	}",
                    "}",
                    "",
                ),
                *(
                    "func TestOrder(t *T) {",
                    "	serve(request)",
                    "	if code != 200 {",
                    "		fail(2)",
                    "	}",
                    "}",
                    "",
                ),
            ],
            [
                *("// ...", "}", "", "func TestInvalid(t *T) {", "	serve(request)", "	if code != 200 {"),
                *("		fail(3)", "	}", "}", ""),
            ],
            "could be|could replace",
        ),
        (  # the lines may be moved into the new block
            [
                *("if fuel {", "  burn()", "}", "", "register_all(environment)", "if has_extension(environment) {"),
                *("  extend_with(environment)", "}", "", *FUNCTIONS),
            ],
            [
                *(MARK, "if fuel {", "  burn()", "}", "", "{", "  register_all(environment)"),
                *("  if has_extension(environment) {", "    extend_with(environment)", "  }", "}", "", MARK),
            ],
            "could (replace|be) lines",
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
