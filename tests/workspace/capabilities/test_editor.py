"""The editor in memory and Blade's six tools for it, which change real files like any edit."""

from __future__ import annotations

import json

import pytest

from adapter.core.errors import ToolError
from adapter.dialects import get_dialect
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.capabilities.memory_editor import MemoryEditor


@pytest.fixture
def editor():
    return MemoryEditor()


@pytest.fixture
def asked():
    return []


@pytest.fixture
def workspace(directory, editor, asked):
    (directory / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (directory / "b.py").write_text("x = 1\ny = 2")

    with Workspace(directory, approve=lambda request: not asked.append(request), host=Host(editor=editor)) as workspace:
        yield workspace


def state(workspace):
    return json.loads(workspace.run("get_editor_state", {}).content)


def test_editor_starts_empty(workspace):
    """C292, C293: the seven documented fields, empty."""
    assert state(workspace) == {
        "active_file": None,
        "open_files": [],
        "active_tab_index": -1,
        "cursor_line": None,
        "cursor_column": None,
        "selection_start_line": None,
        "selection_end_line": None,
    }
    for name, arguments in [("goto_line", {"line": 1}), ("get_selection", {}), ("insert_at_cursor", {"content": "x"})]:
        assert "no file is open" in workspace.run(name, arguments).content


def test_editor_tracks_tabs_and_cursor(run, workspace):
    """C294 to C299: opening again activates; line and column are used."""
    run("open_file", path="a.txt")
    run("open_file", path="b.py", line=2)
    assert state(workspace) | {"open_files": None} == {
        "active_file": "b.py",
        "open_files": None,
        "active_tab_index": 1,
        "cursor_line": 2,
        "cursor_column": 1,
        "selection_start_line": None,
        "selection_end_line": None,
    }
    run("open_file", path="./a.txt")
    assert state(workspace)["open_files"] == ["a.txt", "b.py"]
    assert state(workspace)["active_tab_index"] == 0
    assert "line 2, column 3" in run("goto_line", line=2, column=3)
    assert (state(workspace)["cursor_line"], state(workspace)["cursor_column"]) == (2, 3)
    run("goto_line", line=1)
    assert (state(workspace)["cursor_line"], state(workspace)["cursor_column"]) == (1, 1)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("open_file", {"path": "none.txt"}, "does not exist"),
        ("open_file", {"path": "../secret/key"}, "outside"),
        ("open_file", {"path": "a.txt", "line": 4}, "its lines are 1 to 3"),
        ("open_file", {"path": "a.txt", "line": 0}, "its lines are 1 to 3"),
        ("goto_line", {"line": 99}, "its lines are 1 to 3"),
        ("goto_line", {"line": 1, "column": 5}, "its columns are 1 to 4"),
        ("goto_line", {"line": 1, "column": 0}, "its columns are 1 to 4"),
        ("get_selection", {}, "nothing is selected"),
        ("replace_selection", {"content": "x"}, "nothing is selected"),
    ],
)
def test_missing_file_line_or_column_is_explained(workspace, name, arguments, said):
    """And nothing moves."""
    workspace.run("open_file", {"path": "a.txt", "line": 2})
    before = state(workspace)
    result = workspace.run(name, arguments)
    assert not result.ok
    assert said in result.content
    assert state(workspace) == before


def test_insert_keeps_line_ends(run, workspace, directory, asked):
    """C304, C305: after approval with the diff. The cursor is then after the new text."""
    run("open_file", path="a.txt", line=2)
    run("insert_at_cursor", content="new\nlines ")
    assert (directory / "a.txt").read_bytes() == b"one\r\nnew\r\nlines two\r\nthree\r\n"
    assert (state(workspace)["cursor_line"], state(workspace)["cursor_column"]) == (3, 7)
    assert asked[0].paths == ("a.txt",)
    assert "+new" in asked[0].diff
    assert asked[0].effect == "write"


def test_a_selection_is_read_and_replaced(run, workspace, editor, directory):
    """C300 to C303: parts of lines and whole lines. Afterwards nothing is selected."""
    run("open_file", path="a.txt")
    editor.select(1, 2, start_column=2, end_column=3)
    assert (state(workspace)["selection_start_line"], state(workspace)["selection_end_line"]) == (1, 2)
    assert run("get_selection") == "ne\r\ntw"
    run("replace_selection", content="X")
    assert (directory / "a.txt").read_bytes() == b"oXo\r\nthree\r\n"
    assert state(workspace)["selection_start_line"] is None
    editor.select(2, 2)
    assert run("get_selection") == "three\r\n"
    run("replace_selection", content="")
    assert (directory / "a.txt").read_bytes() == b"oXo\r\n"


def test_last_line_without_line_end_can_be_selected(run, editor, directory):
    """A selection of whole lines ends at the end of the file."""
    run("open_file", path="b.py")
    editor.select(2, 2)
    assert run("get_selection") == "y = 2"
    run("replace_selection", content="z = 3")
    assert (directory / "b.py").read_text() == "x = 1\nz = 3"


def test_byte_order_mark_stays_first(run, directory):
    """Inserting at the start of the file comes after the mark."""
    (directory / "m.txt").write_bytes(b"\xef\xbb\xbfa\n")
    run("open_file", path="m.txt")
    run("insert_at_cursor", content="b")
    assert (directory / "m.txt").read_bytes() == b"\xef\xbb\xbfba\n"


def test_an_empty_file_can_be_written_into(run, directory):
    """Line 1, column 1 also exists without lines."""
    (directory / "e.txt").write_text("")
    run("open_file", path="e.txt", line=1)
    run("insert_at_cursor", content="a\n")
    assert (directory / "e.txt").read_text() == "a\n"


def test_cursor_beyond_changed_file_is_reported(workspace, directory):
    """The file became shorter, so nothing is written."""
    workspace.run("open_file", {"path": "a.txt", "line": 3})
    (directory / "a.txt").write_text("short\n")
    assert "is no longer in a.txt" in workspace.run("insert_at_cursor", {"content": "x"}).content
    assert (directory / "a.txt").read_text() == "short\n"


def test_a_deleted_file_is_noted(workspace, directory):
    workspace.run("open_file", {"path": "b.py"})
    (directory / "b.py").unlink()
    assert workspace.run("get_editor_state", {}).notes == ("b.py is open, but no longer exists",)


def test_refused_change_keeps_file_cursor_and_selection(directory, editor):
    (directory / "a.txt").write_text("one\n")
    with Workspace(directory, approve=lambda _: False, host=Host(editor=editor)) as workspace:
        workspace.run("open_file", {"path": "a.txt"})
        editor.select(1, 1)
        assert not workspace.run("replace_selection", {"content": "two"}).ok
        assert state(workspace)["selection_start_line"] == 1
    assert (directory / "a.txt").read_text() == "one\n"


def test_editor_changes_are_emitted(directory):
    """An editor's window follows them."""
    seen: list[object] = []
    (directory / "a.txt").write_text("one\n")
    with Workspace(directory, host=Host(events=seen.append)) as workspace:
        workspace.run("open_file", {"path": "a.txt"})
    assert [event.active_file for event in seen] == ["a.txt"]  # type: ignore[attr-defined]


def test_without_an_editor_its_tools_are_not_offered(directory):
    """Other tools are offered. A call gets the names of the tools to use instead."""
    with Workspace(directory, host=Host(editor=None)) as workspace:
        missing = get_dialect("blade").tools.keys() - workspace.tools.keys()
        assert missing == {tool.name for tool in get_dialect("blade").tools.values() if tool.needs == "editor"}
        assert len(missing) == 6
        answer = workspace.run("open_file", {"path": "a.txt"}).content
    assert "open_file is not available: no editor is attached to this session. Use the file tools" in answer


@pytest.mark.parametrize("lines", [(2, 1), (0, 1)])
def test_invalid_selection_is_refused(editor, lines):
    """The end must be after the start, and lines count from 1."""
    with pytest.raises(ToolError, match="no file is open"):
        editor.select(*lines)
    editor.open("a.txt")
    with pytest.raises(ToolError, match="invalid selection"):
        editor.select(*lines)
