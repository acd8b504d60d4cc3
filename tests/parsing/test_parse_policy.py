"""Which text may become a call, by policy."""

from __future__ import annotations

import pytest

from adapter.core.errors import UsageError
from adapter.dialects import get_dialect
from adapter.parsing.parse_policy import POLICIES, ParsePolicy
from adapter.parsing.parser import parse

TOOLS = get_dialect("blade").tools
READ = '{"name": "read_file", "arguments": {"path": "a.py"}}'
DELETE = '{"name": "delete_file", "arguments": {"path": "a.py"}}'


def tagged(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def fenced(body: str, kind: str = "json") -> str:
    return f"```{kind}\n{body}\n```"


@pytest.mark.parametrize(
    ("text", "policies"),
    [
        (tagged(READ), "strict safe approved lenient"),
        (tagged(DELETE), "strict safe approved lenient"),
        (tagged(READ.replace("}}", ",}}")), "safe approved lenient"),
        (tagged(READ.replace("path", "filename")), "safe approved lenient"),
        (READ, "safe approved lenient"),
        (fenced(READ), "safe approved lenient"),
        (f"I look.\n{READ}", "safe approved lenient"),
        (f"{READ}\nI look.", "lenient"),
        (f"{fenced(READ)}\nI look.", "lenient"),
        (DELETE, "approved lenient"),
        (fenced(DELETE), "approved lenient"),
        (fenced(tagged(DELETE), "xml"), "approved lenient"),
        (f"{DELETE}\nGone.", "lenient"),
        (f"<think>\n{tagged(READ)}\n</think>\nNo.", ""),
        (f"So: `{tagged(READ)}`", ""),
        ("> " + tagged(READ).replace("\n", "\n> "), ""),
        (f"```python\n{tagged(READ)}\n```", ""),
        (f"<tool_response>\n{tagged(READ)}\n</tool_response>", ""),
        (READ.replace("a.py", "<path>"), ""),
    ],
)
def test_what_each_policy_takes(text, policies):
    """A call is taken under these policies and under no other."""
    taken = [name for name in POLICIES if parse(text, TOOLS, policy=name).calls]
    assert taken == policies.split()


def test_a_change_without_markers_is_answered_with_how_to_write_it():
    """The message holds the call as it would count."""
    (wrong,) = parse(DELETE, TOOLS).invalid
    assert wrong.name == "delete_file"
    assert parse(wrong.error.split(":\n")[1], TOOLS).calls[0].arguments == {"path": "a.py"}


def test_strict_says_each_fault():
    """A model, or whoever tests one, hears what was wrong."""
    (wrong,) = parse(
        tagged("{'name': 'read_file', 'arguments': {'filename': 'a.py',}}"), TOOLS, policy="strict"
    ).invalid
    for fault in ("single quotes", "a comma before a closing bracket", "another name"):
        assert fault in wrong.error


def test_tools_of_a_client_may_say_what_they_do():
    """MCP's annotations are what a client knows of a tool's effect."""
    delete = {"name": "delete_file", "inputSchema": {"properties": {"path": {"type": "string"}}}}
    hints = {"annotations": {"readOnlyHint": False}}
    assert parse(DELETE, [delete]).calls
    assert parse(DELETE, [delete | hints]).invalid
    assert parse(DELETE, [delete | {"annotations": {"readOnlyHint": True}}]).calls


def test_a_policy_of_ones_own():
    """The named ones are only values."""
    assert parse(f"{READ}\nI look.", TOOLS, policy=ParsePolicy("mine", unmarked="reads", allow_midtext=True)).calls


def test_an_unknown_policy_is_refused():
    """With the names there are."""
    with pytest.raises(UsageError, match="strict, safe, approved, lenient"):
        parse(READ, TOOLS, policy="lax")
