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


def test_a_new_text_between_blank_lines_keeps_both():
    """One that ends with a line end alone has it by habit."""
    text = "first: one;\nsecond: two;\nthird: three;\n"
    assert patched(text, "second: two;", "\n// why\nsecond: two;\n") == text.replace(
        "second", "\n// why\nsecond"
    ).replace("third", "\nthird")
    assert patched(text, "second: two;", "second: 2;\n") == text.replace("two", "2")
    assert patched("a = 1", "a = 1", "\n") == ""


def test_trailing_spaces_of_a_changed_line_are_written():
    """Also where the line that it replaces was misspelt."""
    text = "def f():\n    call(first_argument, \n        second_argument)\n    return 1\n"
    old = "    call(first_argumnet, \n        second_argument)\n    return 1\n"
    new = "    made(first_argument, \n        second_argument)\n    return 1\n"
    assert patched(text, old, new) == text.replace("call(", "made(")


def test_whitespace_only_line_is_indented_like_the_file():
    """With its tabs."""
    text = "def f():\n\tfirst = 1\n\tsecond = 2\n"
    old, new = "    first = 1\n    second = 2\n", "    first = 1\n    \n    second = 2\n"
    assert patched(text, old, new) == "def f():\n\tfirst = 1\n\t\n\tsecond = 2\n"


def test_a_block_in_a_smaller_unit_of_indentation_is_scaled_as_a_whole():
    """Though the lines that were shown have all the same indentation."""
    text = "fn one() {\n    Test::new()\n        .expect(1)\n        .run();\n}\n\nfn two() {\n    go();\n}\n"
    old = "    .expect(1)\n    .run();\n"
    new = old + "}\n\nfn other() {\n  Test::new()\n    .run();\n"
    assert patched(text, old, new) == text.replace(
        "        .run();\n", "        .run();\n}\n\nfn other() {\n    Test::new()\n        .run();\n"
    )


def test_changed_line_with_other_brackets_does_not_match():
    """Regardless of similarity: punctuation is its only content."""
    text = 'writer.end();\nassertEquals("{}", writer.get().toString());\n'
    old = 'assertEquals("[[],[[]]]", writer.get().toString());'
    assert "does not match the file" in refusal(text, old, old.replace("assertEquals", "assertSame"))


def test_text_without_any_exact_line_is_not_found():
    """All lines alike in another style are another block."""
    names = ("italic", "underline", "inverse", "hidden")
    text = "".join(f"expectType<string>(chalk.{name}`foo`);\n" for name in names)
    old = "".join(f"expectType<string>(chalk.{name}('foo'));\n" for name in names)
    new = old.replace(
        "expectType<string>(chalk.inv", "expectType<string>(chalk.over('foo'));\nexpectType<string>(chalk.inv"
    )
    assert "every line of the old text differs from the file" in refusal(text, old, new)


def test_best_match_with_a_missing_line_has_a_rival():
    """Another one has all lines, of which three read differently: none is sure."""
    arguments = ["iteration,", "failure.unwrap_or(self.options.failure),", "&self.options.input_policy,", "policy,"]
    arguments += ["&command.get_command_line(),"]
    twin = ["othercommand_builder,", *arguments]
    twin[3] = "&self.new_options.input_policy,"
    text = "run(\n" + "\n".join(arguments) + "\n)\nother()\nrun(\n" + "\n".join(twin) + "\n)\n"
    old = "\n".join(["command_builder,", *arguments])
    assert "not found" in refusal(text, old, old.replace("unwrap_or(", "unwrap_or_else(|| "))


def test_twin_without_blank_line_is_not_edited_if_already_applied():
    """Its place reads like the new text by now."""
    made = "    steps:\n      - uses: checkout@two\n      - name: Set up\n"
    old = made.replace("two", "one")
    text = f"jobs:\n  build:\n    runs-on: linux\n{made}  other:\n    runs-on: linux\n\n{old}"
    head = "    runs-on: linux\n"
    assert "already" in refusal(text, head + old, head + made)


def test_a_line_that_was_commented_out_is_not_commented_out_again():
    """Its blanks are not those of the patch."""
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


def test_short_part_of_a_name_is_not_a_typo():
    """``ms`` and ``s`` are two units, ``field`` and ``fields`` may be one name."""
    text = "#[test]\nfn test_unit_first_s() {\n    use std::collections;\n    let field_value = vec![];\n"
    old = text.replace("first_s", "first_ms")
    assert "does not match the file" in refusal(text, old, old.replace("first_ms", "ms"))
    old = text.replace("field_value", "fields_value")
    assert patched(text, old, old.replace("use ", "")) == text.replace("use ", "")


def test_plus_and_space_are_an_empty_line():
    """If the old text has no markers."""
    text = "def f():\n    first()\n    second()\n"
    old, new = "    first()\n    second()", "    first()\n+ \n+     added()\n    second()"
    assert patched(text, old, new) == "def f():\n    first()\n\n    added()\n    second()\n"
    assert patched(text, old, new.replace("+     added()\n", "")) == "def f():\n    first()\n\n    second()\n"


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


def test_quotes_escaped_only_in_new_text_are_unescaped():
    """If the old text has no quotes and the file no escaped ones; with an exact old text they are intended."""
    text = 'first: "one"\n  second: –\nthird: "three"\n'
    old, new = "  second: -\n", '  second: -\n  added: \\"two\\"\n'
    assert patched(text, old, new) == text.replace("third", '  added: "two"\nthird')
    escaped = text + 'say "a \\"word\\""\n'
    assert patched(escaped, old, new) == escaped.replace("third", '  added: \\"two\\"\nthird')
    exact = text.replace("–", "-")
    assert patched(exact, old, new) == exact.replace(old, new)


def test_entities_only_in_new_text_are_unescaped():
    """If neither the old text nor the file has characters that HTML escapes."""
    text = "first = one\nsecond  =  two\n"
    assert patched(text, "second = two", "second = &#x27;2&#x27;") == text.replace("two", "'2'")
    assert patched(text + "a &amp; b\n", "second = two", "second = &#x27;2&#x27;").count("&#x27;") == 2
    assert patched(text, "second  =  two", "second = &#x27;2&#x27;").count("&#x27;") == 2
    page = "<p>\nless  than ten apples\n</p>\n"
    assert patched(page, "less than ten apples", "apples &lt; 10") == "<p>\napples &lt; 10\n</p>\n"


def test_a_line_of_the_old_text_is_a_line_in_the_new_one():
    r"""Even between quotes: in an escaped text, ``\n`` next to it is a line break."""
    text = 'export OPTS="\n  --one\n  --two\n  --three\n  --four"\nend\n'
    old, new = (lines.replace("\n", "\\n") for lines in (text, text.replace("  --two\n  --three\n", "")))
    assert patched(text, old, new) == text.replace("  --two\n  --three\n", "")


def test_breaks_in_strings_of_json_are_escaped_twice():
    r"""So each ``\n`` next to them is a line break."""
    text = 'help("Set it."),\nrest(1)\n'
    old, new = 'help(\\"Set it.\\"),\\nrest(1)', 'help(\\"Set it.\\\\\\n  More.\\"),\\nrest(1)'
    assert patched(text, old, new) == 'help("Set it.\\\n  More."),\nrest(1)\n'


def test_shortened_or_extended_text_keeps_the_characters_of_the_file():
    """Also one of few letters, and a line that was commented out."""
    text = "    ”\\”)]}\\\\n<data>\\””,\n    call(”one–”);\n"
    old = text.translate({0x201D: '"', 0x2013: "-"})
    assert patched(text, old, old.replace("<data>", "")) == text.replace("<data>", "")
    assert patched(text, old, old.replace("call", "// call")) == text.replace("call", "// call")


def test_a_new_line_like_a_kept_one_is_written_as_the_model_wrote_it():
    """The no-break space of the kept one is not copied."""
    text = "if a:\n    return\u00a0value\nend\n"
    old, new = "    return value\nend\n", "    return value\nelse:\n    return value\nend\n"
    assert patched(text, old, new) == text.replace("end", "else:\n    return value\nend")


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


def test_name_with_another_first_letter_does_not_match():
    """However alike the rest is."""
    text = "def passesNullSerialization():\n    value_of_it = 1\n    return value_of_it\n"
    old = text.replace("Serialization", "Desrialization")
    assert "does not match the file" in refusal(text, old, old.replace("Desrialization", "Deserialization"))


def test_line_found_verbatim_elsewhere_is_not_a_typo():
    """The location of the verbatim line may be the intended one."""
    place = '@command()\n@argument({})\ndef touch(filename):\n    """Print FILENAME.{}\n    echo(filename)\n\nrun::\n'
    more = '\n\n    FILENAME is the name of the file.\n    """'
    text = place.format("'filename', help='The file.'", '"""') + "    other\n" + place.format("'filename'", more)
    old = place.format("'filename'", '"""')
    refusal(text, old, old.replace("(filename):", "(filename):\n    added()"))


def test_single_line_with_other_punctuation_does_not_match():
    """No other line confirms the match."""
    text = "a\n\" - highlight [string default 'Comment']: Highlight group\nb\n"
    old = "- `highlight` [string default 'Comment']: Highlight group\n"
    assert "does not match the file" in refusal(text, old, "")
