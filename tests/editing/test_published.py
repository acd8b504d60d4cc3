"""What codex and aider publish about their notations, asked of texts of our own.

The facts are those of codex's apply-patch scenarios and command-line tests and of aider's tests of edit blocks and
whole files (both read in 2026); the texts are not theirs. Where we do otherwise on purpose, the case says why.
"""

import pytest

from adapter import Workspace
from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import find_path
from adapter.editing.notations.registry import parse_notation

TRUE_TO_CODEX = {
    "add": ({}, "*** Add File: notes.md\n+one\n+two\n", {"notes.md": "one\ntwo\n"}),
    "add-with-parents": ({}, "*** Add File: a/b/c.md\n+one\n", {"a/b/c.md": "one\n"}),
    "several-operations": (
        {"keep": "1\n2\n", "gone": "x\n"},
        "*** Add File: n/new\n+made\n*** Delete File: gone\n*** Update File: keep\n@@\n-2\n+two\n",
        {"keep": "1\ntwo\n", "n/new": "made\n"},
    ),
    "two-chunks": (
        {"f": "red\ngreen\nblue\ngrey\n"},
        "*** Update File: f\n@@\n-green\n+GREEN\n@@\n-grey\n+GREY\n",
        {"f": "red\nGREEN\nblue\nGREY\n"},
    ),
    "interleaved-chunks": (
        {"f": "p\nq\nr\ns\nt\nu\n"},
        "*** Update File: f\n@@\n p\n-q\n+Q\n@@\n r\n s\n-t\n+T\n@@\n u\n+v\n*** End of File\n",
        {"f": "p\nQ\nr\ns\nT\nu\nv\n"},
    ),
    "move": (
        {"old/n": "was\n", "old/other": "o\n"},
        "*** Update File: old/n\n*** Move to: new/deep/n\n@@\n-was\n+is\n",
        {"new/deep/n": "is\n", "old/other": "o\n"},
    ),
    "move-alone": ({"a": "1\n"}, "*** Update File: a\n*** Move to: b\n", {"b": "1\n"}),
    "delete": ({"a": "1\n", "b": "2\n"}, "*** Delete File: a\n", {"b": "2\n"}),
    "deletion-only": ({"f": "1\n2\n3\n"}, "*** Update File: f\n@@\n 1\n-2\n 3\n", {"f": "1\n3\n"}),
    "pure-addition": ({"f": "1\n2\n"}, "*** Update File: f\n@@\n+3\n+4\n", {"f": "1\n2\n3\n4\n"}),
    "end-of-file-marker": (
        {"f": "1\n2\n"},
        "*** Update File: f\n@@\n 1\n-2\n+zwei\n*** End of File\n",
        {"f": "1\nzwei\n"},
    ),
    "padded-headers": ({"f": "old\n"}, "  *** Update File: f  \n@@\n-old\n+new\n", {"f": "new\n"}),
    "unicode": (
        {"f": "eins\n\u00e9t\u00e9\n"},
        "*** Update File: f\n@@\n eins\n-\u00e9t\u00e9\n+\u00e9t\u00e9 \u2600\n",
        {"f": "eins\n\u00e9t\u00e9 \u2600\n"},
    ),
    "dashes-and-spaces": ({"f": "x \u2013 y\u00a0z\n"}, "*** Update File: f\n@@\n-x - y z\n+done\n", {"f": "done\n"}),
    "no-first-at": ({"f": "1\n2\n"}, "*** Update File: f\n-2\n+zwei\n", {"f": "1\nzwei\n"}),
    "crlf": (
        {"f": "1\r\n2\r\n3\r\n"},
        "*** Update File: f\n@@\n-1\n+uno\n@@\n 2\n+\n+between\n 3\n",
        {"f": "uno\r\n2\r\n\r\nbetween\r\n3\r\n"},
    ),
    "mixed-line-ends": (
        {"f": "1\r\n2\n3\r\n4\n"},
        "*** Update File: f\n@@\n 1\n 2\n-3\n+drei\n 4\n",
        {"f": "1\r\n2\ndrei\r\n4\n"},
    ),
    "repeated-lines-in-order": ({"f": "a\nb\n"}, "*** Update File: f\n@@\n-a\n-b\n+b\n+b\n+a\n", {"f": "b\nb\na\n"}),
    "named-line": (
        {"f": "def a():\n    pass\n\ndef b():\n    pass\n"},
        "*** Update File: f\n@@ def b():\n-    pass\n+    return 1\n",
        {"f": "def a():\n    pass\n\ndef b():\n    return 1\n"},
    ),
}
REFUSED_AS_BY_CODEX = {
    "empty": ({"f": "1\n"}, "", "names nothing to change"),
    "missing-context": ({"f": "1\n2\n"}, "*** Update File: f\n@@\n-other words\n+x\n", "was not found"),
    "delete-what-is-not-there": ({"f": "1\n"}, "*** Delete File: g\n", "does not exist"),
    "update-of-nothing": ({"f": "1\n"}, "*** Update File: f\n", "nothing is asked of f"),
    "update-what-is-not-there": ({"f": "1\n"}, "*** Update File: g\n@@\n-1\n+2\n", "does not exist"),
    "unknown-header": ({"f": "1\n"}, "*** Frob File: f\n", "is no marker"),
    "delete-a-directory": ({"d/f": "1\n"}, "*** Delete File: d\n", "is a directory"),
}
OTHERWISE = {
    "add-over-a-file: nothing is overwritten unasked": ({"f": "1\n"}, "*** Add File: f\n+2\n", {"f": "1\n"}),
    "move-over-a-file: nothing is overwritten unasked": (
        {"a": "1\n", "b": "2\n"},
        "*** Update File: a\n*** Move to: b\n@@\n-1\n+3\n",
        {"a": "1\n", "b": "2\n"},
    ),
    "half-done: nothing is written when one part fails": (
        {},
        "*** Add File: n\n+1\n*** Update File: m\n@@\n-1\n+2\n",
        {},
    ),
    "final-line-end: a file without one stays so": (
        {"f": "open"},
        "*** Update File: f\n@@\n-open\n+1\n+2\n",
        {"f": "1\n2"},
    ),
    "final-line-end-of-crlf: the same": ({"f": "1\r\n2"}, "*** Update File: f\n@@\n-1\n+eins\n", {"f": "eins\r\n2"}),
    "removed-of-two-equal-lines: which one it is shows only where their line ends differ, and is not read": (
        {"f": "x\r\nx\n"},
        "*** Update File: f\n@@\n-x\n x\n",
        {"f": "x\r\n"},
    ),
}


def outcome(folder, before, body):
    """The files after the envelope, and its result."""
    for name, text in before.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    with Workspace(folder, approve="yolo") as workspace:
        result = workspace.run("apply_patch", {"patches": f"*** Begin Patch\n{body}*** End Patch\n"})
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in files}, result


@pytest.mark.parametrize("name", TRUE_TO_CODEX)
def test_what_codex_does_is_done(tmp_path, name):
    """The same files as there."""
    before, body, after = TRUE_TO_CODEX[name]
    files, result = outcome(tmp_path, before, body)
    assert result.ok, result.content
    assert files == after


@pytest.mark.parametrize("name", REFUSED_AS_BY_CODEX)
def test_what_codex_refuses_is_refused(tmp_path, name):
    """And nothing is changed."""
    before, body, said = REFUSED_AS_BY_CODEX[name]
    files, result = outcome(tmp_path, before, body)
    assert not result.ok
    assert said in result.content
    assert files == before


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_done_otherwise_on_purpose(tmp_path, name):
    """The name says why."""
    before, body, after = OTHERWISE[name]
    assert outcome(tmp_path, before, body)[0] == after


# ---------------------------------------------------------------------------- aider

BLOCK = "<<<<<<< SEARCH\nzwei\n=======\nZWEI\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Here:\n\n```text\nlist.txt\n", "```\nThat is it.\n"),
        ("Here:\n\nlist.txt\n```text\n", "```\n"),
        ("list.txt\n", ""),
        ("Here:\n\n ```python\nlist.txt\n```\n```python\n", "```\n"),
        ("# list.txt\n```\n", "```\n"),
        ("**list.txt**\n```\n", "```\n"),
        ("`list.txt`:\n", ""),
    ],
)
def test_aiders_places_for_the_name_are_known(above, below):
    """In the fence, above it, in a fence of its own, in a heading."""
    (edit,) = parse_notation(above + BLOCK + below)
    assert (edit.path, edit.patches[0].old_text, edit.patches[0].new_text) == ("list.txt", "zwei\n", "ZWEI\n")


def test_aiders_later_blocks_are_of_the_same_file():
    """With dots or words between; the last one needs no line end."""
    second = BLOCK.replace("zwei", "drei")
    (edit,) = parse_notation(f"list.txt\n{BLOCK}\n...\n\n{second.strip()}")
    assert [patch.old_text for patch in edit.patches] == ["zwei\n", "drei\n"]


def test_aiders_new_file_is_made(tmp_path):
    """An empty SEARCH below a path, beside a change of another file."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_text("zwei\n")
    text = f"a/two.txt\n```\n<<<<<<< SEARCH\n=======\nneu\n>>>>>>> REPLACE\n```\n\nand\n\na/one.txt\n```\n{BLOCK}```\n"
    with Workspace(tmp_path, approve="yolo") as workspace:
        assert workspace.run("apply_patch", {"patches": text}).ok
    assert (tmp_path / "a" / "two.txt").read_text() == "neu\n"
    assert (tmp_path / "a" / "one.txt").read_text() == "ZWEI\n"


@pytest.mark.parametrize(
    "text", ["list.txt\n<<<<<<< SEARCH\nzwei\n=======\nZWEI\n\n\noops!\n", "```\n<<<<<<< SEARCH\na\n=======\nb\n```\n"]
)
def test_aiders_unclosed_block_is_refused(text):
    """It may have been cut off."""
    with pytest.raises(FormatError, match="has no >>>>>>> REPLACE line"):
        parse_notation(text)


def test_aiders_name_in_a_tag_is_none():
    """Markup of another kind is not guessed at."""
    assert find_path("<source>list.txt") is None


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        (
            "\n    a1\n    b2\n        c3\n    d4\n",
            "b2\n    c3\n",
            "n2\n    n3\n",
            "\n    a1\n    n2\n        n3\n    d4\n",
        ),
        ("    a1\n    b2\n    c3\n", "a1\nb2\n", "n1\nn2\n", "    n1\n    n2\n    c3\n"),
        ("    a1\n    b2\n    c3\n", " a1\n b2\n", " n1\n     n2\n", "    n1\n        n2\n    c3\n"),
        ("    a1\n    b2\n    c3\n", "\n  a1\n  b2\n", "  n1\n  n2\n", "    n1\n    n2\n    c3\n"),
    ],
)
def test_aiders_missing_indentation_is_put_back(tmp_path, text, old, new, after):
    """Uniform, varied, in part, and with a blank line before."""
    (tmp_path / "f").write_text(text)
    block = f"f\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    with Workspace(tmp_path, approve="yolo") as workspace:
        result = workspace.run("apply_patch", {"patches": block})
    assert result.ok, result.content
    assert (tmp_path / "f").read_text() == after


WHOLE = "eins\nzwei\ndrei\n"


@pytest.mark.parametrize(
    "answer", ["Do this:\n\nlist.txt\n```\nneu\nzwei\ndrei\n```\n\n", "### list.txt\n```\nneu\nzwei\ndrei\n```\n"]
)
def test_aiders_whole_file_is_written(tmp_path, answer):
    """Below its name, in words or a heading."""
    (tmp_path / "list.txt").write_text(WHOLE)
    with Workspace(tmp_path, approve="yolo") as workspace:
        assert workspace.run("apply_patch", {"patches": answer}).ok
    assert (tmp_path / "list.txt").read_text() == "neu\nzwei\ndrei\n"


@pytest.mark.parametrize(
    "answer",
    [
        "list.txt\n```\nganz anders\n```\n",  # it may be a piece; the tool for new contents is another
        "other/list.txt\n```\n" + WHOLE.replace("eins", "neu") + "```\n",  # a file that is not there is not the nearest
        "Run:\n```\npython list.txt\n```\n",
    ],
)
def test_what_of_aiders_whole_files_is_not_guessed(tmp_path, answer):
    """The file stays as it is."""
    (tmp_path / "list.txt").write_text(WHOLE)
    with Workspace(tmp_path, approve="yolo") as workspace:
        workspace.run("apply_patch", {"patches": answer})
    assert (tmp_path / "list.txt").read_text() == WHOLE
