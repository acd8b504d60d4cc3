"""Edits in other notations become the same patches."""

import pytest

from adapter import Workspace, patch_text
from adapter.core.errors import FormatError
from adapter.editing.notations.parse_edits import parse_patches
from adapter.editing.notations.registry import is_known_notation, parse_notation
from adapter.tools.operations import Hunk, Patch
from tests.processor_time import processor_limit

DIFF = """diff --git a/x.py b/x.py
index 12ab..34cd 100644
--- a/x.py
+++ b/x.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
@@ -9 +9,2 @@ def f():
 nine
+ten
"""
ENVELOPE = """*** Begin Patch
*** Update File: x.py
*** Move to: y.py
@@ def f():
 one
-two
+2
*** Add File: new.py
+hello
+there
*** Delete File: old.py
*** End Patch
"""
BLOCKS = """Here it is.

x.py
```python
<<<<<<< SEARCH
one
=======
1
>>>>>>> REPLACE
```

<<<<<<< SEARCH
two
=======
>>>>>>> REPLACE
"""


def test_a_diff_gives_a_patch_for_each_hunk():
    """Kept and removed lines are the old text, the hunk's first line is the hint."""
    assert parse_patches(DIFF) == (
        Hunk("one\ntwo\nthree\n", "one\n2\nthree\n", 1),
        Hunk("nine\n", "nine\nten\n", 9, below=("def f():",)),
    )


def test_a_diff_may_add_and_delete_files():
    """``/dev/null`` on one side marks them."""
    text = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+a\n+b\n--- a/o.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    added, deleted = parse_notation(text)
    assert (added.path, added.action, added.content) == ("n.py", "add", "a\nb\n")
    assert (deleted.path, deleted.action, deleted.patches) == ("o.py", "delete", [])


def test_a_diff_without_headers_or_numbers_is_read():
    """Models omit the numbers."""
    assert parse_patches("@@\n one\n-two\n+2\n") == (Hunk("one\ntwo\n", "one\n2\n"),)


def test_a_text_of_only_one_hunk_needs_no_header():
    assert parse_patches("\n one\n-two\n+2\n three\n") == (Hunk("one\ntwo\nthree\n", "one\n2\nthree\n"),)


@pytest.mark.parametrize("text", ["--- OLD\n two\n+++ NEW\n 2", "Do this:\n-two\n+2", "- one\n- two", "+ one\n two"])
def test_other_lines_with_diff_markers_are_no_hunk(text):
    assert not is_known_notation(text)


REPAIRED = {
    "trailing comma": '{"old_text": "two", "new_text": "2",}',
    "Python": "[{'old_text': 'two', 'new_text': '2', 'replace_all': False}]",
    "names without quotes": '{old_text: "two", new_text: "2"}',
    "line feed in a string": '{"old_text": "one\ntwo", "new_text": "one\n2"}',
}


@pytest.mark.parametrize("text", REPAIRED.values(), ids=REPAIRED)
def test_json_with_certain_repairs_is_read(text):
    assert patch_text("one\ntwo\n", text).text == "one\n2\n"


@pytest.mark.parametrize(
    "text", ['{"old_text": "a "b" c", "new_text": "d"}', '{"old_text": "a", "new_text": "\\d"}', "{}}"]
)
def test_json_with_uncertain_repairs_is_rejected(text):
    with pytest.raises(FormatError):
        parse_patches(text)


def test_no_newline_markers_and_fences_are_not_lines():
    """They belong to the notation."""
    text = "```diff\n@@ -1 +1 @@\n-two\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n```\n"
    assert parse_patches(text) == (Hunk("two\n", "2\n", 1, at_end=True),)


def test_envelope_has_an_action_for_each_file():
    """Update, move, add and delete."""
    updated, added, deleted = parse_notation(ENVELOPE)
    assert (updated.path, updated.moved_to) == ("x.py", "y.py")
    assert updated.patches == [Hunk("one\ntwo\n", "one\n2\n", below=("def f():",))]
    assert (added.path, added.action, added.content) == ("new.py", "add", "hello\nthere\n")
    assert (deleted.path, deleted.action) == ("old.py", "delete")


def test_lines_added_below_an_anchor_are_placed_by_it():
    """Without context of their own they would have no place."""
    text = "*** Begin Patch\n*** Update File: x\n@@ def f():\n+    log()\n*** End Patch"
    assert parse_patches(text) == (Hunk("", "    log()\n", below=("def f():",)),)


def test_blocks_belong_to_the_path_above():
    """Also with a fence in between, and for further blocks without a path."""
    (edit,) = parse_notation(BLOCKS)
    assert edit.path == "x.py"
    assert edit.patches == [Hunk("one\n", "1\n"), Hunk("two\n", "")]


def test_a_block_may_name_its_line():
    """Roo Code writes the line above the old text."""
    text = "<<<<<<< SEARCH\n:start_line:7\n-------\none\n=======\n1\n>>>>>>> REPLACE"
    assert parse_patches(text) == (Hunk("one\n", "1\n", 7),)


@pytest.mark.parametrize(
    "text", ["", "just words", '[{"old_text": "a", "new_text": "b"}]', "a\n=======\nb\n", "- a\n- b\n"]
)
def test_other_text_is_not_an_edit_format(text):
    """Setext headings and lists look a little like one."""
    assert not is_known_notation(text)
    with pytest.raises(FormatError, match="expected a unified diff"):
        parse_notation(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENVELOPE, "expected edits to one file, got 3 (x.py, new.py, old.py)"),
        ("*** Begin Patch\n*** Delete File: a\n*** End Patch", "got 'delete'"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "has no >>>>>>> REPLACE line"),
    ],
)
def test_edits_of_other_files_and_actions_are_rejected(text, said):
    """A tool for one file must not touch another."""
    with pytest.raises(FormatError) as caught:
        parse_patches(text)
    assert said in str(caught.value)


def test_crlf_notations_are_read():
    """A model on Windows."""
    assert parse_patches(DIFF.replace("\n", "\r\n")) == parse_patches(DIFF)


def test_our_own_diff_applies_again():
    """The diff returned by patch_text is valid input."""
    before = "".join(f"line {number}\n" for number in range(40))
    result = patch_text(before, [Patch("line 7\n", "seven\n"), Patch("line 30\n", "line 30\nand more\n")], "x")
    assert patch_text(before, parse_patches(result.diff)).text == result.text


def test_apply_edit_takes_a_diff(tmp_path):
    """As its patches, or under the names that models give it."""
    path = tmp_path / "x.py"
    path.write_text("one\ntwo\nthree\n")
    diff = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    with Workspace(tmp_path, approve="yolo") as workspace:
        assert workspace.run("apply_patch", {"path": "x.py", "patch": diff}).ok
        assert path.read_text() == "one\n2\nthree\n"
        refused = workspace.run("apply_edit", {"path": "x.py", "patches": ENVELOPE})
    assert "one call for each file" in refused.content


def test_removed_line_that_looks_like_a_header_is_no_header():
    """Although ``@@`` follows, because its hunk is not complete."""
    (edit,) = parse_notation("--- q.sql\n+++ q.sql\n@@ -1 +0,0 @@\n--- foo\n@@ -4 +3 @@\n-b\n+c\n")
    assert (edit.path, [patch.old_text for patch in edit.patches]) == ("q.sql", ["-- foo\n", "b\n"])


@pytest.mark.parametrize(("header", "path"), [("--- a/b/x.py", "b/x.py"), ("+++ b/a/x.py", "a/x.py")])
def test_half_a_header_has_one_prefix(header, path):
    """Without the prefix, the path may begin like one."""
    assert [edit.path for edit in parse_notation(f"{header}\n@@ -1 +1 @@\n-a\n+b\n")] == [path]


def test_only_the_first_line_of_an_envelope_is_indented():
    """Its hunks are not, and keep their indentation."""
    hunk = "@@\n-    b = 2\n+    b = 4\n+    if b:\n+        d = 4\n     if x:\n         c = 3\n"
    file = "def f():\n    b = 2\n    if x:\n        c = 3\n"
    changed = file.replace("b = 2\n", "b = 4\n    if b:\n        d = 4\n")
    assert patch_text(file, f"  *** Begin Patch\n*** Update File: a.py\n{hunk}*** End Patch").text == changed


@pytest.mark.parametrize(
    "patch",
    [
        "--- a" + " " * 20_000 + "x\n+++ b\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a\n+++ a\n@@ -1,900000 +1,900000 @@\n" + "--- a\n+++ a\n" * 20_000,
    ],
    ids=["spaces in a path", "lines like headers"],
)
def test_long_diff_takes_linear_time(patch):
    with processor_limit(2):
        parse_notation(patch)


@pytest.mark.parametrize("info", ["Diff", "diff a.py"])
def test_fence_for_a_diff_is_no_file(info):
    """Although the diff begins with several other lines."""
    text = f"a.py\n```{info}\nIndex: a.py\n===\nCVS\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b\n```\n"
    assert parse_notation(text)[0].patches[0].old_text == "a\n"


def test_long_line_number_is_a_heading():
    """Python converts at most 4300 digits."""
    assert parse_patches("@@ -" + "1" * 5000 + " +1 @@\n-a\n+b\n")[0].old_text == "a\n"
