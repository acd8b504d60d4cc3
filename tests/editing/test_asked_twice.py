"""A patch that was made and is asked once more: nothing is changed, and it is said to be made."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import EditError
from adapter.editing import patch_text
from benchmarks.ambiguity import fits_anew
from benchmarks.corruptions import KINDS
from benchmarks.one_sided import ONE_SIDED
from benchmarks.traps import twins_hint, twins_loose
from tests.editing.test_edit_real_text import applied, case_of, fixed, seeds


def said_again(text, old, new, expected, **hints):
    """What is said of a patch that makes ``expected`` of ``text``, when it is asked of that."""
    patch = {"old_text": old, "new_text": new, **hints}
    assert patch_text(text, patch).text == expected
    with pytest.raises(EditError) as caught:
        patch_text(expected, patch)
    return str(caught.value)


def test_blank_lines_around_the_texts_are_no_part_of_what_was_made():
    """The place begins with the blank line, what stands there with the one below it."""
    text = "a()\n\nbuilder.styles = styles;\nconst self = this;\nObject.defineProperty(builder);\n"
    old = "\nbuilder.styles = styles;\nconst self = this;\nObject.defineProperty(builder);\n\n\n"
    new = old.replace("this;\n", "this;\n\n")
    assert "already applied" in said_again(text, old, new, text.replace("this;\n", "this;\n\n"))


def test_a_part_of_a_line_is_made_though_it_was_written_with_blanks_before_it():
    """They are no part of the place."""
    text = "go {\n    one();\n} else if wide >= margin &&\n    more {\n"
    old = "\t\tif wide >= margin &&"
    new = "\t\tif scrolled {\n    move()\n} else if wide >= margin &&"
    expected = text.replace("if wide", "if scrolled {\n    move()\n} else if wide")
    assert "already applied" in said_again(text, old, new, expected)


def test_a_tab_for_blanks_is_made_where_the_blanks_stand():
    """Also where diff marks have to come off first."""
    text = '# note\nif [ "$1" = "x" ]; then\n\trun\nfi\nend of it\n'
    old = ' # note\n if [ "$1" = "x" ]; then\n-\trun\n fi\n'
    new = '# note\nif [ "$1" = "x" ]; then\n    run\nfi\n'
    assert "already applied" in said_again(text, old, new, text.replace("\t", "    "))


def test_what_was_taken_out_is_not_taken_out_of_a_twin():
    """The new text has a slip, and stands where the patch was made but for that."""
    block = 'tempfile = "3.3"\nclap = "4.0"\natty = "0.2.14"\nclap_complete = "4.2"\n\n[profile.release]\n'
    text = block + "lto = true\n\n" + block.replace("tempfile", "othertempfile")
    old = block.replace("clap_complete", "clap_ocmplete")
    new = old.replace('atty = "0.2.14"\n', "")
    assert "already applied" in said_again(text, old, new, text.replace('atty = "0.2.14"\n', "", 1), start_line=1)


def test_what_was_made_is_known_by_each_reading_of_the_texts():
    """A twin of the place, which the text without its line numbers fits roughly, stays."""
    block = 'c = initialize()\nc.AddCommand(cmdPrint, cmdEcho)\nflagInit()\nc.SetArgs("echo -i13 here")\nc.Execute()\n'
    text = block + "check()\n" + block.replace("c = initialize", "c := initialise").replace("-i13", "-i 13")
    old = "".join(f"{number}|{line}\n" for number, line in enumerate(block.splitlines(), 1))
    new = block.replace("flagInit()\n", "")
    assert "already applied" in said_again(text, old, new, text.replace("flagInit()\n", "", 1))


@pytest.mark.parametrize("first", ["}\n# a note\n", "},\n"])
def test_a_comment_or_a_comma_beside_what_was_made_does_not_hide_it(first):
    """The comment is the file's, which the patch does not show; the comma is one the model left out."""
    old = "}\n{\n  name: second,\n"
    new = "}\n{\n  name: first,\n}\n{\n  name: second,\n"
    with pytest.raises(EditError, match="already applied"):
        patch_text(f"zero\n{first}{new.removeprefix('}').lstrip()}rest\n", {"old_text": old, "new_text": new})


def test_a_line_hint_that_names_what_was_made_does_not_lead_to_a_twin():
    """Though what is left is a part of the old text."""
    block = '},\n{\n  name: "Speakeasy",\n},\n];\n\nreturn (\n<div className="max-w-4xl">\n'
    text = "one\n" + block + "two\n" * 20 + block
    new = '},\n];\n\nreturn (\n<div className="max-w-4xl">\n'
    expected = text.replace('{\n  name: "Speakeasy",\n},\n', "", 1)
    assert "already applied" in said_again(text, block, new, expected, start_line=2)


def test_a_text_of_several_lines_that_fits_a_part_of_a_line_is_not_trusted_where_the_new_one_stands():
    """Curly quotes of the model's own make it a rough fit."""
    block = 'name = "forge"\nversion = "0.8.2"\nlicense = "MIT"\n'
    text = f"{block}\nother{block}"
    old = 'name = ”forge”\nversion = "0.8.2"\nlicense = ”MIT”\n'
    with pytest.raises(EditError, match="is already there"):
        patch_text(text.replace("0.8.2", "0.8.3", 1), {"old_text": old, "new_text": old.replace("0.8.2", "0.8.3")})


@fixed
@given(st.sampled_from([*KINDS, *ONE_SIDED, twins_loose, twins_hint]), seeds)
def test_a_slip_of_any_kind_changes_nothing_the_second_time(make, seed):
    """Unless the old text stands there once more by every character, and the new one does not."""
    case = case_of(make, seed)
    if case.expected is None or applied(case) != case.expected:
        return
    again = replace(case, text=case.expected)
    assert applied(again) in (None, case.expected) or fits_anew(again)
