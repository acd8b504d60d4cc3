"""The fast path of `adapter parse` agrees with Typer, and commands import only the modules that they need."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from adapter.cli import parse_output
from adapter.cli.app import make_app
from adapter.cli.main import OPTIONS, parse_fast_arguments
from tests.command_line import adapter

APP: Any = typer.main.get_command(make_app())
FAST = [
    [],
    ["a.txt"],
    ["-"],
    ["--json"],
    ["a.txt", "--json"],
    ["--json", "a.txt", "--format", "hermes"],
    ["--format", "hermes", "--dialect", "none", "--finish-reason", "length", "--policy", "strict", "a b.txt"],
    ["--format", "-", "-"],
    [""],
]
SLOW = [
    ["--help"],
    ["--explain", "a.txt"],
    ["--format=hermes"],
    ["--format"],
    ["--format", "--json"],
    ["--jso"],
    ["a.txt", "b.txt"],
    ["--json", "--json"],
    ["--", "-a.txt"],
    ["--tools", "tools.json"],
    ["-x"],
]


def read_by_typer(words):
    """Return the arguments that Typer passes to the command."""
    params = APP.commands["parse"].make_context("parse", list(words)).params
    return {name: list(value) or None if isinstance(value, list | tuple) else value for name, value in params.items()}


def test_fast_path_has_the_defaults_of_typer():
    shown = inspect.signature(parse_output.print_parse_result).parameters
    assert {name: each.default for name, each in shown.items()} == read_by_typer([])
    assert {*OPTIONS.values(), "as_json", "file"} <= set(shown)


@pytest.mark.parametrize("words", FAST, ids=" ".join)
def test_fast_path_agrees_with_typer(words):
    arguments = parse_fast_arguments(words)
    assert arguments is not None
    assert read_by_typer(words) == read_by_typer([]) | arguments


@pytest.mark.parametrize("words", SLOW, ids=" ".join)
def test_unknown_arguments_fall_back_to_typer(words):
    """Help, mistakes and rare options."""
    assert parse_fast_arguments(words) is None


@pytest.mark.parametrize("width", [60, 80, 110])
@pytest.mark.parametrize("words", [["--help"], ["parse", "--help"], ["tool", "-h"]], ids=" ".join)
def test_help_fits_the_terminal(words, width, tmp_path):
    """Without colors, and without a type next to flags."""
    done = adapter(*words, cwd=tmp_path, env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    longest = max(len(line) for line in done.stdout.splitlines())
    assert min(width, 100) - 25 < longest <= width
    assert "<bool>" not in done.stdout
    assert "\033" not in done.stdout


def loaded_by(*words, code="import adapter.__main__"):
    """Return the output of a new interpreter for a command line, and the modules that it has imported."""
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {code}"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    shown, _, loaded = done.stdout.rstrip().rpartition("\n")
    return shown, set(loaded.split())


LIBRARIES = {"typer", "rich", "pydantic", "openai", "jinja2", "rapidfuzz"}


CALL = '<tool_call>{"name": "cat", "arguments": {"filename": "a.py"}}</tool_call>'


def test_parse_imports_no_library(tmp_path):
    output = tmp_path / "said.txt"
    output.write_text(CALL, encoding="utf-8")
    shown, loaded = loaded_by("parse", output)
    assert "call: read_file" in shown
    assert loaded.isdisjoint(LIBRARIES | {"adapter.tools.operations", "adapter.workspace", "adapter.core.json.repair"})


def test_help_imports_only_typer():
    shown, loaded = loaded_by("--help")
    assert "Extract tool calls from" in shown
    assert loaded.isdisjoint(LIBRARIES - {"typer"} | {"adapter.parsing.formats", "adapter.parsing"})


EXCHANGE = {
    "kind": "exchange",
    "format": "hermes",
    "policy": "safe",
    "sent": {"messages": []},
    "tools": [{"type": "function", "function": {"name": "cat", "parameters": {"type": "object"}}}],
    "text": '<tool_call>{"name": "cat", "arguments": {}}</tool_call>',
    "calls": [{"name": "cat", "arguments": {}}],
}


def test_replaying_a_recording_imports_only_the_parser(tmp_path):
    """Apart from Typer, and pydantic, which validates the recording."""
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_text(json.dumps(EXCHANGE) + "\n", encoding="utf-8")
    shown, loaded = loaded_by("replay", recorded)
    assert "1 of 1 equal" in shown
    heavy = {
        "adapter.tools.operations",
        "adapter.workspace",
        "adapter.prompting.system_prompt",
        "adapter.protocols.translation_options",
        "asyncio",
    }
    assert loaded.isdisjoint(LIBRARIES - {"pydantic", "typer"} | heavy | {"concurrent.futures"})


def test_replaying_a_transcript_imports_no_client():
    transcript = Path(__file__).parents[2] / "fixtures" / "transcripts" / "by-hand-six-turns.jsonl"
    shown, loaded = loaded_by("replay", transcript)
    assert "1 of 1 equal" in shown
    # It loads tomllib for the table of languages, to check the syntax of the files that it edits.
    assert loaded.isdisjoint({"rich", "openai", "httpx", "asyncio", "jinja2", "ssl", "http.client"})
    assert loaded.isdisjoint({"adapter.backends.chat_client", "adapter.outline.extractor"})
