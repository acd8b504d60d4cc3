"""A call at the end of reasoning that never closes may not be intended, so only reading tools are called."""

from __future__ import annotations

import pytest

from adapter.dialects import get_dialect
from adapter.parsing.parser import parse
from adapter.tools.tool import ToolSet

BLADE = get_dialect("blade").tools
READ = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
WRITE = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "content": "x"}}\n</tool_call>'
RUN = '<tool_call>\n{"name": "run_command", "arguments": {"command": "ls", "cwd": "."}}\n</tool_call>'


@pytest.mark.parametrize(
    ("calls", "count"), [((READ,), 1), ((READ, READ), 2), ((WRITE,), 0), ((RUN,), 0), ((READ, WRITE), 0)]
)
def test_unclosed_reasoning_calls_only_reading_tools(calls, count):
    """All of the calls, or none; after a closing marker each is accepted."""
    text = "\n".join(calls)
    assert len(parse(f"<think>\nI should do this.\n{text}", BLADE, "hermes").calls) == count
    assert len(parse(f"<think>\nI should do this.\n</think>\n{text}", BLADE, "hermes").calls) == len(calls)


def test_unclosed_reasoning_rejects_alias_of_writing_tool():
    assert parse("<think>\nHm.\n" + WRITE.replace("write_file", "WriteFile"), BLADE, "hermes").calls == ()


def test_unclosed_reasoning_accepts_calls_without_definitions():
    """Without definitions a tool's effect is unknown."""
    assert len(parse(f"<think>\nHm.\n{WRITE}", ToolSet(), "hermes").calls) == 1
