"""A workspace in a directory of its own, with something worth protecting beside it."""

import itertools
import os

import pytest

from adapter.workspace import Workspace
from adapter.workspace.changes.history import History
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.paths.resolver import WorkspaceRoot


@pytest.fixture
def directory(tmp_path):
    """``ws`` is the workspace; ``secret`` and ``ws-evil`` are its neighbours."""
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
    """Run a tool that must succeed; gives the text."""

    def run(name, **arguments):
        result = workspace.run(name, arguments)
        assert result.ok, result.content
        return result.content

    return run


@pytest.fixture
def refusal(workspace):
    """Run a tool that must be refused; gives the message."""

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
    """``sleep`` for a number of seconds that no other process on this machine sleeps for."""
    return f"sleep {next(_seconds)}"
