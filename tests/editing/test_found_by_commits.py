"""Results and rejections of edits: cases found with real commits."""

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from benchmarks.ambiguity import is_ambiguous
from benchmarks.corruptions import Case
from benchmarks.drifts import WAYS


def patched(text, old, new, **hints):
    return patch_text(text, {"old_text": old, "new_text": new, **hints}).text


def refusal(text, old, new, **hints):
    with pytest.raises(EditError) as caught:
        patched(text, old, new, **hints)
    return str(caught.value)


def test_a_line_that_was_commented_out_is_not_commented_out_again():
    """Its blanks differ from the patch's."""
    old = "          - { target: windows       , os: windows }"
    new = old.replace("- {", "# - {")
    once = patched(f"  include:\n{old}\n", old, new)
    assert once == f"  include:\n{new}\n"
    assert "already" in refusal(once, old, new)


def test_inserted_blank_line_is_not_inserted_again():
    """In a block that the model indents by another unit."""
    old = "    if span is None:\n      context = default(self)\n    elif is_generator(span):\n      warn(span)\n"
    new = old.replace("    elif", "\n    elif")
    text = old.replace("      ", "            ").replace("    if", "        if").replace("    elif", "        elif")
    once = patched(text, old, new)
    assert once == text.replace("        elif", "\n        elif")
    assert "already" in refusal(once, old, new)


# --------------------------------------------------------- what the benchmark counts by itself


def case(text, old, new, expected, kind="exact", also=()):
    return Case(kind, text, [{"old_text": old, "new_text": new}], expected, also=also)


def test_choice_between_equal_lines_is_ambiguous():
    """They differ in blanks that the model does not show."""
    kept, other = "a\n} \nb\n", "a\n}\nb\n"
    text = "a\n} \nx\n}\nb\n"
    first, second = "a\n} \nc\n}\nb\n", "a\n}\nc\n} \nb\n"
    assert is_ambiguous(case(text, "x", "c", first), second)
    assert not is_ambiguous(case(text, "x", "c", kept), other)


def test_whitespace_is_ambiguous_only_if_the_error_is_whitespace():
    """Else they are lost."""
    assert is_ambiguous(case("x\n", "x", "y ", "y \n", "trailing by model"), "y\n")
    assert not is_ambiguous(case("x\n", "x", "y ", "y \n", "typo in context"), "y\n")


def test_a_line_end_of_the_new_text_alone_may_be_a_blank_line():
    """Nothing else may differ."""
    drawn = case("a\nb\nc\n", "b", "x\n", "a\nx\n\nc\n")
    assert is_ambiguous(drawn, "a\nx\nc\n")
    assert not is_ambiguous(drawn, "a\ny\nc\n")


def test_text_that_only_matches_elsewhere_is_ambiguous():
    """A refusal and the edit there are as right; one at a third place is wrong."""
    text = "one\ntwo\nthree\n...\none\nthree\n...\nfour\n"
    drawn = case(text, "one\nthree", "one\n3", "one\ntwo\n3\n...\none\nthree\n...\nfour\n")
    assert is_ambiguous(drawn, None)
    assert is_ambiguous(drawn, "one\ntwo\nthree\n...\none\n3\n...\nfour\n")
    assert not is_ambiguous(drawn, "one\ntwo\nthree\n...\none\nthree\n...\n4\n")
    assert not is_ambiguous(case(text, "one\nthree", "one\n3", None), "other")


def test_other_results_and_rejections_are_ambiguous():
    """For a drift on which diff algorithms disagree."""
    drawn = case("x", "x", "y", "y", also=("y", "z"))
    assert is_ambiguous(drawn, None)
    assert is_ambiguous(drawn, "z")
    assert not is_ambiguous(drawn, "w")


def test_comparisons_agree_on_distinctive_lines():
    """They may disagree about a bracket inserted next to another one."""
    old = ["def f() {", "  one();", "}", "", "def g() {", "  two();", "}"]
    new = ["def f() {", "  one();", "  more();", "}", "", "", "def g() {", "  two();", "}"]
    stands = [compare(old, new) for compare in WAYS]
    assert {found[1] for found in stands} == {1}
    assert {found[5] for found in stands} == {7}
    twins = [compare(["}", "x", "}"], ["}"]) for compare in WAYS]
    assert len({tuple(found) for found in twins}) > 1


def test_entities_only_in_new_text_are_unescaped():
    """If neither the old text nor the file has characters that HTML escapes."""
    text = "first = one\nsecond  =  two\n"
    assert patched(text, "second = two", "second = &#x27;2&#x27;") == text.replace("two", "'2'")
    assert patched(text + "a &amp; b\n", "second = two", "second = &#x27;2&#x27;").count("&#x27;") == 2
    assert patched(text, "second  =  two", "second = &#x27;2&#x27;").count("&#x27;") == 2
    page = "<p>\nless  than ten apples\n</p>\n"
    assert patched(page, "less than ten apples", "apples &lt; 10") == "<p>\napples &lt; 10\n</p>\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (
            "x\n\tone();\n\t  two();\n\t  tri();\n",
            "    one();\n",
            "    one();\n      more();\n",
            "\tone();\n\t  more();\n",
        ),
        (
            "f {\n\tone()\n}\n",
            "    f {\n    \tone()\n",
            "    f {\n      if a {\n    \tone()\n",
            "f {\n  if a {\n\tone()\n",
        ),
        (
            "m\n        a: 1,\n    }\n}\n",
            "        a: 1,\n  }\n",
            "        a: {\n            b,\n  }\n",
            "a: {\n            b,\n    }\n",
        ),
    ],
    ids=["half levels of a file with tabs", "as much put before each line", "a bracket at another depth"],
)
def test_new_lines_are_indented_by_the_scale_of_the_lines_that_are_shown(text, old, new, expected):
    """A line of another scale next to an exact one is unrelated."""
    assert expected in patched(text, old, new)
