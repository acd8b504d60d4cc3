"""Plain lines mean what the library of command lines takes them for, and load no library."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from adapter.commands import front_page
from adapter.commands.app import COMMANDS as ALL
from adapter.commands.app import make_app
from adapter.commands.plain import COMMANDS, plain_arguments
from adapter.formats import FORMATS
from tests.command_line import adapter

APP: Any = typer.main.get_command(make_app())
PLAIN = {
    "parse": [
        [],
        ["a.txt"],
        ["-"],
        ["--json"],
        ["a.txt", "--json"],
        ["--json", "a.txt", "--format", "hermes"],
        ["--format", "hermes", "--dialect", "none", "--finish-reason", "length", "--policy", "strict", "a b.txt"],
        ["--format", "-", "-"],
        [""],
    ],
    "replay": [[], ["a.jsonl"], ["a", "--json", "b", "c.jsonl", "--update"], ["-"], ["a", "a"]],
}
LEFT = {
    "parse": [
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
    ],
    "replay": [["--help"], ["--run-commands", "a"], ["--approve", "all"], ["-x"], ["--json", "--json"], ["--", "a"]],
}


def lines(of):
    return [pytest.param(name, words, id=" ".join([name, *words])) for name, each in of.items() for words in each]


def understood(name, words):
    """What the library hands to the command; a list that nobody gave is none, and paths are words."""
    params = APP.commands[name].make_context(name, list(words)).params
    return {
        name: ([*map(str, value)] or None if isinstance(value, list | tuple) else value)
        for name, value in params.items()
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_the_library_has_the_same_defaults(name):
    """Whatever is not said."""
    shown = inspect.signature(import_module(COMMANDS[name].module).show).parameters
    given = understood(name, [])
    assert {each: shown[each].default for each in given if each in shown} == {
        each: given[each] for each in given if each in shown
    }
    assert {COMMANDS[name].file, *COMMANDS[name].flags.values(), *COMMANDS[name].options.values()} <= set(shown)


@pytest.mark.parametrize(("name", "words"), lines(PLAIN))
def test_a_plain_line_means_the_same(name, words):
    """To the library, too."""
    said = plain_arguments(COMMANDS[name], words)
    assert said is not None
    assert understood(name, words) == understood(name, []) | said


@pytest.mark.parametrize(("name", "words"), lines(LEFT))
def test_all_else_is_left_to_the_library(name, words):
    """Help, mistakes, and what is rarely said."""
    assert plain_arguments(COMMANDS[name], words) is None


def test_the_front_page_says_what_the_commands_say():
    """Each by the first paragraph of its own help, and each option; none is missing."""
    first = {name: APP.commands[name].help.partition("\n\n")[0].replace("\n", " ") for name in ALL}
    assert {name: first[name] for name in APP.commands} == front_page.COMMANDS
    assert [*front_page.COMMANDS] == [*APP.commands]
    options = {option.opts[0]: option.help for option in APP.get_params(typer.Context(APP))}
    assert options == front_page.OPTIONS


@pytest.mark.parametrize("width", ["80", "133"])
def test_the_library_shows_the_same_front_page(width, tmp_path):
    """In the place of its own."""
    plain = adapter("--help", cwd=tmp_path, env={"COLUMNS": width})
    by_library = adapter("--help", "--help", cwd=tmp_path, env={"COLUMNS": width})
    assert plain.stdout == by_library.stdout
    assert {len(line) for line in plain.stdout.splitlines()} == {int(width), 0}
    assert (plain.returncode, plain.stderr) == (by_library.returncode, by_library.stderr) == (0, "")


def test_colours_are_for_those_who_want_them(tmp_path):
    """And change nothing of the words."""
    plain = front_page.front_page("adapter", 80)
    coloured = front_page.front_page("adapter", 80, has_colours=True)
    assert "\033[1;36m" in coloured
    assert re.sub("\033\\[[0-9;]*m", "", coloured) == plain
    assert "\033" not in plain
    assert adapter("--help", cwd=tmp_path, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout.count("\033") == 0


def loaded_by(*words, code="import adapter.__main__"):
    """What a fresh interpreter prints for a command line, and the modules that it has then."""
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {code}"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    shown, _, loaded = done.stdout.rstrip().rpartition("\n")
    return shown, set(loaded.split())


LIBRARIES = {"typer", "rich", "pydantic", "openai", "jinja2", "rapidfuzz"}


MAKERS = {"dataclasses", "inspect", "hashlib", "copy", "pkgutil"}
"""Of the standard library: what takes as long to load as all that reads a call."""
CALL = '<tool_call>{"name": "cat", "arguments": {"filename": "a.py"}}</tool_call>'


def test_parsing_loads_no_library(tmp_path):
    """Neither that of command lines, nor pydantic, of which the tools of a dialect are made, nor what they do."""
    said = tmp_path / "said.txt"
    said.write_text(CALL, encoding="utf-8")
    shown, loaded = loaded_by("parse", said)
    assert "call: read_file" in shown
    heavy = {"adapter.operations", "adapter.workspace", "adapter.values.repair", "dataclasses", "inspect", "hashlib"}
    assert loaded.isdisjoint(LIBRARIES | heavy)


@pytest.mark.parametrize(
    ("text", "loads"),
    [(CALL, {"hermes"}), ("I look. [TOOL_CALLS]cat{}", {"hermes", "mistral"}), ("Just words.", {"hermes"})],
)
def test_a_told_format_loads_itself_and_those_whose_marker_the_text_has(text, loads):
    """And what makes values, which takes longer than to read them, is not loaded."""
    _, loaded = loaded_by(code=f"import adapter; adapter.parse({text!r}, format='qwen3')")
    assert {name for name in FORMATS if f"adapter.formats.{name}" in loaded} == loads
    assert loaded.isdisjoint(LIBRARIES | MAKERS)


def test_help_loads_nothing():
    """Of what the commands do, and no library."""
    shown, loaded = loaded_by("--help")
    assert "Read tool calls out of" in shown
    assert loaded.isdisjoint(LIBRARIES | {"adapter.formats", "adapter.reading", "dataclasses"})


EXCHANGE = {
    "kind": "exchange",
    "format": "hermes",
    "policy": "safe",
    "sent": {"messages": []},
    "tools": [{"type": "function", "function": {"name": "cat", "parameters": {"type": "object"}}}],
    "text": '<tool_call>{"name": "cat", "arguments": {}}</tool_call>',
    "calls": [{"name": "cat", "arguments": {}}],
}


def test_replaying_an_answer_loads_only_what_reads_one(tmp_path):
    """Beside pydantic, which checks the record: not what makes prompts, nor what does as tools are asked."""
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_text(json.dumps(EXCHANGE) + "\n", encoding="utf-8")
    shown, loaded = loaded_by("replay", recorded)
    assert "1 of 1 equal" in shown
    heavy = {"adapter.operations", "adapter.workspace", "adapter.prompting.prompt", "adapter.wire.options", "asyncio"}
    assert loaded.isdisjoint(LIBRARIES - {"pydantic"} | heavy | {"concurrent.futures"})


def test_replaying_a_conversation_loads_no_client_and_no_command_line():
    """Of model servers, nor what fills their templates: what the model said is in the record."""
    transcript = Path(__file__).parents[2] / "fixtures" / "transcripts" / "by-hand-six-turns.jsonl"
    shown, loaded = loaded_by("replay", transcript)
    assert "1 of 1 equal" in shown
    assert loaded.isdisjoint({"typer", "rich", "openai", "httpx", "asyncio", "tomllib", "jinja2", "ssl", "http.client"})
    assert loaded.isdisjoint({"adapter.upstream.transport", "adapter.outline.extract"})
