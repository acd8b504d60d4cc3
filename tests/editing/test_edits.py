"""The edit engine: the right place or a refusal, and not one byte more than asked."""

import time
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.tools.operations import ParameterNames, Patch


def patched(text, *pairs):
    return patch_text(text, [Patch(*pair) for pair in pairs]).text


def refusal(text, *pairs):
    with pytest.raises(EditError) as caught:
        patch_text(text, [Patch(*pair) for pair in pairs])
    assert str(caught.value).endswith("Nothing was changed.")
    return str(caught.value)


# ------------------------------------------------------------- one place, exactly

LINE = st.text(st.sampled_from("ab \t}é\u2028\x0c"), max_size=6)
END = st.sampled_from(["\n", "\r\n", "\r"])
TEXT = st.tuples(st.sampled_from(["", "\ufeff"]), st.lists(st.tuples(LINE, END)), LINE).map(
    lambda parts: parts[0] + "".join(line + end for line, end in parts[1]) + parts[2]
)


@given(TEXT, TEXT, LINE)
def test_bytes_outside_the_match_never_change(before, after, new):
    """Whatever surrounds the match comes out as it went in."""
    assume(new)  # whole lines that are deleted take their line end along
    after = after.removeprefix("\ufeff")
    if before.endswith("\r") and after.startswith("\n"):
        after = after[1:]
    result = patch_text(f"{before}<MARK>{after}", [Patch("<MARK>", new)])
    assert result.text == f"{before}{new}{after}"
    assert result.matches[0].strictness == "exact"


@given(st.lists(st.sampled_from(["one", "two", "three", "four"]), min_size=1, unique=True))
def test_patches_are_independent_of_their_order(order):
    """Every patch is located in the original, so the order of the list cannot matter."""
    text = "one\r\ntwo\nthree\rfour"
    result = patched(text, *[(word, word[::-1]) for word in order])
    assert result == "".join(_swap(piece, order) for piece in ["one", "\r\n", "two", "\n", "three", "\r", "four"])


def _swap(piece, order):
    return piece[::-1] if piece in order else piece


def test_matches_report_lines_in_the_order_of_the_patches():
    """Line numbers refer to the original text, 1-based."""
    result = patch_text("one\ntwo\nthree\n", [Patch("three\n", "3\n"), Patch("one\ntwo", "1\n1b\n2")])
    assert [(match.start_line, match.end_line) for match in result.matches] == [(3, 3), (1, 2)]


def test_diff_equals_the_change():
    """The diff shows removed and added lines under the file's name."""
    diff = patch_text("a\nb\n", [Patch("a", "c")], path="x.py").diff
    assert diff == "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n"


# ------------------------------------------------------------------- white space


BLOCK = st.lists(
    st.tuples(st.integers(0, 3), st.text(st.sampled_from("ab(): "), min_size=1, max_size=6).map(lambda t: f"x{t}y")),
    min_size=2,
    max_size=6,
    unique_by=lambda line: line[1].replace(" ", ""),
)


@pytest.mark.parametrize("old", ["value = compute(first, second,)", "\nvalue = compute(first, second,)\n"])
def test_text_in_place_of_wrapped_lines_gets_their_indentation(old):
    """Even if no single line of the file is a line of the old text."""
    before, after = "def f(x):\n    if x:\n\n", "    return 1\n"
    text = f"{before}        value = compute(\n            first,\n            second,\n        )\n{after}"
    assert patched(text, (old, "\nif y:\n    call(1)\n")).endswith(f"        if y:\n            call(1)\n{after}")


@pytest.mark.parametrize(("new", "result"), [("x", "x\n"), ("\nclass B:", "\n    class B:\n")])
def test_differently_spaced_line_below_a_blank_line_shows_the_indentation(new, result):
    """The blank line, which is the same in both texts, does not."""
    before, after = "def f(x):\n    return x\n", "        y = 1\n"
    text = f"{before}\n    class A:\n{after}"
    indented = result if result.startswith("\n") else f"    {result}"
    assert patched(text, ("\nclassA:", new)) == before + indented + after


@given(BLOCK, BLOCK, st.integers(1, 3), st.sampled_from(["    ", "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_shifted_block_gets_the_indentation_of_the_file(block, inserted, levels, unit, end):
    """Dedented old and new text give the same result as correctly indented ones, in the file's own unit."""
    inserted = [(depth, f"new {text}") for depth, text in inserted]

    def at(shift, lines, unit, end):
        return "".join(unit * (depth + shift) + text + end for depth, text in lines)

    text = "before" + end + at(levels, block, unit, end) + "after"
    old, new = at(0, block, "    ", "\n"), at(0, [block[0], *inserted, *block[1:]], "    ", "\n")
    expected = "before" + end + at(levels, [block[0], *inserted, *block[1:]], unit, end) + "after"
    assert patched(text, (old, new)) == expected


def test_an_added_line_aligned_with_a_column_is_moved_and_not_scaled():
    """A help text that is two columns short in old and new: the line that continues a description moves by two."""
    head = "usage: x\n\n  Search\n    -x, --exact    Exact match\n    -i             Any case\n"
    old = "  -x, --exact    Exact match\n  -i             Any case\n"
    new = "  -x, --exact    Exact match\n                 (as by default)\n  -i             Any case\n"
    assert patch_text(head, [{"old_text": old, "new_text": new}]).text == head.replace(
        "    -i ", "                   (as by default)\n    -i "
    )


def test_equal_lines_are_not_confused_if_one_has_changed():
    """The old text has the line twice and changes the first; the file has only the second."""
    head = "test('strings', t => {\n  const ctx = make({level: 3});\n  t.is(ctx`{black} plain`, 'first of all');\n"
    line = "  t.is(ctx`{keyword} can haz`, 'the very same text');\n"
    text = head + line.replace("same", "other") + line + "});\n"
    old = head + line + line + "});\n"
    new = head + line.replace("keyword", "colour") + line + "});\n"
    with pytest.raises(EditError):
        patch_text(text, [{"old_text": old, "new_text": new}])


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("\t\tx()\n", "    x()\n", "y()\n    x()\n", "\ty()\n\t\tx()\n"),
        ("\tx()\n", "  x()\n", "  x()\n    y()\n", "\tx()\n\t\ty()\n"),
        ("  x()\n", "\tx()\n", "\tx()\n\t\ty()\n", "  x()\n    y()\n"),
        ("        x()\n", "\t\tx()\n", "\t\tx()\n\t\t\ty()\n", "        x()\n            y()\n"),
    ],
)
def test_one_matched_line_is_enough_to_translate_units(text, old, new, expected):
    """Tabs and spaces: the unit is derived from the lines on either side."""
    assert patched(text, (old, new)) == expected


# ----------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"old_text": "a"}, "new_text is missing"),
        ({"old_text": 1, "new_text": "b"}, "old_text must be a text, got '1'"),
        ({"old_text": "a", "new_text": "b", "start_line": "7"}, "start_line must be a line number"),
        ({"old_text": "a", "new_text": "b", "row": 7}, "unknown key 'row'"),
        ("a", "expected an object"),
    ],
)
def test_invalid_mappings_are_rejected_by_number(patch, said):
    """A malformed patch object was silently dropped by the original."""
    with pytest.raises(EditError) as caught:
        patch_text("a\n", [{"old_text": "a", "new_text": "c"}, patch])
    assert f"patch 2 of 2: {said}" in str(caught.value)


# --------------------------------------------------------------------------- cost


@pytest.mark.parametrize("old", ["line 50000 of it\n", "  line 50000 of it \n"])
def test_large_files_are_patched_quickly(old):
    """100,000 lines, exactly and loosely."""
    text = "".join(f"line {i} of it\n" for i in range(100_000))
    start = time.thread_time()
    patched(text, (old, "x\n"))
    assert time.thread_time() - start < 5


def test_closest_block_of_a_large_file_is_found_quickly():
    """Refusals must not cost more than edits."""
    text = "".join(f"line {i} of it\n" for i in range(100_000))
    start = time.thread_time()
    assert "closest match is line" in refusal(text, ("lime 50000 of those\n", "x\n"))
    assert time.thread_time() - start < 5


def test_periodic_texts_do_not_stall():
    """Overlapping occurrences of a periodic text are bounded."""
    start = time.thread_time()
    assert "more than 10000 places" in refusal("a" * 200_000, ("a" * 1_000, "b", 1))
    assert time.thread_time() - start < 5


@pytest.mark.parametrize("size", [1_000, 5_000])
def test_fuzzy_matching_of_long_texts_is_bounded(size):
    """Thousands of similar lines with a few typing errors: found or refused, but soon."""
    lines = [f"line {i} of file with number {i * 7}" for i in range(20_000)]
    old = "\n".join(lines[500 : 500 + size]).replace("file", "flie", 3)
    start = time.thread_time()
    with suppress(EditError):
        patched("\n".join(lines), (old, old + "\nmore"))
    assert time.thread_time() - start < 5


def test_new_line_found_elsewhere_is_not_already_applied():
    """``return None`` is everywhere; only lines kept around it would make it evidence."""
    text = "def first(key):\n    return None\n\n\ndef second(key, value):\n    return value or default(key)\n"
    result = patched(text, ("    retrun value or default(key)", "    return None"))
    assert result == text.replace("    return value or default(key)", "    return None")


def test_messages_use_the_parameter_names_of_the_tool():
    """A model corrects the parameters of its own call."""
    names = ParameterNames("old_string", "new_string", start_line=None, replace_all="all")
    with pytest.raises(EditError) as caught:
        patch_text("x\nx\n", [Patch("x", "y")], names=names)
    assert (
        "old_string matches 2 places (lines 1, 2: 1 at the start, 2 below 'x'); add a surrounding line, or set all to"
        in (str(caught.value))
    )


@pytest.mark.parametrize(
    ("text", "patch", "after"),
    [
        ("a\rb\nc\nd\n", Patch("a\n", "a\nx\n"), "a\rx\nb\nc\nd\n"),
        ("a\rb\nc\nd\n", Patch("b", "b\nx"), "a\rb\nx\nc\nd\n"),
        ("a\rb\rc\r", Patch("b", "b\nx"), "a\rb\rx\rc\r"),
        ("a\r\nb\rc\r\nd\r\n", Patch("b\n", "b\nx\n"), "a\r\nb\rx\r\nc\r\nd\r\n"),
        ("a\rb\nc\n", Patch("a\nb", "a\nB"), "a\rB\nc\n"),
    ],
)
def test_a_lone_carriage_return_is_kept_and_not_copied(text, patch, after):
    """A new line gets the line end of the others; a carriage return only if all lines end with it."""
    assert patch_text(text, [patch]).text == after


TWICE: dict[str, tuple[str, dict[str, object]]] = {
    "part of a line with its indentation, and a twin of it within another line": (
        '# Shell\n  eval "$(fzf --zsh)"\n\n* zsh: `COMMAND= eval "$(fzf --zsh)"`\n',
        {"old_text": '  eval "$(fzf --zsh)"', "new_text": "  source <(fzf --zsh)"},
    ),
    "a blank line, in a text that begins without its indentation": (
        "def f(self):\n    g.append(\n        1\n    )\n    return endpoints_info\n\ndef parse(self):\n    pass\n",
        {
            "old_text": ")\n    return endpoints_info\n\ndef parse(self):\n",
            "new_text": ")\n\n    return endpoints_info\n\ndef parse(self):\n",
        },
    ),
    "two blanks a level where the file has four": (
        "class C:\n    @overload\n    def __call__(\n        self, key: str\n    ) -> str:\n        ...\n",
        {
            "old_text": "  def __call__(\n    self, key: str\n",
            "new_text": "  def __call__(\n    self,\n  ) -> T:\n    ...\n\n"
            "  @overload\n  def __call__(\n    self, key: str\n",
        },
    ),
    "a blank line in one of two blocks, told by its line": (
        "a\n\tvar size = args.length;\n\tif (size > 1) {\n"
        + "x\n" * 10
        + "\tvar size = args.length;\n\tif (size > 1) {\n",
        {
            "old_text": "\tvar size = args.length;\n\tif (size > 1) {\n",
            "new_text": "\tvar size = args.length;\n\n\tif (size > 1) {\n",
            "start_line": 2,
        },
    ),
}


@pytest.mark.parametrize("case", TWICE)
def test_applied_insertion_is_not_applied_again(case):
    text, patch = TWICE[case]
    once = patch_text(text, [patch]).text
    assert once != text
    with pytest.raises(EditError, match="already"):
        patch_text(once, [patch])


def test_spaces_before_part_of_a_line_are_not_added():
    """The place has one blank there, the texts have two."""
    patch = {"old_text": "  eval  x", "new_text": "  source y"}
    assert patch_text("run: `A= eval x`\n", [patch]).text == "run: `A= source y`\n"


@pytest.mark.parametrize(
    ("text", "old", "added", "result"),
    [
        ("class A:\n  def f(self):\n    return 1\n", "def f(self):\n    return 1", "\n\ndef g(self):\n    return 2",
         "class A:\n  def f(self):\n    return 1\n\n  def g(self):\n    return 2\n"),
        ("class A:\n    def f(self):\n        return 1\n", "def f(self):\n        return 1", "\n\ndef g(self): pass",
         "class A:\n    def f(self):\n        return 1\n\n    def g(self): pass\n"),
        ("a:\n  b:\n    c: 1\n", "b:\n    c: 1", "\nd:\n    e: 1", "a:\n  b:\n    c: 1\n  d:\n    e: 1\n"),
        ("class A {\n  f() {\n    go()\n  }\n}\n", "f() {\n    go()\n  }", "\n\n  g() {}",
         "class A {\n  f() {\n    go()\n  }\n\n  g() {}\n}\n"),
    ],
)  # fmt: skip
def test_lines_after_a_text_without_its_first_indentation_stay_in_the_block(text, old, added, result):
    """The old text occurs verbatim in the middle of a line, because the model's unit of indentation is twice the
    file's, or because only its first line is stripped."""
    assert patched(text, (old, old + added)) == result
