"""Calls of another dialect's tool are accepted if nothing is lost; otherwise the tool is unknown."""

import pytest

from adapter.conversation.session_steps import RunTools
from adapter.core.events import ToolCall
from adapter.dialects import get_dialect
from adapter.dialects.call_translation import extract_apply_patch, translate_call
from adapter.tools.operations.permissions import PermissionRule
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests.approvals import record_requests


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "sub").mkdir()
    return tmp_path


def answer(directory, dialect, name, arguments, **settings):
    with Workspace(directory, dialect, approve="yolo", **settings) as workspace:
        return workspace.run(name, arguments)


@pytest.mark.parametrize(
    ("dialect", "name", "arguments", "taken"),
    [
        ("blade", "ReplaceText", {"file_path": "a.txt", "oldString": "one", "newString": "1"}, "edit_file"),
        ("blade", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}, "edit_file"),
        ("blade", "MoveFiles", {"source": "a.txt", "destination": "b.txt"}, "move_file"),
        ("proxyai", "apply_edit", {"path": "a.txt", "old_text": "one", "new_text": "1"}, "Edit"),
        ("proxyai", "apply_patch", {"path": "a.txt", "patches": [{"old_text": "one", "new_text": "1"}]}, None),
        ("proxyai", "run_command", {"command": "ls", "cwd": "."}, "Bash"),
        ("proxyai", "run_command", {"command": "cat ../a.txt", "cwd": "sub"}, "Bash"),
        ("promptly", "create_directory", {"path": "new"}, "MakeDirectory"),
        ("promptly", "apply_patch", {"path": "a.txt", "old_text": "one", "new_text": "1"}, None),
        (
            "promptly",
            "Edit",
            {"file_path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": True},
            "SearchAndReplace",
        ),
        ("promptly", "delete_file", {"path": "sub", "recursive": True}, "RemoveFiles"),
        ("promptly", "delete_file", {"path": "sub"}, None),
    ],
)
def test_a_foreign_call_is_taken_where_nothing_is_lost(directory, dialect, name, arguments, taken):
    """X18, X1, X14: one canonical operation, and every argument keeps its meaning; replace-all is not replace-one."""
    result = answer(directory, dialect, name, arguments)
    if taken is None:
        assert result.error is not None
        assert result.error.startswith(f"unknown tool {name!r}; this session has: ")
        assert (directory / "a.txt").read_text() == "one\ntwo\n"
        return
    assert result.ok, result.content
    assert result.name == taken
    taken_so = any(note.endswith(f"it was run as {taken}") for note in result.notes)
    assert taken_so == (get_dialect(dialect).tools.match(name) is None)


def test_translated_call_has_the_same_operation(directory):
    """The file is changed as the call specifies, whichever names it uses."""
    answer(directory, "proxyai", "apply_edit", {"path": "a.txt", "old": "one", "new": "1"})
    assert (directory / "a.txt").read_text() == "1\ntwo\n"
    answer(directory, "proxyai", "create_file", {"filename": "b.txt", "data": "b"})
    assert (directory / "b.txt").read_text() == "b"


@pytest.mark.parametrize(
    ("dialect", "name", "arguments"),
    [
        ("blade", "Execute", {"command": "ls", "timeout": 5_000}),  # run_command has no timeout
        ("blade", "Bash", {"command": "ls", "run_in_background": True}),
        ("proxyai", "read_file_range", {"path": "a.txt", "start_line": 1, "end_line": 1}),
        ("proxyai", "apply_edit", {"path": "a.txt", "patches": [{"old_text": "one", "new_text": "1"}] * 2}),
        ("blade", "MoveFiles", {"source": "a.txt", "destination": "b.txt", "force": True}),  # no such argument there
        ("proxyai", "delete_file", {"path": "a.txt"}),  # nothing here deletes
        ("proxyai", "apply_edit", {"path": "a.txt"}),  # not a call of that tool either
    ],
)
def test_a_call_that_would_lose_something_is_not_taken(directory, dialect, name, arguments):
    """No argument is dropped, not even a part of one, and the effect stays the same."""
    active = get_dialect(dialect)
    assert translate_call(name, arguments, active.tools, active) is None
    if active.tools.match(name) is None:
        result = answer(directory, dialect, name, arguments)
        assert str(result.error).startswith(f"unknown tool {name!r}")
    assert (directory / "a.txt").read_text() == "one\ntwo\n"


def test_tools_that_are_not_offered_cannot_be_called(directory):
    """A tool that was excluded, or whose capability is missing, cannot be called by a foreign name."""
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}
    for name in ("ReplaceText", "Edit"):
        result = answer(directory, "blade", name, edit, only=["read_file"])
        assert "unknown tool" in str(result.error)
    assert "unknown tool" in str(answer(directory, "proxyai", "apply_edit", edit, only=["Read"]).error)
    absent = answer(directory, "blade", "WebSearch", {"query": "x"}, host=Host(search=None))
    assert "unknown tool 'WebSearch'" in str(absent.error)
    assert (directory / "a.txt").read_text() == "one\ntwo\n"


def test_a_foreign_call_is_decided_like_the_own_one(directory):
    """Rules and questions name the session's tool."""
    asked, refuse = record_requests("tool", "effect", answer=False)
    move = {"source": "a.txt", "destination": "b.txt"}
    with Workspace(directory, "blade", ask=refuse) as workspace:
        assert not workspace.run("MoveFiles", move).ok
        assert workspace.preview("MoveFiles", move).ok
    assert asked == [("move_file", "write")]
    denied = answer(directory, "blade", "MoveFiles", move, rules=[PermissionRule.parse("deny", "move_file")])
    assert "deny move_file" in str(denied.error)


def test_own_names_and_aliases_come_first(directory):
    """A name of the active dialect is never a foreign one, even if its tool is not offered."""
    result = answer(directory, "blade", "edit", {"path": "a.txt", "old": "one", "new": "1"}, only=["apply_edit"])
    assert "unknown tool 'edit'" in str(result.error)


PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+1
 two
*** Add File: sub/b.txt
+new
*** End Patch"""
DIFF = """--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-one
+1
 two
--- /dev/null
+++ b/sub/b.txt
@@ -0,0 +1 @@
+new
"""
LINE = f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"
WAYS = [
    ("apply_patch", {"input": PATCH}),
    ("apply_patch", {"patch": DIFF}),
    ("functions.apply_patch", {"arguments": {"input": PATCH}}),
    ("shell", {"command": ["apply_patch", PATCH]}),
    ("container.exec", {"cmd": ["bash", "-lc", LINE]}),
    ("bash", {"command": LINE}),
]
"""A patch as models trained with codex write it."""
EDITORS = {
    "blade": ("apply_edit", "write_file"),
    "maki": ("edit", "write"),
    "proto": ("edit", "write_file"),
    "proxyai": ("Edit", "Write"),
    "promptly": ("SearchAndReplace", "WriteToFile"),
}
"""The tools of each dialect that change a file and create one."""


@pytest.mark.parametrize("dialect", EDITORS)
@pytest.mark.parametrize(("name", "arguments"), WAYS, ids=[f"{name}-{n}" for n, (name, _) in enumerate(WAYS)])
def test_a_patch_over_several_files_is_understood_everywhere(directory, dialect, name, arguments):
    """It is one change: approved file by file under the session's own tools, with diffs, and undone as one."""
    asked = []

    def allow(approval):
        asked.append((approval.tool, approval.paths, approval.diff.count("\n+") - 1))
        return True

    with Workspace(directory, dialect, allow) as workspace:
        result = workspace.run(name, arguments)
        assert result.ok, result.content
        assert result.content == "Updated a.txt, added sub/b.txt."
        edits, writes = EDITORS[dialect]
        assert asked == [(edits, ("a.txt",), 1), (writes, ("sub/b.txt",), 1)]
        assert (directory / "a.txt").read_text() == "1\ntwo\n"
        assert (directory / "sub/b.txt").read_text() == "new\n"
        assert len(workspace.changes()) == 1
        workspace.undo()
    assert (directory / "a.txt").read_text() == "one\ntwo\n"
    assert not (directory / "sub/b.txt").exists()


@pytest.mark.parametrize("dialect", EDITORS)
def test_a_patch_is_done_whole_or_not_at_all(directory, dialect):
    """One refusal, one rule or one hunk that does not match leaves every file unchanged."""
    whole = {"input": PATCH}
    last = EDITORS[dialect][1]
    with Workspace(directory, dialect, lambda approval: approval.tool != last) as workspace:
        assert "did not approve" in workspace.run("apply_patch", whole).content
    for rule in (f"{last}(sub/**)", "*(a.txt)", EDITORS[dialect][0]):
        denied = answer(directory, dialect, "apply_patch", whole, rules=[PermissionRule.parse("deny", rule)])
        assert "forbids it" in denied.content, rule
    unfit = answer(directory, dialect, "apply_patch", {"input": PATCH.replace("-one", "-nowhere at all")})
    assert "a.txt: old_text was not found" in unfit.content
    assert (directory / "a.txt").read_text() == "one\ntwo\n"
    assert not (directory / "sub/b.txt").exists()


def test_a_patch_is_limited_to_the_tools_of_the_session(directory):
    """A deletion needs a tool that deletes, and is approved as a deletion."""
    patch = {"input": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}
    refused = answer(directory, "proxyai", "apply_patch", patch)
    assert "this session has no tool that deletes files; remove a.txt from the patch" in refused.content
    moved = answer(directory, "proto", "apply_patch", {"input": PATCH.replace("@@", "*** Move to: c.txt\n@@")})
    assert "no tool that moves files" in moved.content
    assert "no tool that edits" in answer(directory, "maki", "apply_patch", {"input": PATCH}, only=["read"]).content
    assert (directory / "a.txt").exists()
    asked, refuse = record_requests(answer=False)
    with Workspace(directory, "blade", ask=refuse) as workspace:
        assert not workspace.run("apply_patch", patch).ok
    assert [(approval.tool, approval.effect) for approval in asked] == [("delete_file", "delete")]


def test_other_commands_stay_commands(directory):
    """Only a patch given to apply_patch, without anything else, is a patch."""
    for line in ("echo apply_patch", f"{LINE}; rm a.txt", f"true && {LINE}"):
        assert extract_apply_patch({"command": line}) is None
    assert extract_apply_patch({"command": ["apply_patch"]}) is None
    assert extract_apply_patch('{"command": 1') is None
    assert answer(directory, "maki", "bash", {"command": "echo apply_patch"}).content.startswith("apply_patch")


@pytest.mark.parametrize(("path", "is_done"), [("x", True), ("../x", False)])
def test_atomic_calls_take_foreign_ones(directory, path, is_done):
    patch = ToolCall("1", "apply_patch", {"input": PATCH}, "")
    write = ToolCall("2", "write", {"path": path, "content": "x"}, "")
    with Workspace(directory, "maki", "yolo") as workspace:
        results = workspace.run_calls(RunTools((patch, write)), atomic=True)
    assert [result.ok for result in results] == [is_done, is_done]
    assert (directory / "a.txt").read_text() == ("1\ntwo\n" if is_done else "one\ntwo\n")
