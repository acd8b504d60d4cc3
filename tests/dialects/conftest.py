"""A session with the dialect of the test module, in its own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapter.core.events import ToolResult
from adapter.workspace import Workspace


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def call(directory: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., ToolResult]]:
    """Run a tool of the module's ``DIALECT``."""
    with Workspace(directory, request.module.DIALECT, "yolo") as workspace:
        yield lambda name, **arguments: workspace.run(name, arguments)


@pytest.fixture
def run(call: Callable[..., ToolResult]) -> Callable[..., str]:
    """Run a tool that must succeed, and return the text."""

    def run(name: str, /, **arguments: object) -> str:
        result = call(name, **arguments)
        assert result.ok, result.content
        return result.content

    return run


@pytest.fixture
def refusal(call: Callable[..., ToolResult]) -> Callable[..., str | None]:
    """Run a tool that must be refused, and return the error."""

    def refusal(name: str, /, **arguments: object) -> str | None:
        result = call(name, **arguments)
        assert not result.ok, result.content
        return result.error

    return refusal
