"""The client configurations in docs/clients.md are valid, and the programs of docs/ for notebooks, vLLM and tests run.

The configurations themselves are tested with the clients: `pytest -m clients tests/clients`.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_agent import in_pieces
from tests.clients.environments import PAGE, WRITTEN, settings
from tests.clients.listed import COMMANDS
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json

ROOT = Path(__file__).parent.parent


def blocks(page: str, mark: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"<!-- {mark} -->\n```python\n(.*?)```", text, re.DOTALL)


def test_each_configuration_is_well_formed():
    """Each is also used by a client test."""
    tried = {text for client in COMMANDS for text in client.files.values()}
    names = re.findall(r"<!-- config: (\w+) -->", PAGE.read_text(encoding="utf-8"))
    assert names == ["opencode", "codex", "continue"]
    assert {settings(name) for name in names} <= tried
    codex = tomllib.loads(settings("codex"))
    assert codex["model_providers"][codex["model_provider"]]["base_url"] == f"{WRITTEN}/v1"
    opencode = json.loads(settings("opencode"))
    provider, _, model = opencode["model"].partition("/")
    assert opencode["provider"][provider]["options"]["baseURL"] == f"{WRITTEN}/v1"
    assert model in opencode["provider"][provider]["models"]


def test_the_configuration_of_continue_is_well_formed():
    yaml = pytest.importorskip("yaml", reason="needs pyyaml")
    (model,) = yaml.safe_load(settings("continue"))["models"]
    assert (model["provider"], model["apiBase"]) == ("openai", f"{WRITTEN}/v1")


def test_the_cells_of_the_notebook_run(scripted: ScriptedServer, tmp_path, monkeypatch, capsys):
    """In order, in a running event loop."""
    monkeypatch.chdir(tmp_path)
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    asked = '<tool_call>\n{"name": "sales_of", "arguments": {"region": "south"}}\n</tool_call>'
    scripted.on(CHAT, *map(in_pieces, (asked, "South: 200.", "By 105.")))
    names: dict[str, Any] = {}

    async def notebook() -> None:
        for cell in blocks("agent.md", "cell"):
            source = cell.replace("http://127.0.0.1:8080", scripted.url)
            ran = eval(compile(source, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.isawaitable(ran):
                await ran

    asyncio.run(notebook())
    said = capsys.readouterr().out
    assert "[60, 75, 200]" in said.replace("\n", " ")
    assert said.endswith("South: 200.\nBy 105.\n")


def test_the_client_of_vllm_prints_the_call(scripted: ScriptedServer, capsys):
    """With a server that answers like vLLM."""
    (source,) = blocks("engines.md", "python: client")
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = {"id": "a", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    scripted.on(CHAT, as_json(200, answer))
    exec(source.replace("http://127.0.0.1:8000", scripted.url), {})
    assert capsys.readouterr().out == 'get_weather {"city": "Rome"}\n'
    (asked,) = scripted.bodies()
    assert asked["tools"][0]["function"]["name"] == "get_weather"


def test_the_test_in_the_recipe_passes(tmp_path):
    names: dict[str, Any] = {}
    (source,) = blocks("testing.md", "python: a test of a tool")
    exec(source, names)
    names["test_the_tool_accepts_the_arguments_of_models"](tmp_path)
