"""``adapter edit FILE --patches P``."""

import json

import pytest
from typer.testing import CliRunner

from adapter.cli.app import make_app
from adapter.core.errors import EditError, ToolError, UsageError
from adapter.workspace import Workspace

PATCHES = json.dumps([{"old_text": "two", "new_text": "2"}])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"one\r\ntwo\r\n")
    return path


def edit(file, patches, *options):
    (file.parent / "p.json").write_text(patches)
    result = CliRunner().invoke(make_app(), ["edit", str(file), "--patches", str(file.parent / "p.json"), *options])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.mark.parametrize(
    "patches",
    [PATCHES, '{"patches": ' + PATCHES + "}", PATCHES[1:-1], "@@\n one\n-two\n+2\n"],
    ids=["list", "object", "one patch", "diff"],
)
def test_edit_applies_patches_and_prints_the_diff(file, patches):
    """In every notation; line endings are preserved."""
    assert "+2" in edit(file, patches)
    assert file.read_bytes() == b"one\r\n2\r\n"


def test_edit_dry_run_writes_nothing(file):
    """The same diff, the same file."""
    assert "+2" in edit(file, PATCHES, "--dry-run")
    assert file.read_bytes() == b"one\r\ntwo\r\n"


def test_edit_json_describes_the_change(file):
    row = json.loads(edit(file, PATCHES, "--json"))
    assert row["written"] is True
    assert row["notes"] == []
    assert "+2" in row["diff"]


def test_patches_that_undo_each_other_are_an_error(file):
    patches = json.dumps([{"old_text": "two", "new_text": "2"}, {"old_text": "2", "new_text": "two"}])
    with pytest.raises(EditError, match="the patches undo each other"):
        edit(file, patches, "--json", "--sequence")
    assert json.loads(edit(file, PATCHES, "--json", "--dry-run"))["written"] is False


def test_edit_sequence_matches_earlier_patches(file):
    patches = json.dumps([{"old_text": "two", "new_text": "three"}, {"old_text": "three", "new_text": "four"}])
    with pytest.raises(EditError):
        edit(file, patches)
    edit(file, patches, "--sequence")
    assert file.read_bytes() == b"one\r\nfour\r\n"


@pytest.mark.parametrize("patches", ["nonsense", "[]", '[{"old": "a"}]', "3"])
def test_invalid_patches_are_wrong_use(file, patches):
    """Exit code 2, with the reason."""
    with pytest.raises(UsageError, match="cannot read patches"):
        edit(file, patches)


def test_failing_patches_change_nothing(file):
    """Exit code 1, with the closest lines."""
    with pytest.raises(EditError, match="was not found"):
        edit(file, json.dumps([{"old_text": "two and more", "new_text": "x"}]))
    assert file.read_bytes() == b"one\r\ntwo\r\n"


def test_edit_reports_a_missing_file(file):
    """With the message of the path resolver."""
    file.unlink()
    with pytest.raises(ToolError, match=r"x\.txt"):
        edit(file, PATCHES)


ENVELOPE = """*** Begin Patch
*** Update File: x.txt
@@
-two
+2
*** Add File: sub/y.txt
+new
*** Delete File: z.txt
*** End Patch
"""


def test_edit_applies_patches_to_several_files(file):
    (file.parent / "z.txt").write_text("z\n")
    (file.parent / "p.txt").write_text(ENVELOPE)
    command = ["edit", str(file.parent), "--patches", str(file.parent / "p.txt")]
    dry = CliRunner().invoke(make_app(), [*command, "--dry-run"])
    assert file.read_bytes() == b"one\r\ntwo\r\n"
    done = CliRunner().invoke(make_app(), command)
    assert done.exit_code == dry.exit_code == 0
    assert done.stdout == dry.stdout != ""
    assert file.read_bytes() == b"one\r\n2\r\n"
    assert (file.parent / "sub" / "y.txt").read_text() == "new\n"
    assert not (file.parent / "z.txt").exists()
    listed = CliRunner().invoke(make_app(), ["undo", str(file.parent), "--list"])
    assert "updated x.txt, added sub/y.txt, deleted z.txt" in listed.stdout
    undone = CliRunner().invoke(make_app(), ["undo", str(file.parent)])
    assert "+two" in undone.stdout
    assert file.read_bytes() == b"one\r\ntwo\r\n"
    assert sorted(path.name for path in file.parent.iterdir()) == ["p.txt", "x.txt", "z.txt"]
    assert isinstance(CliRunner().invoke(make_app(), ["undo", str(file.parent)]).exception, ToolError)


def test_undo_takes_the_folder_as_an_option_like_other_commands(file):
    edit(file, PATCHES)
    assert CliRunner().invoke(make_app(), ["undo", "-w", str(file.parent)]).exit_code == 0
    assert file.read_bytes() == b"one\r\ntwo\r\n"
    twice = CliRunner().invoke(make_app(), ["undo", str(file.parent), "-w", str(file.parent)])
    assert isinstance(twice.exception, UsageError)


def test_undo_all_undoes_only_the_last_run(file):
    edit(file, PATCHES)
    with Workspace(file.parent, approve="yolo") as workspace:
        workspace.run("write_file", {"path": "y", "content": "y"})
        workspace.run("write_file", {"path": "z", "content": "z"})
    assert CliRunner().invoke(make_app(), ["undo", str(file.parent), "--all"]).exit_code == 0
    assert sorted(path.name for path in file.parent.iterdir()) == ["p.json", "x.txt"]
    assert file.read_bytes() == b"one\r\n2\r\n"


def test_edits_in_a_folder_must_name_their_files(file):
    (file.parent / "p.txt").write_text("@@\n one\n-two\n+2\n")
    result = CliRunner().invoke(make_app(), ["edit", str(file.parent), "--patches", str(file.parent / "p.txt")])
    assert isinstance(result.exception, UsageError)
    assert "has no path" in str(result.exception)
