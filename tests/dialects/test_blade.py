"""Zaguan Blade's document, tool by tool: names, parameters, defaults, aliases, results."""

import json
import time

import pytest
from pydantic import ValidationError

from adapter.core.errors import UsageError
from adapter.dialects import get_dialect
from adapter.dialects.blade import DIALECT

TOOLS = DIALECT.tools


# ---------------------------------------------------------------------- definitions


@pytest.mark.parametrize(
    ("name", "parameter", "aliases"),
    [
        ("read_file", "path", {"file_path", "filepath", "filename"}),
        ("write_file", "content", {"contents", "text", "data"}),
        ("edit_file", "old_content", {"old", "from"}),
        ("edit_file", "new_content", {"new", "to"}),
        ("list_directory", "path", {"dir", "directory"}),
        ("grep_search", "pattern", {"query", "regex"}),
    ],
)
def test_documented_aliases_are_accepted(name, parameter, aliases):
    """C228, C236, C239, C240, C267, C284, X1"""
    assert aliases <= set(TOOLS[name].argument_aliases[parameter])


def test_the_nearest_dialect_is_suggested():
    """A wrong dialect name is an error of the developer."""
    with pytest.raises(UsageError, match="did you mean 'blade'"):
        get_dialect("blaed")


# ---------------------------------------------------------- every parameter has effect


def test_read_file_gives_plain_text(run, directory):
    """C227, C228: also for an empty file, which is reported."""
    (directory / "f").write_text("  a\n\tb")
    (directory / "empty").write_text("")
    assert run("read_file", path="f") == "  a\n\tb"
    assert run("read_file", path="empty") == "(empty is empty)"


def test_read_file_range_honors_all_its_parameters(run, directory):
    """C229 to C233: line numbers, the range and the total number of lines."""
    (directory / "f").write_text("a\nb\nc\nd\ne\n")
    assert run("read_file_range", path="f", start_line=2, end_line=3) == "File: f\nLines 2-3 (of 5):\n2: b\n3: c"
    assert run("read_file_range", path="f", start_line=4).endswith("4: d\n5: e")
    assert run("read_file_range", path="f", end_line=1).endswith(":\n1: a")
    assert "Lines 2-4" in run("read_file_range", path="f", start_line=3, end_line=3, context_lines=1)


def test_edit_file_replaces_once(run, directory):
    """C237 to C240: the legacy tool uses the same engine."""
    (directory / "f").write_text("a\nb\n")
    assert run("edit_file", path="f", old_content="a", new_content="c") == "Applied 1 patch to f."
    assert (directory / "f").read_text() == "c\nb\n"


def test_apply_edit_takes_one_or_several_and_uses_hints(run, directory):
    """C241 to C249, X13: single form, list form, aliases inside the list, line hints in both."""
    path = directory / "f"
    path.write_text("x\ny\nx\n")
    run("apply_edit", path="f", old_text="x", new_text="1", start_line=3)
    assert path.read_text() == "x\ny\n1\n"
    patches = [{"old": "x", "new": "y"}, {"old_text": "y", "new_text": "x", "start_line": 2, "end_line": 2}]
    assert run("apply_patch", path="f", patches=patches) == "Applied 2 patches to f."
    assert path.read_text() == "y\nx\n1\n"
    run("apply_edit", path="f", patches=[{"old_text": "y", "new_text": "z", "end_line": 1}])
    assert path.read_text() == "z\nx\n1\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_edit", {"old_text": "x", "new_text": "z", "replace_all": True}),
        ("apply_edit", {"patches": [{"old_text": "x", "new_text": "z", "replace_all": True}]}),
        ("edit_file", {"old_string": "x", "new_string": "z", "replace_all": True}),
    ],
)
def test_replace_all_is_taken_though_not_shown(run, directory, tool, arguments):
    """Models know it from other tools, but no definition mentions it, not even in a list of patches."""
    (directory / "f").write_text("x\ny\nx\n")
    run(tool, path="f", **arguments)
    assert (directory / "f").read_text() == "z\ny\nz\n"
    assert "replace_all" not in str(TOOLS[tool].parameters)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "pass old_text and new_text, or a list of"),
        ({"patches": []}, "pass old_text and new_text, or a list of"),
        ({"old_text": "a", "new_text": "b", "patches": [{"old_text": "a", "new_text": "c"}]}, "not both"),
        ({"old_text": "a"}, "new_text is missing"),
        ({"new_text": "a"}, "old_text is missing"),
        ({"patches": [{"old_text": "a"}]}, "Field required"),
    ],
)
def test_apply_edit_wants_exactly_one_form(arguments, said):
    """C243 to C247: an incomplete patch is an error, never a whole-file replacement."""
    assert TOOLS["apply_edit"].validate is not None
    with pytest.raises(ValidationError, match=said):
        TOOLS["apply_edit"].validate({"path": "f", **arguments})


def test_path_is_the_source_of_a_move(run, directory):
    """As in the other tools."""
    (directory / "f").write_text("x")
    run("move_file", path="f", destination="g")
    assert (directory / "g").read_text() == "x"


def test_patch_in_both_forms_is_applied_once(run, directory):
    """Qwen2.5-Coder-0.5B fills in all arguments."""
    (directory / "f").write_text("x\ny\n")
    patch = {"old_text": "x", "new_text": "z"}
    run("apply_edit", path="f", **patch, patches=[patch])
    assert (directory / "f").read_text() == "z\ny\n"


def test_get_file_info_is_the_documented_json(run, directory):
    """C261 to C263, X32: exactly six fields."""
    (directory / "f").write_text("abc")
    (directory / "f").chmod(0o444)
    fields = json.loads(run("get_file_info", path="f"))
    assert abs(fields.pop("modified") - time.time()) < 100
    assert fields == {"path": "f", "size": 3, "is_directory": False, "is_file": True, "readonly": True}
    assert json.loads(run("get_file_info", path="."))["is_directory"] is True


def test_list_directory_is_a_tree(run, directory):
    """C266 to C269: two spaces per level, a slash after directories, and the requested depth."""
    (directory / "a" / "b" / "c").mkdir(parents=True)
    (directory / "a" / "f").write_text("")
    assert run("list_directory", path="a") == "a/\n  b/\n  f"
    assert run("list_dir", dir="a", max_depth=2) == "a/\n  b/\n    c/\n  f"
    assert run("list_directory", path="a/b/c") == "a/b/c/ (empty)"


def test_structure_honors_depth_and_limit(run, directory):
    """C270 to C273, D12: at most 200 entries; a higher limit is reported as reduced."""
    for index in range(300):
        (directory / f"{index:03}").write_text("")
    assert run("get_workspace_structure", limit=3).startswith("./\n  000\n  001\n  002\n(showing 3 entries, 297 more")
    assert "(showing 50 entries" in run("get_workspace_structure")
    assert "(showing 200 entries" in run("get_workspace_structure", limit=250)
    (directory / "d" / "e" / "f").mkdir(parents=True)
    assert "e/" in run("get_workspace_structure", path="d")
    assert "f/" in run("get_workspace_structure", path="d")
    assert "f/" not in run("get_workspace_structure", path="d", depth=1)


def test_finding_and_globbing(run, directory):
    """C275 to C282: one path per line, relative to the workspace."""
    (directory / "src" / "deep").mkdir(parents=True)
    (directory / "src" / "Test.py").write_text("")
    (directory / "src" / "deep" / "test_b.py").write_text("")
    assert run("find_files", pattern="test") == "src/Test.py\nsrc/deep/test_b.py"
    assert run("find_files", pattern="test", path="src/deep") == "src/deep/test_b.py"
    assert run("find_files", pattern="test", max_depth=2) == "src/Test.py"
    assert run("glob", pattern="**/*.PY") == "src/Test.py\nsrc/deep/test_b.py"
    assert run("find_files_glob", pattern="*.PY", path="src", case_sensitive=True) == "No files match '*.PY'."


def test_searches_have_the_documented_shapes(run, directory):
    """C283 to C291: filepath:line_number:line_content, and two lines of context."""
    (directory / "a.py").write_text("1\n2\n3\nhit me\n5\n6\n7\n")
    (directory / "b.rs").write_text("hit\nhit\n")
    assert run("rg", regex="hit m.") == "a.py:4:hit me"
    assert run("grep_search", pattern="hit", path="b.rs") == "b.rs:1:hit\nb.rs:2:hit"
    assert run("grep_search", pattern="nothing here") == "No matches for 'nothing here'."
    assert run("codebase_search", query="hit", file_pattern="*.py, *.toml") == (
        "Found 1 match for 'hit':\n\na.py:4\n  2: 2\n  3: 3\n> 4: hit me\n  5: 5\n  6: 6"
    )
    assert "Found 3 matches for 'hit', showing the first 2:" in run("codebase_search", query="hit", max_results=2)


def test_run_command_reports_failure_and_silence(run, directory):
    """C306 to C308: in the words of the original."""
    (directory / "d").mkdir()
    assert run("run_command", command="echo x; exit 3", cwd=".") == "Command failed with exit code 3:\nx"
    assert run("run_command", command="true", cwd=".") == "(no output)"
    assert run("run_command", command="basename $(pwd)", cwd="d") == "d"
