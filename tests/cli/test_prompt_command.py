"""`adapter prompt` describes the tools of a file."""

from __future__ import annotations

import json

import pytest

from adapter.prompting.system_prompt import system_prompt
from tests.command_line import adapter

FORECAST = {"name": "forecast", "description": "Look up the weather", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize("content", [[FORECAST], {"tools": [FORECAST]}])
def test_tools_of_a_file_are_described(tmp_path, content):
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    done = adapter("prompt", "--tools", file)
    assert done.stdout == system_prompt(tools=[FORECAST])
    assert "forecast() - Look up the weather" in done.stdout


def test_missing_file_is_an_error(tmp_path):
    done = adapter("prompt", "--tools", tmp_path / "none.json")
    assert done.returncode == 2
    assert "cannot read tool definitions" in done.stderr


@pytest.mark.parametrize("style", ["compact", "args", "full", "trained", "small", "bare", "native"])
def test_prompt_for_own_tools_does_not_mention_files(style):
    """The dialect by default, whose instructions name its tools, is not the one of the tools."""
    prompt = system_prompt(style=style, tools=[FORECAST])
    assert not any(word in prompt for word in ("folder", "file", "edit", "coding"))


@pytest.mark.parametrize("dialect", ["blade", "proto", "maki"])
def test_prompt_names_only_tools_that_are_offered(dialect):
    from adapter.dialects import get_dialect

    readers = [tool for tool in get_dialect(dialect).tools.values() if tool.effect == "read"]
    instructions = system_prompt(dialect, tools=readers).partition("Tools (")[0]
    assert "folder" in instructions
    assert "edit" not in instructions
    assert "bash" not in instructions
