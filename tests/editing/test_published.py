"""Published facts about the formats of codex, git and aider, applied to our own texts.

The facts come from codex's apply-patch scenarios and command-line tests, from the tests of programs that apply unified
diffs, and from aider's tests of edit blocks and whole files (all read in 2026); the texts are our own. Names of
intended differences give the reason.
"""

import tomllib
from pathlib import Path

import pytest

from adapter import Workspace
from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import find_path
from adapter.editing.notations.registry import parse_notation

PATCHES = tomllib.loads((Path(__file__).parents[2] / "fixtures" / "published_patches.toml").read_text(encoding="utf-8"))


def list_cases(group):
    return [(tool, name) for tool in ("codex", "git") for name in PATCHES[group + tool]]


def outcome(folder, case, tool):
    """Return the files after the patch, and its result."""
    for name, text in case["before"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    with Workspace(folder, approve="yolo") as workspace:
        patch = f"*** Begin Patch\n{case['patch']}*** End Patch\n" if tool == "codex" else case["patch"]
        result = workspace.run("apply_patch", {"patches": patch})
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in files}, result


@pytest.mark.parametrize(("tool", "name"), list_cases("same_as_"))
def test_result_equals_the_published_one(tmp_path, tool, name):
    case = PATCHES[f"same_as_{tool}"][name]
    files, result = outcome(tmp_path, case, tool)
    assert result.ok, result.content
    assert files == case["after"]


@pytest.mark.parametrize(("tool", "name"), list_cases("refused_as_by_"))
def test_patches_rejected_elsewhere_are_rejected(tmp_path, tool, name):
    case = PATCHES[f"refused_as_by_{tool}"][name]
    files, result = outcome(tmp_path, case, tool)
    assert not result.ok
    assert case["error"] in result.content
    assert files == case["before"]


@pytest.mark.parametrize(("tool", "name"), list_cases("different_from_"))
def test_intended_differences(tmp_path, tool, name):
    """The name gives the reason."""
    case = PATCHES[f"different_from_{tool}"][name]
    assert outcome(tmp_path, case, tool)[0] == case["after"]


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
def test_file_names_are_found_where_aider_finds_them(above, below):
    """In the fence, above it, in a fence of its own, in a heading."""
    (edit,) = parse_notation(above + BLOCK + below)
    assert (edit.path, edit.patches[0].old_text, edit.patches[0].new_text) == ("list.txt", "zwei\n", "ZWEI\n")


def test_later_blocks_of_aider_belong_to_the_same_file():
    """With dots or words between; the last one needs no line end."""
    second = BLOCK.replace("zwei", "drei")
    (edit,) = parse_notation(f"list.txt\n{BLOCK}\n...\n\n{second.strip()}")
    assert [patch.old_text for patch in edit.patches] == ["zwei\n", "drei\n"]


def test_new_file_of_aider_is_created(tmp_path):
    """An empty SEARCH below a path, next to a change of another file."""
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
def test_unclosed_block_of_aider_is_rejected(text):
    """It may have been cut off."""
    with pytest.raises(FormatError, match="has no >>>>>>> REPLACE line"):
        parse_notation(text)


def test_file_name_in_a_tag_is_ignored():
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
def test_missing_indentation_of_aider_is_restored(tmp_path, text, old, new, after):
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
def test_whole_file_of_aider_is_written(tmp_path, answer):
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
def test_ambiguous_whole_files_of_aider_are_rejected(tmp_path, answer):
    """The file stays as it is."""
    (tmp_path / "list.txt").write_text(WHOLE)
    with Workspace(tmp_path, approve="yolo") as workspace:
        workspace.run("apply_patch", {"patches": answer})
    assert (tmp_path / "list.txt").read_text() == WHOLE
