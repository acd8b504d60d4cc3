"""The order of tool files: the current directory, the user's configuration, the shipped file."""

import json
import shutil
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapter.cli.agent_console import Console
from adapter.cli.app import make_app
from adapter.cli.run_settings import RunSettings
from adapter.core.errors import UsageError
from adapter.dialects.promptly.tool_files import (
    ToolSelection,
    add_tool,
    find_target_file,
    find_tools,
    install_defaults,
    load_dialect,
    remove_tool,
)
from adapter.prompting.system_prompt import system_prompt
from adapter.workspace import Workspace


@pytest.mark.parametrize("is_installed", [False, True])
def test_shipped_tool_is_offered_only_if_its_program_is_installed(tmp_path, monkeypatch, is_installed):
    """The library, the command line and a session agree. A call reports the missing program."""
    (tmp_path / "bin").mkdir()
    if is_installed:
        (tmp_path / "bin" / "tree").write_text("#!/bin/sh\n")
        (tmp_path / "bin" / "tree").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "w").mkdir()
    monkeypatch.chdir(tmp_path / "w")
    prompt = system_prompt("promptly")
    assert ("ShowFileTree" in prompt) is is_installed
    assert CliRunner().invoke(make_app(), ["prompt", "--dialect", "promptly"]).stdout == prompt
    with Workspace(tmp_path / "w", "promptly", "yolo", sandbox="none") as workspace:
        assert ("ShowFileTree" in workspace.tools) is is_installed
        result = workspace.run("ShowFileTree", {"path": "."})
    assert result.ok is is_installed
    assert is_installed or "tree is not installed here. Use another tool" in result.content


def entry(name, description="", **fields):
    return {"name": name, "description": description, "executable": "echo"} | fields


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Write tool files: returns a function of place, base name and entries."""
    folders = {"local": tmp_path / "here", "user": tmp_path / "home" / ".config" / "promptly"}
    for folder in folders.values():
        folder.mkdir(parents=True)
    monkeypatch.chdir(folders["local"])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def write(place, *entries, basename="tools"):
        file = folders[place] / f"{basename}.json"
        file.write_text(json.dumps({"shellCommands": entries}), encoding="utf-8")
        return file

    return write


def test_local_comes_before_user_before_default(places):
    """C121, C122: the first tool of a name is used, and tools of other names are added."""
    places("user", entry("A", "user"), entry("B", "user"), entry("LineCount", "user"))
    places("local", entry("A", "local"))
    tools = load_dialect().tools
    assert [tools[name].description for name in ("A", "B", "LineCount")] == ["local", "user", "user"]
    assert "ListFiles" in tools
    assert "WriteToFile" in tools
    assert [(each.tool.name, each.source) for each in find_tools()][:4] == [
        ("A", "local"),
        ("A", "user"),
        ("B", "user"),
        ("LineCount", "user"),
    ]


def test_another_basename_is_another_set(places):
    """C123: `--tools mine` reads only mine.json, in both places."""
    places("local", entry("A"))
    places("local", entry("Mine", "local"), basename="mine")
    places("user", entry("Mine", "user"), entry("More"), basename="mine")
    for basename in ("mine", "mine.json"):
        tools = load_dialect(ToolSelection(basename)).tools
        assert tools["Mine"].description == "local"
        assert "More" in tools
        assert not {"A", "TouchFile"} & set(tools)


@pytest.mark.parametrize(
    ("basename", "says"),
    [
        ("missing", "tools file not found: neither missing.json nor .*promptly/missing.json exists"),
        ("../x", "base name"),
        ("", "base"),
    ],
)
def test_a_basename_without_a_file_is_an_error(places, basename, says):
    with pytest.raises(UsageError, match=says):
        load_dialect(ToolSelection(basename))


def test_filters_reach_all_places(places):
    """C124, C125, C143."""
    places("user", entry("ReadMine", optIn=True), entry("Mine"))
    assert "ReadMine" not in load_dialect().tools
    assert list(load_dialect(ToolSelection(include=["Mine"])).tools) == ["ReadMine", "Mine"]
    assert list(load_dialect(ToolSelection(include=["Mine"], exclude=["Read"])).tools) == ["Mine"]


def test_shipped_tools_without_their_program_are_not_offered(places, monkeypatch, tmp_path):
    """They could not work. Tools of the user are offered, because only the user knows."""
    monkeypatch.setenv("PATH", str(tmp_path))
    places("user", entry("Mine", executable="missing"))
    with Workspace(Path(), load_dialect(), sandbox="none") as workspace:
        tools = workspace.tools
    assert "Mine" in tools
    assert "TouchFile" not in tools


@pytest.mark.parametrize("text", ["{", '[{"name": "A"}]', "\xff"])
def test_a_broken_file_is_named(places, text):
    """Skipping it would hide the missing tools."""
    file = places("local")
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=r"tools\.json"):
        load_dialect()


def test_the_target_is_the_local_file_if_there_is_one(places):
    """Otherwise the user's. A file named explicitly comes first."""
    assert find_target_file(None) == Path.home() / ".config/promptly/tools.json"
    places("local")
    assert find_target_file(None) == Path("tools.json")
    assert find_target_file(Path("other.json")) == Path("other.json")


def test_adding_and_removing_keep_the_rest(places):
    """Other keys, other entries and the file's mode are unchanged."""
    file = places("local", entry("A"))
    file.write_text(json.dumps({"note": "mine", "shellCommands": [entry("A")]}), encoding="utf-8")
    file.chmod(0o600)
    add_tool(entry("B"), file)
    assert json.loads(file.read_text()) == {"note": "mine", "shellCommands": [entry("A"), entry("B")]}
    assert remove_tool("A", file)
    assert not remove_tool("A", file)
    assert json.loads(file.read_text())["shellCommands"] == [entry("B")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in Path().iterdir()] == ["tools.json"]


def test_a_list_stays_a_list(places):
    file = places("local")
    file.write_text(json.dumps([entry("A")]), encoding="utf-8")
    add_tool(entry("B"), file)
    assert json.loads(file.read_text()) == [entry("A"), entry("B")]


def test_add_tool_writes_nothing_for_invalid_entries(places):
    """A duplicate, an invalid entry or a broken file."""
    file = places("local", entry("A"))
    before = file.read_bytes()
    with pytest.raises(UsageError, match="already has a tool 'A'"):
        add_tool(entry("A"), file)
    with pytest.raises(UsageError, match=r"the new tool \(C\): unknown field"):
        add_tool(entry("C", optin=True), file)
    assert file.read_bytes() == before
    file.write_text("{broken")
    with pytest.raises(UsageError, match="is not valid JSON"):
        add_tool(entry("C"), file)
    assert file.read_text() == "{broken"


def test_a_file_that_is_not_there_is_made(places, tmp_path):
    """With its folder."""
    file = tmp_path / "deep" / "tools.json"
    add_tool(entry("A"), file)
    assert json.loads(file.read_text()) == {"shellCommands": [entry("A")]}
    assert not remove_tool("A", tmp_path / "none.json")


def test_installing_never_overwrites(places):
    """The shipped file is copied to the user's configuration once."""
    file = install_defaults()
    assert file == Path.home() / ".config/promptly/tools.json"
    assert "ShowFileTree" in file.read_text()
    file.write_text("{}")
    with pytest.raises(UsageError, match="already exists; nothing was changed"):
        install_defaults()
    assert file.read_text() == "{}"
    assert install_defaults("mine").name == "mine.json"
    assert "ListFiles" in load_dialect(ToolSelection("mine")).tools


@pytest.mark.parametrize("answer", [True, False])
def test_file_that_changes_after_the_question_is_not_used(places, monkeypatch, tmp_path, answer):
    """The approved text is used, whatever the file contains later."""
    file = places("local", entry("Shown"))

    def confirm(_console, subject, _question):
        assert "Shown: runs" in subject
        file.write_text(json.dumps([entry("Other", executable="sh")]), encoding="utf-8")
        return answer

    monkeypatch.setattr(Console, "confirm", confirm)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = RunSettings(tmp_path, dialect="promptly")
    if not answer:
        with pytest.raises(UsageError, match="have not approved"):
            _ = settings.toolset
        return
    assert "Shown" in settings.toolset.tools
    assert "Other" not in settings.toolset.tools


def test_file_that_appears_after_the_check_is_not_used(places):
    places("local", entry("Late"))
    assert "Late" not in load_dialect(ToolSelection(local="")).tools


def test_question_shows_the_arguments_and_the_program(places, monkeypatch, tmp_path):
    places("local", entry("Shown", executable="sh", argumentTemplate=[["-c", "rm -rf x"]]))
    shown = []
    monkeypatch.setattr(Console, "confirm", lambda _console, *words: shown.extend(words))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(UsageError):
        _ = RunSettings(tmp_path, dialect="promptly").toolset
    assert f"Shown: runs sh -c rm -rf x ({shutil.which('sh')})" in shown[0]
