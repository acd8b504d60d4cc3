"""The workspace: one result per call, approval before every change, and no exception for a model's mistakes."""

import pytest

from adapter.core.errors import UsageError
from adapter.core.events import ToolCall
from adapter.core.turn import Turn
from adapter.tools.operations import Delete, RunCommand, WriteText
from adapter.workspace import Workspace
from tests.approvals import record_requests

WRITE = ("write_file", {"path": "f", "content": "new\n"})
DELETE = ("delete_file", {"path": "old"})
RUN = ("run_command", {"command": "touch ran\n# \x1b[8m", "cwd": "."})
READ = ("read_file", {"path": "old"})


@pytest.fixture
def stocked(directory):
    (directory / "old").write_text("old\n")
    return directory


# ------------------------------------------------------------------------- approval


@pytest.mark.parametrize(
    ("approve", "allowed"),
    [("yolo", [READ, WRITE, DELETE, RUN]), ("auto-edit", [READ, WRITE]), ("ask", [READ])],
)
@pytest.mark.parametrize("call", [READ, WRITE, DELETE, RUN], ids=lambda call: call[0])
def test_modes_allow_documented_effects(stocked, approve, allowed, call):
    """C306, X25: without an approver, the rest is refused with the way to allow it."""
    before = sorted(path.name for path in stocked.iterdir())
    with Workspace(stocked, approve=approve) as workspace:
        result = workspace.run(*call)
    assert result.ok == (call in allowed)
    if call not in allowed:
        assert "needs the user's approval" in result.content
        assert "yolo" in result.content
        assert sorted(path.name for path in stocked.iterdir()) == before


def test_ask_decides_if_mode_does_not(stocked):
    """Only for what the mode does not allow."""
    questions, ask = record_requests()
    with Workspace(stocked, approve="auto-edit", ask=ask) as workspace:
        assert workspace.run(*WRITE).ok
        assert workspace.run(*DELETE).ok
    assert [question.tool for question in questions] == ["delete_file"]


def test_approver_is_called_for_everything_but_reads(stocked):
    """With the operation, its effect and the exact diff."""
    questions = []

    def approve(question):
        questions.append(question)
        return question.effect != "delete"

    with Workspace(stocked, approve=approve) as workspace:
        results = [workspace.run(*call) for call in (READ, WRITE, DELETE, RUN)]
    assert [result.ok for result in results] == [True, True, False, True]
    assert [question.effect for question in questions] == ["write", "delete", "execute"]
    write, delete, run = questions
    assert write.operation == WriteText("f", "new\n")
    assert write.diff == results[1].diff == "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+new\n"
    assert delete.operation == Delete("old")
    assert "did not approve: delete old" in results[2].content
    assert (stocked / "old").exists()
    assert isinstance(run.operation, RunCommand)


def test_approval_shows_hidden_characters_of_command(stocked):
    """An escape sequence must not hide what will run."""
    questions, approve = record_requests(answer=False)
    with Workspace(stocked, approve=approve) as workspace:
        workspace.run(*RUN)
    assert questions[0].summary == "run in .: touch ran\n# \\x1b[8m"


def test_impossible_changes_are_refused_before_approval(stocked):
    with Workspace(stocked, approve=lambda _: pytest.fail("was asked")) as workspace:
        assert not workspace.run("apply_edit", {"path": "old", "old_text": "absent", "new_text": "x"}).ok
        assert not workspace.run("delete_file", {"path": "nope"}).ok


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"approve": "yol"}, "did you mean 'yolo'"),
        ({"approve": ""}, "expected ask, auto-edit, yolo"),
        ({"dialect": "blad"}, "did you mean 'blade'"),
    ],
)
def test_invalid_settings_are_usage_errors(directory, arguments, said):
    """An unknown mode must not allow anything."""
    with pytest.raises(UsageError, match=said):
        Workspace(directory, **arguments)


# -------------------------------------------------------------------------- results


def test_run_calls_returns_one_result_per_call(stocked):
    """Also if a tool is unknown, fails or is refused."""
    calls = [
        ToolCall(f"id{index}", name, arguments, raw="")
        for index, (name, arguments) in enumerate([READ, ("nope", {}), ("read_file", {}), DELETE, READ])
    ]
    turn = Turn("", "", tuple(calls), (), tuple(calls))
    with Workspace(stocked) as workspace:
        results = workspace.run_calls(turn)
    assert [result.call_id for result in results] == ["id0", "id1", "id2", "id3", "id4"]
    assert [result.ok for result in results] == [True, False, False, False, True]


@pytest.mark.parametrize("arguments", ["not json", "[1]", "{}", {}, {"path": None}, {"path": 3}])
def test_invalid_arguments_become_error_results(workspace, arguments):
    """X28: nothing a model writes raises."""
    result = workspace.run("read_file", arguments)
    assert not result.ok
    assert result.content == f"tool_error: {result.error}"


def test_long_results_are_truncated_with_note(workspace, directory):
    """C223, X27: the documented 50 KB and 2,000 lines hold for every tool."""
    (directory / "big").write_text("x" * 200_000)
    (directory / "long").write_text("y\n" * 5_000)
    for name, arguments in [
        ("read_file", {"path": "big"}),
        ("read_file", {"path": "long"}),
        ("grep_search", {"pattern": "y"}),
        ("run_command", {"command": "cat big", "cwd": "."}),
    ]:
        content = workspace.run(name, arguments).content
        assert "TRUNCATED" in content
        assert len(content.encode()) <= 51_200


def test_reads_return_current_content(workspace, directory):
    """D15: a cache once survived edits."""
    (directory / "f").write_text("1")
    assert workspace.run("read_file", {"path": "f"}).content == "1"
    (directory / "f").write_text("2")
    assert workspace.run("read_file", {"path": "f"}).content == "2"


def test_programming_errors_propagate(workspace, monkeypatch):
    """An unexpected exception is a bug, not a result."""
    monkeypatch.setattr("adapter.workspace.files.read_file.decode", lambda *_: 1 / 0)
    workspace.run("write_file", {"path": "f", "content": ""})
    with pytest.raises(ZeroDivisionError):
        workspace.run("read_file", {"path": "f"})


def test_notes_list_assumptions(workspace):
    """C308, X7: a missing cwd is accepted and noted."""
    result = workspace.run("run_command", {"command": "true"})
    assert result.ok
    assert "cwd was missing" in result.notes[0]


def test_package_exports_workspace():
    import adapter

    assert adapter.Workspace is Workspace


def test_empty_workspace_path_is_refused():
    """An unset environment variable must not mean the current folder."""
    with pytest.raises(UsageError, match=r"path is empty; pass a directory, or '.' for the current one"):
        Workspace("")


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
@pytest.mark.parametrize("call", [READ, ("apply_edit", {"path": "old", "old_text": "old", "new_text": "new"})])
def test_running_out_of_memory_is_a_failed_call(stocked, monkeypatch, error, call):
    """The session continues, and nothing was changed."""

    def exhaust(*_):
        raise error

    with Workspace(stocked, approve="yolo") as workspace:
        with monkeypatch.context() as patched:
            patched.setattr("adapter.workspace.files.read_file._read", exhaust)
            patched.setattr("adapter.workspace.files.file_changes.plan_patch", exhaust)
            result = workspace.run(*call)
        assert not result.ok
        assert "ran out of memory" in result.content
        assert workspace.run(*call).ok
