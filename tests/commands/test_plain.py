"""A plain `adapter parse` means what the library of command lines takes it for, and loads no library."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import typer

from adapter.commands.app import make_app
from adapter.commands.parsed import show
from adapter.commands.plain import plain_parse

PARSE = typer.main.get_command(make_app(["parse"])).commands["parse"]  # type: ignore[attr-defined]
DEFAULTS = {name: each.default for name, each in inspect.signature(show).parameters.items()}
PLAIN = [
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
LEFT = [
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


def understood(words):
    """What the library hands to the command; a list that nobody gave is none."""
    params = PARSE.make_context("parse", list(words)).params
    return {name: None if value == () else value for name, value in params.items()}


def test_the_library_has_the_same_defaults():
    """Whatever is not said."""
    assert understood([]) == DEFAULTS


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_a_plain_line_means_the_same(words):
    """To the library, too."""
    said = plain_parse(words)
    assert said is not None
    assert understood(words) == DEFAULTS | said


@pytest.mark.parametrize("words", LEFT, ids=" ".join)
def test_all_else_is_left_to_the_library(words):
    """Help, mistakes, and what is rarely said."""
    assert plain_parse(words) is None


def test_a_plain_line_loads_no_library(tmp_path):
    """Neither that of command lines, nor pydantic, of which the tools of a dialect are made, nor what they do."""
    said = tmp_path / "said.txt"
    said.write_text('<tool_call>{"name": "cat", "arguments": {"filename": "a.py"}}</tool_call>', encoding="utf-8")
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); import adapter.__main__"
    done = subprocess.run([sys.executable, "-c", code, "parse", said], capture_output=True, text=True, check=True)
    shown, _, loaded = done.stdout.rstrip().rpartition("\n")
    assert "call: read_file" in shown
    heavy = {"typer", "rich", "pydantic", "openai", "jinja2", "rapidfuzz", "adapter.operations", "adapter.workspace"}
    assert heavy.isdisjoint(loaded.split())
