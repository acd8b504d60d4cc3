"""The public API is a short list, and importing the package costs nothing."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import adapter
from adapter import ALIASES

THE_TEN = {
    "Agent",
    "Parser",
    "Transcript",
    "Workspace",
    "guess_format",
    "parse",
    "patch_text",
    "system_prompt",
    "tool",
    "wrap",
}
BESIDE_THEM = {
    # what else a program is made of
    *("AsyncAgent", "ChatClient", "Host", "Tool", "derive", "replay"),
    # what it is asked, and answers
    *("ApprovalRequest", "ApprovalDecision", "PermissionRule"),
    # what a text is read as, and a call answered with
    *("Guardrails", "Steps", "Accept", "Retry", "Stop"),
    *("Turn", "ToolResult", "TextDelta", "ReasoningDelta", "MarkupDelta", "ContentReclassified", "ToolCall"),
    "ReasoningReclassified",
    *("ToolCallProgress", "ToolCallDelta", "RejectedCall", "InvalidToolCall"),
    # what is raised
    *("AdapterError", "FormatError", "ToolError", "EditError", "DeniedError", "TransportError", "UsageError"),
}
"""What a user of the ten needs: their arguments, results, events and errors."""
NAMES = sorted(THE_TEN | BESIDE_THEM)


def test_the_public_names_are_exactly_these():
    """The names are promised; another is a decision."""
    assert adapter.__all__ == sorted([*NAMES, *ALIASES])
    assert set(dir(adapter)) == {*NAMES, *ALIASES, "__version__"}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there(name):
    """A name comes from its module on first use, and says what it is."""
    assert getattr(adapter, name).__name__ == name
    assert inspect.getdoc(getattr(adapter, name))


def test_every_public_name_has_a_home_and_a_type():
    """The table of homes and the imports for type checkers say the same."""
    tree = ast.parse(Path(adapter.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("adapter.")
        for alias in node.names
        if alias.name != "__version__"
    }
    assert typed == adapter._HOME
    assert sorted(adapter._HOME) == NAMES


def test_an_unknown_name_lists_the_known():
    """A misspelt name is answered with what there is."""
    with pytest.raises(AttributeError, match="it has: Accept, AdapterError, Agent"):
        adapter.Praser  # noqa: B018


def test_reading_text_loads_nothing_heavy():
    """A parser needs neither a server's client nor pydantic."""
    code = "import sys, adapter; adapter.parse('Hi'); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"openai", "httpx", "httpx2", "pydantic", "rich", "typer", "jinja2", "rapidfuzz"}.isdisjoint(loaded)


def test_earlier_paths_of_modules_keep_working():
    for name in ("adapter.engines.ray_serve", "adapter.engines.sglang", "adapter.testing"):
        assert find_spec(name) is not None, name


def test_an_earlier_name_is_the_new_object():
    assert ALIASES
    for old, new in ALIASES.items():
        assert getattr(adapter, old) is getattr(adapter, new)
        assert old in adapter.__all__
