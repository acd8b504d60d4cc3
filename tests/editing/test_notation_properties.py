"""Edits in every format give the described change or none, never another one."""

import difflib
import json
import re
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter import EditError, patch_text
from adapter.core.text.diffs import render_unified_diff
from adapter.editing.notations.registry import is_known_notation

KINDS = (
    "a = 1|    a = 1|b|=======|<<<<<<< HEAD|>>>>>>> other|-------|- item|+ plus|@@ x|```|class A:|class B:"
    "|    return 1|*** x|\\ n|--- a| "
)
LINES = st.sampled_from(["", *re.findall(r"[^|]+", KINDS)])
TEXTS = st.lists(LINES, max_size=12).map(lambda lines: "".join(line + "\n" for line in lines))
ENDS = st.sampled_from(["\n", "\r\n"])


def becomes(text, patch):
    """The patched text, None for a refusal."""
    try:
        return patch_text(text, patch).text
    except EditError:
        return None


@given(TEXTS, TEXTS, ENDS, st.booleans(), st.booleans())
@example("a = 1\n\n\n\na = 1\n", "\n\n\na = 1\n", "\n", True, True)  # its last line of context is blank
def test_our_own_diff_gives_the_text_it_was_made_for(before, after, end, cut_before, cut_after):
    """With every line end and with or without one at the end of the file."""
    before = before.removesuffix("\n") if cut_before else before
    after = after.removesuffix("\n") if cut_after else after
    diff = render_unified_diff(before, after, "f")
    if is_known_notation(diff) and ("\n" in before or end == "\n"):  # one line has no line end to copy
        got = becomes(before.replace("\n", end), diff)
        assert got in (after.replace("\n", end), None)


@given(TEXTS, TEXTS)
@example("a = 1\n", "\na = 1\n")  # only a blank line, at the edge
def test_diff_with_numbers_and_context_is_never_rejected(before, after):
    """Its numbers are right and its lines are in the file."""
    lines = [
        line for line in (before + after).split("\n") if line[:1] in ("\\", "@") or line.startswith(("--- ", "```"))
    ]
    diff = render_unified_diff(before, after, "f")
    if before and diff and not lines:
        assert becomes(before, diff) == after


@given(TEXTS, TEXTS)
def test_diff_without_context_is_right_or_rejected(before, after):
    """As ``diff -U0`` writes it."""
    diff = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f", "b/f", n=0))
    if is_known_notation(diff):
        assert becomes(before, diff) in (after, None)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_block_is_right_or_rejected(above, old, new, below):
    """Whatever its texts look like."""
    text = above + old + below
    block = f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    if text.count(old) == 1 and ("\n" + text).count("\n" + old) == 1 and old.strip() and "=======\n" not in new:
        assert becomes(text, block) in (above + new + below, None)


@given(TEXTS, TEXTS, ENDS)
def test_whole_file_is_right_or_rejected(before, after, end):
    """Whatever was there."""
    written = f"f.txt\n~~~~\n{after}~~~~\n"
    if "\n" in before and not is_known_notation(after):  # an answer that holds edits is those
        assert becomes(before.replace("\n", end), written) in (after.replace("\n", end), None)


@given(TEXTS, TEXTS, TEXTS)
def test_envelope_is_right_or_rejected(above, old, below):
    """Delete a line of a unique text; the lines above and below it stay."""
    text = above + old + below
    body = "".join(f"-{line}\n" for line in old.split("\n")[:-1])
    envelope = f"*** Begin Patch\n*** Update File: f\n@@\n{body}+new\n*** End Patch\n"
    if old.strip() and ("\n" + text).count("\n" + old) == 1:
        assert becomes(text, envelope) in (above + "new\n" + below, None)


@given(TEXTS)
def test_any_text_as_patches_gives_an_edit_or_a_rejection(text):
    """Nothing else is raised, ."""
    with suppress(EditError):
        patch_text("a = 1\nb\n", text)


@pytest.mark.parametrize(
    "written",
    [
        "<<<<<<< SEARCH\nport = 1\n=======\nport = 2\n>>>>>>> REPLACE",
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-port = 1\n+port = 2\n host = 0\n",
        "*** Begin Patch\n*** Update File: f\n@@\n-port = 1\n+port = 2\n*** End Patch",
        json.dumps({"old_string": "port = 1", "new_string": "port = 2"}),
        json.dumps([{"search": "port = 1", "replace": "port = 2"}]),
        "f.ini\n```\nport = 2\nhost = 0\n```",
        {"old_str": "port = 1", "new_str": "port = 2"},
        [{"old_text": "port = 1", "new_text": "port = 2"}],
    ],
)
def test_patch_text_accepts_every_edit_format(written):
    """As one text, or as values."""
    assert patch_text("port = 1\nhost = 0\n", written).text == "port = 2\nhost = 0\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("make it better", "expected a unified diff"),
        ("", "expected a unified diff"),
        ("{'old_text: 'a'}", "neither valid JSON nor a known edit format"),
        ([], "no patches given"),
        (7, "expected a text, or a list of patches, got '7'"),
        ("*** Begin Patch\n*** Delete File: f\n*** End Patch", "got 'delete'"),
    ],
)
def test_invalid_patches_raise_one_clear_error(written, said):
    """It contains the actual and the expected input."""
    with pytest.raises(EditError) as caught:
        patch_text("port = 1\n", written)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith("Nothing was changed.")
