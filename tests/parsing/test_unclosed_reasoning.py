"""A call at the end of reasoning that never closes: meant perhaps, so only what changes nothing is run."""

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
def test_only_tools_that_read_are_called_from_unclosed_reasoning(calls, count):
    """All of them, or none; behind a closing marker each is called."""
    text = "\n".join(calls)
    assert len(parse(f"<think>\nI should do this.\n{text}", BLADE, "hermes").calls) == count
    assert len(parse(f"<think>\nI should do this.\n</think>\n{text}", BLADE, "hermes").calls) == len(calls)


def test_an_alias_is_known_for_what_it_is():
    """Also another spelling of a tool that writes."""
    assert parse("<think>\nHm.\n" + WRITE.replace("write_file", "WriteFile"), BLADE, "hermes").calls == ()


def test_tools_that_nobody_described_are_for_the_reader_to_judge():
    """Without definitions nothing is known of what a tool does."""
    assert len(parse(f"<think>\nHm.\n{WRITE}", ToolSet(), "hermes").calls) == 1
