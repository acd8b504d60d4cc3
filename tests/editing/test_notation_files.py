"""The files of an edit, and the action for each."""

import re

import pytest

from adapter import Workspace
from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import find_path
from adapter.editing.notations.parse_edits import parse_edits, parse_file_edits
from adapter.editing.notations.registry import is_known_notation, parse_notation
from adapter.tools.operations import FileEdit, Hunk, WholeFileRewrite

BLOCK = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("src/a.py", "src/a.py"),
        ("`src/a.py`", "src/a.py"),
        ("**src/a.py**", "src/a.py"),
        ("### src/a.py", "src/a.py"),
        ("### `src/a.py`:", "src/a.py"),
        ("### File: docs/my notes.md", "docs/my notes.md"),
        ("File: `my notes.md`", "my notes.md"),
        ("Filename: hosts", "hosts"),
        ("path: a b/c", "a b/c"),
        ("docs/my notes.md", "docs/my notes.md"),
        ("`my notes.md`", "my notes.md"),
        ("Makefile", "Makefile"),
        ("Makefile:", "Makefile"),
        ("hosts", "hosts"),
        ("**Dockerfile**", "Dockerfile"),
        (".gitignore", ".gitignore"),
        ("1. src/a.py", "src/a.py"),
        ("# a.py", "a.py"),
        ("Now change `src/a.py` as well:", "src/a.py"),
        ("Update settings.ini:", "settings.ini"),
        ("Copy a.py to b.py:", None),
        ("Then:", None),
        ("Done.", None),
        ("and", None),
        ("Here is the second change.", None),
        ("See https://example.org/a.py:", None),
        ("", None),
        ("...", None),
        ("3.5", None),
    ],
)
def test_find_path_returns_a_path_or_none(line, path):
    """Alone, marked up, labeled, or as the only name of a sentence."""
    assert find_path(line) == path


def test_a_block_below_a_bare_name_is_of_that_file():
    """A name without a dot or slash is also a path."""
    text = "a.py\n" + BLOCK.format("one", "1") + "\nMakefile\n```make\n" + BLOCK.format("two", "2") + "```\nhosts\n"
    text += BLOCK.format("three", "3") + "\nThen:\n" + BLOCK.format("four", "4")
    read = [(edit.path, [patch.old_text for patch in edit.patches]) for edit in parse_notation(text)]
    assert read == [("a.py", ["one\n"]), ("Makefile", ["two\n"]), ("hosts", ["three\n", "four\n"])]


def test_name_in_a_fence_or_next_to_the_marker_is_found():
    """Some models put it there."""
    assert parse_notation("```\nfoo.txt\n```\n```python\n" + BLOCK.format("a", "b") + "```")[0].path == "foo.txt"
    assert parse_notation("```python\nfoo.txt\n" + BLOCK.format("a", "b") + "```")[0].path == "foo.txt"
    assert parse_notation(BLOCK.format("a", "b").replace("SEARCH", "SEARCH src/b.py"))[0].path == "src/b.py"


def test_heading_above_a_sentence_names_the_file():
    """Other lines above the sentence do not: they may list several files."""
    edits = parse_notation("### `src/a.py`\n\nThe loop changes:\n\n```python\n" + BLOCK.format("a", "b") + "```\n")
    assert [edit.path for edit in edits] == ["src/a.py"]
    for above in ("- src/a.py\n- src/b.py", "## Changes", "### Step 2"):
        edits = parse_notation(f"{above}\n\nThe loop changes:\n\n```python\n" + BLOCK.format("a", "b") + "```\n")
        assert [edit.path for edit in edits] == [None]


def test_block_does_not_use_the_name_inside_the_previous_one():
    """The text written by another block is not a name."""
    text = "a.py\n" + BLOCK.format("x", "b.py") + BLOCK.format("y", "z")
    assert [edit.path for edit in parse_notation(text)] == ["a.py"]


def test_new_file_has_the_written_lines():
    """Also when no line has the plus; when some have, it is not guessed which are meant."""
    head, foot = "*** Begin Patch\n*** Add File: n.md\n", "*** End Patch\n"
    assert parse_notation(head + "# Title\n\nText\n" + foot)[0].content == "# Title\n\nText\n"
    assert parse_notation(head + "+# Title\n\n+Text\n" + foot)[0].content == "# Title\n\nText\n"
    assert parse_notation(head + "+a\n\\ No newline at end of file\n" + foot)[0].content == "a"
    assert parse_notation(head + foot)[0].content == ""
    with pytest.raises(FormatError, match=r"'Text' in the new file n.md has no leading \+"):
        parse_notation(head + "+# Title\nText\n" + foot)


def test_a_new_file_of_a_diff_may_end_without_a_line_end():
    """The marker at its end requests it."""
    text = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
    assert parse_notation(text)[0].content == "a\nb"


def test_git_renames_files():
    """With and without a change, and with names that need quotes."""
    text = (
        "diff --git a/old.py b/new.py\nsimilarity index 90%\nrename from old.py\nrename to new.py\n"
        "index 1a..2b 100644\n--- a/old.py\n+++ b/new.py\n@@ -1 +1 @@\n-a\n+b\n"
        'diff --git "a/\\303\\251 1.txt" "b/\\303\\251 2.txt"\nsimilarity index 100%\n'
        'rename from "\\303\\251 1.txt"\nrename to "\\303\\251 2.txt"\n'
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\nindex e69de29..0000000\n"
        "diff --git a/empty.py b/empty.py\nnew file mode 100644\nindex 0000000..e69de29\n"
    )
    moved, renamed, gone, empty = parse_notation(text)
    assert (moved.path, moved.moved_to, moved.patches) == ("old.py", "new.py", [Hunk("a\n", "b\n", 1)])
    assert (renamed.path, renamed.moved_to, renamed.patches) == ("\u00e9 1.txt", "\u00e9 2.txt", [])
    assert (gone.path, gone.action) == ("gone.py", "delete")
    assert (empty.path, empty.action, empty.content) == ("empty.py", "add", "")


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("a/x.py", "b/x.py", "x.py"),
        ("a/x.py", "a/x.py", "a/x.py"),
        ("x.py", "x.py", "x.py"),
        ("a/x.py", "x.py", "x.py"),
        ("i/x.py", "w/x.py", "x.py"),
        ("a/my x.py\t2024-01-01 00:00:00", "b/my x.py\t2024-01-01 00:00:00", "my x.py"),
        ("x.py 2024-01-01 00:00:00.0 +0000", "x.py 2024-01-01 00:00:01.0 +0000", "x.py"),
    ],
)
def test_a_header_names_its_file(before, after, path):
    """Prefixes are git's only where both names have one; a folder may be called a."""
    assert parse_notation(f"--- {before}\n+++ {after}\n@@ -1 +1 @@\n-a\n+b\n")[0].path == path


def test_json_may_edit_several_files():
    """Each edit with its path, under customary names."""
    text = '[{"file": "a", "old_string": "1", "new_string": "2"}, {"path": "b", "search": "3", "replace": "4"}]'
    assert [edit.path for edit in parse_file_edits(text)] == ["a", "b"]
    text = (
        '{"files": [{"path": "a", "edits": [{"old_text": "1", "new_text": "2"}, {"old_text": "5", "new_text": "6"}]}]}'
    )
    assert [len(edit.patches) for edit in parse_file_edits(text)] == [2]


def test_json_that_is_a_file_is_not_an_edit():
    """A fence of JSON below a path is that file, unless it speaks of old and new text."""
    (edit,) = parse_edits('package.json\n```json\n{\n  "name": "x"\n}\n```\n')
    assert (edit.path, edit.patches) == ("package.json", [WholeFileRewrite("", '{\n  "name": "x"\n}\n')])


@pytest.mark.parametrize(
    "text",
    [
        "Run it:\n```sh\npython a.py\n```\n",
        "Usage\n```\nx\n```\n",
        "rename from a to b\nrename to c\n",
        "@@ x\nno change\n",
    ],
)
def test_displayed_code_is_not_an_edit(text):
    """A command in a fence, a sentence about renaming."""
    assert not is_known_notation(text)


def test_several_files_are_changed_created_and_moved_at_once(tmp_path):
    """One call: a block under a bare name, a block without old text, a rename."""
    (tmp_path / "Makefile").write_text("all:\n\techo 1\n")
    (tmp_path / "a.py").write_text("a = 1\n")
    blocks = "a.py\n" + BLOCK.format("a = 1", "a = 2") + "Makefile\n" + BLOCK.format("\techo 1", "\techo 2")
    blocks += "new/b.py\n<<<<<<< SEARCH\n=======\nb = 1\n>>>>>>> REPLACE\n"
    rename = "diff --git a/a.py b/c.py\nsimilarity index 100%\nrename from a.py\nrename to c.py\n"
    with Workspace(tmp_path, approve="yolo") as workspace:
        done = workspace.run("apply_patch", {"patches": blocks})
        assert done.ok, done.content
        assert "added new/b.py" in done.content
        assert (tmp_path / "Makefile").read_text() == "all:\n\techo 2\n"
        assert (tmp_path / "new" / "b.py").read_text() == "b = 1\n"
        moved = workspace.run("apply_patch", {"patches": rename})
        assert moved.ok, moved.content
        assert (tmp_path / "c.py").read_text() == "a = 2\n"
        assert not (tmp_path / "a.py").exists()
        again = workspace.run("apply_patch", {"patches": blocks[blocks.index("new/b.py") :]})
    assert "the file is not empty" in again.content


def test_a_whole_file_may_be_a_new_one(tmp_path):
    """Below its path; an omission comment needs existing lines."""
    with Workspace(tmp_path, approve="yolo") as workspace:
        assert workspace.run("apply_patch", {"patches": "a.py\n```python\na = 1\n```\n"}).ok
        refused = workspace.run("apply_patch", {"patches": "b.py\n```python\n# ... existing code ...\nb = 1\n```\n"})
    assert (tmp_path / "a.py").read_text() == "a = 1\n"
    assert "replaces unchanged lines" in refused.content


def test_wrapping_is_removed_from_a_file_that_a_patch_adds(tmp_path):
    """As from a file that is written."""
    numbered = "".join(f"+{line}\n" for line in ("```python", "1: import os", "2: print(os)", "```"))
    with Workspace(tmp_path, approve="yolo") as workspace:
        patch = f"*** Begin Patch\n*** Add File: a.py\n{numbered}*** End Patch\n"
        done = workspace.run("apply_patch", {"patches": patch})
    assert "line numbers were removed" in done.content
    assert (tmp_path / "a.py").read_text() == "import os\nprint(os)\n"


def test_patch_keeps_the_fields_of_its_format(tmp_path):
    """End-of-file and ``@@`` lines also work in a call with a path."""
    (tmp_path / "f").write_text("class A:\n    x = 1\nclass B:\n    x = 1\n")
    patch = "*** Begin Patch\n*** Update File: f\n@@ class B:\n-    x = 1\n+    x = 2\n@@\n+end = 1\n*** End Patch\n"
    with Workspace(tmp_path, approve="yolo") as workspace:
        done = workspace.run("apply_patch", {"path": "f", "patches": patch})
    assert done.ok, done.content
    assert (tmp_path / "f").read_text() == "class A:\n    x = 1\nclass B:\n    x = 2\nend = 1\n"


def test_file_edits_name_their_files():
    """An edit of no file is refused where there may be several."""
    with pytest.raises(FormatError, match="has no path"):
        parse_file_edits(BLOCK.format("a", "b"))
    assert parse_file_edits("f.py\n" + BLOCK.format("a", "b")) == (FileEdit("f.py", patches=(Hunk("a\n", "b\n"),)),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested more than 64 levels deep"),
        ("[" * 50 + '{"old_text": "a", "new_text": "b", "x": 1}' + "]" * 50, "unknown key 'x'"),
        ("<<<<<<< SEARCH\n" + "=======\n" * 1_000 + ">>>>>>> REPLACE\n", "too many ======= lines"),
        (
            "*** Begin Patch\n*** Update File: f\n" + "@@ a\n" * 1_000 + "-x\n*** End Patch\n",
            "write only the innermost",
        ),
        ("```x\n" * 5_000, "expected a unified diff"),
    ],
)
def test_adversarial_texts_are_bounded(text, said):
    """Work is bounded by refusing, never by leaving something out."""
    with pytest.raises(FormatError, match=re.escape(said)):
        parse_edits(text)
