"""Repeated patches: nothing changes, and the error is "already applied"."""

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
    """Apply a patch to its own result, and return the error."""
    patch = {"old_text": old, "new_text": new, **hints}
    assert patch_text(text, patch).text == expected
    with pytest.raises(EditError) as caught:
        patch_text(expected, patch)
    return str(caught.value)


def test_blank_lines_around_the_texts_do_not_hide_an_applied_patch():
    """The match starts with the blank line, the new text with the line below it."""
    text = "a()\n\nbuilder.styles = styles;\nconst self = this;\nObject.defineProperty(builder);\n"
    old = "\nbuilder.styles = styles;\nconst self = this;\nObject.defineProperty(builder);\n\n\n"
    new = old.replace("this;\n", "this;\n\n")
    assert "already applied" in said_again(text, old, new, text.replace("this;\n", "this;\n\n"))


def test_applied_part_of_a_line_is_found_despite_leading_spaces():
    """They are not part of the match."""
    text = "go {\n    one();\n} else if wide >= margin &&\n    more {\n"
    old = "\t\tif wide >= margin &&"
    new = "\t\tif scrolled {\n    move()\n} else if wide >= margin &&"
    expected = text.replace("if wide", "if scrolled {\n    move()\n} else if wide")
    assert "already applied" in said_again(text, old, new, expected)


def test_tab_for_spaces_is_applied_where_the_spaces_are():
    """Also if diff markers have to be removed first."""
    text = '# note\nif [ "$1" = "x" ]; then\n\trun\nfi\nend of it\n'
    old = ' # note\n if [ "$1" = "x" ]; then\n-\trun\n fi\n'
    new = '# note\nif [ "$1" = "x" ]; then\n    run\nfi\n'
    assert "already applied" in said_again(text, old, new, text.replace("\t", "    "))


def test_deleted_lines_are_not_deleted_from_a_twin():
    """The new text has a typo and is otherwise present."""
    block = 'tempfile = "3.3"\nclap = "4.0"\natty = "0.2.14"\nclap_complete = "4.2"\n\n[profile.release]\n'
    text = block + "lto = true\n\n" + block.replace("tempfile", "othertempfile")
    old = block.replace("clap_complete", "clap_ocmplete")
    new = old.replace('atty = "0.2.14"\n', "")
    assert "already applied" in said_again(text, old, new, text.replace('atty = "0.2.14"\n', "", 1), start_line=1)


def test_applied_patch_is_found_by_every_interpretation():
    """A similar text, which the old text without its line numbers approximately matches, stays."""
    block = 'c = initialize()\nc.AddCommand(cmdPrint, cmdEcho)\nflagInit()\nc.SetArgs("echo -i13 here")\nc.Execute()\n'
    text = block + "check()\n" + block.replace("c = initialize", "c := initialise").replace("-i13", "-i 13")
    old = "".join(f"{number}|{line}\n" for number, line in enumerate(block.splitlines(), 1))
    new = block.replace("flagInit()\n", "")
    assert "already applied" in said_again(text, old, new, text.replace("flagInit()\n", "", 1))


@pytest.mark.parametrize("first", ["}\n# a note\n", "},\n"])
def test_adjacent_comment_or_comma_does_not_hide_an_applied_patch(first):
    """The comment is in the file but not in the patch; the model left out the comma."""
    old = "}\n{\n  name: second,\n"
    new = "}\n{\n  name: first,\n}\n{\n  name: second,\n"
    with pytest.raises(EditError, match="already applied"):
        patch_text(f"zero\n{first}{new.removeprefix('}').lstrip()}rest\n", {"old_text": old, "new_text": new})


def test_line_hint_at_an_applied_patch_does_not_select_a_twin():
    """The remaining line is part of the old text."""
    block = '},\n{\n  name: "Speakeasy",\n},\n];\n\nreturn (\n<div className="max-w-4xl">\n'
    text = "one\n" + block + "two\n" * 20 + block
    new = '},\n];\n\nreturn (\n<div className="max-w-4xl">\n'
    expected = text.replace('{\n  name: "Speakeasy",\n},\n', "", 1)
    assert "already applied" in said_again(text, block, new, expected, start_line=2)


def test_partial_line_match_is_rejected_if_the_new_text_is_present():
    """Only the model's curly quotes differ."""
    block = 'name = "forge"\nversion = "0.8.2"\nlicense = "MIT"\n'
    text = f"{block}\nother{block}"
    old = 'name = ”forge”\nversion = "0.8.2"\nlicense = ”MIT”\n'
    with pytest.raises(EditError, match="is already present"):
        patch_text(text.replace("0.8.2", "0.8.3", 1), {"old_text": old, "new_text": old.replace("0.8.2", "0.8.3")})


@fixed
@given(st.sampled_from([*KINDS, *ONE_SIDED, twins_loose, twins_hint]), seeds)
def test_repeated_patch_with_an_error_changes_nothing(make, seed):
    """Unless the old text occurs verbatim once more, and the new one does not."""
    case = case_of(make, seed)
    if case.expected is None or applied(case) != case.expected:
        return
    again = replace(case, text=case.expected)
    assert applied(again) in (None, case.expected) or fits_anew(again)
