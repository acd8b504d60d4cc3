"""The commands and the program of docs/agent.md run as shown, with a scripted model."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.agent.test_agent import in_pieces
from tests.command_line import adapter
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"(?<!<!-- cell -->\n)```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    command
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in block.replace("\\\n", " ").splitlines()
]
WRITTEN = "http://127.0.0.1:8080"
"""The address in the examples, which is replaced by the scripted server's."""


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


@pytest.fixture
def server(scripted: ScriptedServer) -> ScriptedServer:
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}]}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a reader who follows the page: a project, a file, a separate home."""
    project = tmp_path / "here" / "my-project"
    project.mkdir(parents=True)
    (project / "greeting.py").write_text("def greeting():\n    return 'hello'\n", encoding="utf-8")
    (tmp_path / "here" / "notes.txt").write_text("one two three\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


RENAME = call("apply_edit", '{"path": "greeting.py", "old_text": "def greeting():", "new_text": "def hello():"}')


def test_the_program_prints_the_answers(folder, server, capsys):
    """Only the server's address is replaced."""
    server.on(CHAT, *map(in_pieces, (RENAME, "Renamed it.", "Only greeting.py.")))
    exec(PROGRAM.replace(WRITTEN, server.url), {"__name__": "__main__"})
    assert capsys.readouterr().out == "answered Renamed it.\nOnly greeting.py.\n"
    assert "def hello" in (folder / "my-project" / "greeting.py").read_text(encoding="utf-8")


def run(command: str, folder: Path, server: ScriptedServer, **environment: str) -> subprocess.CompletedProcess[str]:
    name, *words = shlex.split(command)
    assert name == "adapter"
    return adapter(*words, cwd=folder, env={"OPENAI_BASE_URL": server.url, **environment})


def test_a_program_joins_and_is_used(folder, server):
    """It is added, listed and offered. A call asks for approval, but there is no user."""
    add, listed, use = (
        command for command in COMMANDS if "CountWords" in command or "promptly" in command or "tool list" in command
    )
    assert "added CountWords" in run(add, folder, server).stderr
    assert re.search(r"^CountWords +user +wc ", run(listed, folder, server).stdout, re.MULTILINE)
    server.on(CHAT, in_pieces(call("CountWords", '{"file": "notes.txt"}')), in_pieces("I may not count."))
    done = run(use, folder, server)
    assert "CountWords" in server.bodies()[0]["messages"][0]["content"]
    assert "run " in done.stderr
    assert "wc -w notes.txt" in done.stderr
    assert "I may not count." in done.stdout


@pytest.mark.skipif(find_spec("mcp") is None, reason="needs the MCP SDK: pip install 'toolcall-adapter[mcp]'")
def test_the_tools_of_a_server_join(folder, server, tmp_path):
    """The command is the page's, but `uvx` starts our example server."""
    (command,) = (command for command in COMMANDS if "--mcp" in command)
    (tmp_path / "bin").mkdir()
    uvx = tmp_path / "bin" / "uvx"
    uvx.write_text(
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m tests.mcp_example\n"
    )
    uvx.chmod(0o755)
    server.on(CHAT, in_pieces(call("add", '{"first": 2, "second": 3}')), in_pieces("Five branches."))
    path = os.pathsep.join((str(uvx.parent), os.environ["PATH"]))
    done = run(command, folder, server, PATH=path)
    assert "Five branches." in done.stdout, done.stderr
    assert "<- 5" in done.stderr
    assert "sandbox: NONE for add (the MCP server 'uvx')" in done.stderr


def test_a_run_is_recorded_and_replayed(folder, server):
    """In one file, without a server the second time."""
    record, replay = (command for command in COMMANDS if "talk.jsonl" in command)
    server.on(CHAT, in_pieces(call("read_file", '{"path": "notes.txt"}')), in_pieces("Three."))
    assert run(record, folder, server).stdout == "Three.\n"
    done = run(replay, folder, server, OPENAI_BASE_URL="http://127.0.0.1:9")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_is_here():
    """A new command needs a test, unless only its options can be checked (tests/test_docs.py)."""
    checked = ["run", "chat", "chat", "chat", "chat", "diff", "run"]
    run_here = ["tool", "tool", "run", "run", "run", "replay"]
    assert [command.split()[1] for command in COMMANDS] == checked + run_here
