"""A folder with a file to change, and a model server with one model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripted_server import MODELS, ScriptedServer, as_json


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def server(scripted: ScriptedServer) -> ScriptedServer:
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))


def text_of(root: Path) -> str:
    return (root / "a.txt").read_text(encoding="utf-8")
