"""The description of a call's sandbox is true, for every kind of tool."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.tools.function_tools import tool, with_runner
from adapter.tools.operations.permissions import NO_SANDBOX
from adapter.workspace import Workspace
from tests.approvals import record_requests


@pytest.fixture
def outside(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("outside")
    return folder / "written"


@pytest.fixture
def leave(outside):
    @tool
    def leave(text: str) -> str:
        """Write a file outside the workspace, and open a socket."""
        outside.write_text(text, encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)):
            return "left"

    return leave


def test_function_is_reported_as_unconfined(tmp_path, leave, outside):
    """The question, the result and the session state that nothing confines it."""
    asked, approve = record_requests()
    with Workspace(tmp_path, approve=approve, tools=[leave]) as workspace:
        result = workspace.run("leave", {"text": "here"})
        session = workspace.sandbox
    assert outside.read_text(encoding="utf-8") == "here"
    for text in (asked[0].sandbox, result.sandbox):
        assert text.startswith(f"{NO_SANDBOX}, it runs in this program")
        assert "only in the workspace" not in text
    commands, functions = session.split("\n")
    assert NO_SANDBOX not in commands or "commands have all your rights" in commands
    assert functions.startswith(f"{NO_SANDBOX} for leave")


@pytest.mark.parametrize("effect", ["read", "write", "network"])
def test_function_note_ignores_declared_effect(tmp_path, effect):
    """A function declared as read-only can still do anything."""

    @tool(effect=effect)
    def look() -> str:
        return "seen"

    with Workspace(tmp_path, approve="yolo", tools=[look], only=["look"]) as workspace:
        assert workspace.run("look", {}).sandbox.startswith(NO_SANDBOX)
        assert workspace.sandbox.startswith(f"{NO_SANDBOX} for look")


def test_failed_function_has_note(tmp_path, outside):
    """It may have had effects before."""

    @tool
    def fail() -> str:
        outside.write_text("half", encoding="utf-8")
        raise ToolError("no more")

    with Workspace(tmp_path, approve="yolo", tools=[fail]) as workspace:
        result = workspace.run("fail", {})
    assert not result.ok
    assert result.sandbox.startswith(NO_SANDBOX)


def test_refused_call_has_no_note(tmp_path, leave):
    with Workspace(tmp_path, approve=lambda _: False, tools=[leave]) as workspace:
        assert workspace.run("leave", {"text": "here"}).sandbox == ""


def test_runner_is_named(tmp_path, leave):
    """Tools of an MCP server run outside the sandbox and this program."""
    elsewhere = with_runner("the MCP server 'git'", leave)
    with Workspace(tmp_path, approve="yolo", tools=[elsewhere]) as workspace:
        assert "it runs in the MCP server 'git'" in workspace.run("leave", {"text": "x"}).sandbox
        assert "leave (the MCP server 'git')" in workspace.sandbox


def test_batch_combines_notes_of_its_calls(tmp_path, leave):
    """All kinds, each once."""
    calls = [
        {"tool": "leave", "parameters": {"text": "x"}},
        {"tool": "leave", "parameters": {"text": "y"}},
        {"tool": "bash", "parameters": {"command": "true"}},
    ]
    with Workspace(tmp_path, "maki", approve="yolo", tools=[leave]) as workspace:
        result = workspace.run("batch", {"tool_calls": calls})
        alone = workspace.run("bash", {"command": "true"})
        looked = workspace.run("batch", {"tool_calls": [{"tool": "glob", "parameters": {"pattern": "*"}}]})
    assert result.ok, result.content
    first, second = result.sandbox.split("\n")
    assert first.startswith(f"{NO_SANDBOX}, it runs in this program")
    assert second == alone.sandbox
    assert looked.sandbox == ""


@pytest.mark.skipif(find_spec("pydantic_monty") is None, reason="needs the interpreter")
def test_code_is_confined_but_its_calls_are_not(tmp_path, leave):
    """The interpreter cannot access files, but the called function can."""
    with Workspace(tmp_path, "maki", approve="yolo", tools=[leave]) as workspace:
        result = workspace.run("code_execution", {"code": "await leave(text='x')"})
        session = workspace.sandbox
    assert result.ok, result.content
    assert "interpreter without files, processes and network" in result.sandbox
    assert "tools that it calls" in result.sandbox
    assert f"{NO_SANDBOX} for leave" in session


def test_operations_without_programs_have_no_note(tmp_path):
    """Reading and editing are done by this program."""
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    with Workspace(tmp_path, approve="yolo", only=["read_file", "write_file"]) as workspace:
        assert workspace.run("read_file", {"path": "a.txt"}).sandbox == ""
        assert workspace.run("write_file", {"path": "b.txt", "content": "x"}).sandbox == ""
        assert workspace.sandbox == ""
