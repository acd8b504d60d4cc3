"""The public API is a short list, and importing the package is cheap."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import adapter

CORE = {
    *("Agent", "Parser", "Transcript", "Workspace", "guess_format", "parse", "patch_text", "system_prompt", "tool"),
    "wrap",
}
SUPPORTING = {
    *("AsyncAgent", "ChatClient", "Host", "Tool", "derive", "replay"),
    *("ApprovalRequest", "ApprovalDecision", "PermissionRule"),
    *("Guardrails", "Steps", "Accept", "Retry", "Stop"),
    *("Turn", "ToolResult", "TextDelta", "ReasoningDelta", "MarkupDelta", "ContentReclassified", "ToolCall"),
    "ReasoningReclassified",
    *("ToolCallProgress", "ToolCallDelta", "RejectedCall", "InvalidToolCall"),
    *("AdapterError", "FormatError", "ToolError", "EditError", "DeniedError", "TransportError", "UsageError"),
}
"""Arguments, results, events and errors of the core names."""
NAMES = sorted(CORE | SUPPORTING)


def test_all_lists_exactly_the_public_names_and_aliases():
    """The names are a promise, so a new one is a decision."""
    assert adapter.__all__ == sorted([*NAMES, *adapter.ALIASES])
    assert set(dir(adapter)) == {*adapter.__all__, "__version__"}


@pytest.mark.parametrize("name", NAMES)
def test_public_name_is_importable_and_documented(name):
    """A name is loaded from its module on first use."""
    assert getattr(adapter, name).__name__ == name
    assert inspect.getdoc(getattr(adapter, name))


@pytest.mark.parametrize(("alias", "name"), sorted(adapter.ALIASES.items()))
def test_alias_is_the_object_of_its_new_name(alias, name):
    assert getattr(adapter, alias) is getattr(adapter, name)


@pytest.mark.parametrize(
    ("owner", "alias", "name"),
    [
        ("ChatClient", "own_prompt", "discover_own_prompt"),
        ("ChatClient", "body", "build_body"),
        ("ChatClient", "request", "build_request"),
        ("ChatClient", "sdk_settings", "build_sdk_settings"),
        ("Guardrails", "without_forbidden", "remove_forbidden"),
        ("Guardrails", "drop_reason", "find_drop_reason"),
        ("Guardrails", "faults", "find_faults"),
        ("Tool", "schema_of", "find_schema"),
        ("Workspace", "operation_of", "find_operation"),
        ("Workspace", "subsession", "open_subsession"),
    ],
)
def test_method_keeps_its_earlier_name(owner, alias, name):
    methods = getattr(adapter, owner)
    assert getattr(methods, alias) is getattr(methods, name)


def test_every_public_name_has_a_module_and_a_type():
    """The table of modules matches the imports for type checkers."""
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


def test_unknown_name_error_lists_the_public_names():
    with pytest.raises(AttributeError, match="it has: Accept, AdapterError, Agent"):
        adapter.Praser  # noqa: B018


def test_parse_loads_no_heavy_dependency():
    """The parser needs neither a server's client nor pydantic."""
    code = "import sys, adapter; adapter.parse('Hi'); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"openai", "httpx", "httpx2", "pydantic", "rich", "typer", "jinja2", "rapidfuzz"}.isdisjoint(loaded)


def test_earlier_module_paths_keep_working():
    for name in ("adapter.engines.ray_serve", "adapter.engines.sglang", "adapter.testing"):
        assert find_spec(name) is not None, name
