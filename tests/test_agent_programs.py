"""The programs of benchmarks/agent_programs, for this and other libraries, and their table in the docs."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_agent import in_pieces
from tests.clients.environments import Client
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_json, as_stream, delta
from tests.test_examples import ROOT, WRITTEN, call

FOLDER = ROOT / "benchmarks" / "agent_programs"
PROGRAMS = {"approval of one of two functions": "approval", "two functions, asyncio or streaming": "stream"}
"""The programs by their names in the table."""
LIBRARIES = {
    "toolcall-adapter": None,
    "pydantic-ai": "pydantic-ai-slim[openai]==2.68.0",
    "openai-agents": "openai-agents==0.24.0",
    "smolagents": "smolagents[openai]==1.26.0",
}
"""The libraries in the order of the table's columns, with the package to install."""
CALLS = [("open_invoices", {"customer": "Acme"}), ("send_reminder", {"invoice": "Acme-1"})]
ANSWER = "Acme is reminded of Acme-1."


def file_of(library: str, program: str) -> Path:
    name = "adapter" if library == "toolcall-adapter" else library.replace("-", "_")
    return FOLDER / f"{name}_{program}.py"


def count_lines(file: Path) -> int:
    return sum(bool(line.strip()) for line in file.read_text(encoding="utf-8").splitlines())


def test_table_has_the_lines_of_each_program():
    page = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    table = page.partition("| program | ")[2].partition("\n\n")[0]
    assert table.splitlines()[0] == " | ".join(LIBRARIES) + " |"
    for label, program in PROGRAMS.items():
        lines = [count_lines(file_of(library, program)) for library in LIBRARIES]
        assert f"| {label} | {' | '.join(map(str, lines))} |" in table
        assert lines[0] <= min(lines)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_programs_are_valid(file):
    """Also without the packages that they import."""
    compile(file.read_text(encoding="utf-8"), str(file), "exec")
    assert len(list(FOLDER.glob("*.py"))) == len(PROGRAMS) * len(LIBRARIES)


@pytest.mark.parametrize("program", PROGRAMS.values())
def test_our_programs_run(program, scripted: ScriptedServer, monkeypatch, capsys):
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    scripted.on(CHAT, *(in_pieces(call(name, json.dumps(arguments))) for name, arguments in CALLS), in_pieces(ANSWER))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    file = file_of("toolcall-adapter", program)
    source = file.read_text(encoding="utf-8").replace(WRITTEN, scripted.url)
    exec(compile(source, str(file), "exec"), {"__name__": "__main__"})
    assert ANSWER in capsys.readouterr().out


def native_replies(library: str, *, stream: bool) -> Iterator[Reply]:
    """Yield the replies of a server that parses calls itself, as these libraries expect."""
    answer = [("final_answer", {"answer": ANSWER})] if library == "smolagents" else []
    for number, (name, arguments) in enumerate([*CALLS, *answer]):
        function = {"name": name, "arguments": json.dumps(arguments)}
        tool_call: dict[str, Any] = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        if stream:
            yield as_stream(delta(role="assistant", tool_calls=[tool_call]), delta(finish_reason="tool_calls"))
        else:
            yield completed({"content": None, "tool_calls": [tool_call]}, "tool_calls")
    yield as_stream(delta(ANSWER), delta(finish_reason="stop")) if stream else completed({"content": ANSWER}, "stop")


def completed(message: dict[str, Any], finish_reason: str) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    about = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return as_json(200, {**about, "choices": [choice], "usage": usage})


@pytest.mark.clients
@pytest.mark.timeout(600)
@pytest.mark.parametrize("program", PROGRAMS.values())
@pytest.mark.parametrize("library", [name for name, package in LIBRARIES.items() if package])
def test_programs_of_other_libraries_run(library, program, scripted: ScriptedServer, tmp_path):
    client = Client(name=f"program-{library}", packages=(str(LIBRARIES[library]),), ways=())
    try:
        client.install()
    except RuntimeError as error:
        pytest.skip(f"{library} cannot be had: {str(error)[-200:]}")
    scripted.on(CHAT, *native_replies(library, stream=program == "stream"))
    file = tmp_path / "program.py"
    source = file_of(library, program).read_text(encoding="utf-8")
    file.write_text(source.replace(WRITTEN, scripted.url), encoding="utf-8")
    command = [str(client.programs / "python"), str(file)]
    done = subprocess.run(command, input="y\n", capture_output=True, text=True, timeout=300, check=False)
    assert ANSWER in done.stdout, done.stderr[-2000:]
    asked = re.search(r"send_reminder.*\? ", done.stdout)
    assert bool(asked) == (program == "approval")
