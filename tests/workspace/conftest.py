"""A workspace in its own directory, next to files that must stay secret."""

import itertools
import os

import pytest

from adapter.workspace import Workspace
from adapter.workspace.changes.history import History
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.workspace_context import WorkspaceContext


@pytest.fixture
def directory(tmp_path):
    """``ws`` is the workspace; ``secret`` and ``ws-evil`` are next to it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("hunter2")
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "file").write_text("hunter2")
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def root(directory):
    with WorkspaceRoot(directory) as root:
        yield root


@pytest.fixture
def desk(root):
    return WorkspaceContext(root, History(root))


@pytest.fixture
def workspace(directory):
    with Workspace(directory, approve="yolo") as workspace:
        yield workspace


@pytest.fixture
def run(workspace):
    """Run a tool that must succeed, and return the text."""

    def run(name, **arguments):
        result = workspace.run(name, arguments)
        assert result.ok, result.content
        return result.content

    return run


@pytest.fixture
def refusal(workspace):
    """Run a tool that must be refused, and return the message."""

    def refusal(name, **arguments):
        result = workspace.run(name, arguments)
        assert not result.ok, result.content
        assert result.content == f"tool_error: {result.error}"
        assert "Traceback" not in result.content
        return result.error

    return refusal


_seconds = itertools.count(1_000_000 + os.getpid() * 1_000)


@pytest.fixture
def nap():
    """Return a ``sleep`` command with a unique number of seconds."""
    return f"sleep {next(_seconds)}"
