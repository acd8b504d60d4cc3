"""Files that run code later need approval even if edits do not, and SECURITY.md has the same table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from adapter.tools.operations import WriteText
from adapter.tools.operations.autorun_files import RUN_LATER, explain_autorun
from adapter.tools.operations.permissions import ApprovalRequest, PermissionPolicy
from tests.each import each

SECURITY = Path(__file__).parents[3] / "SECURITY.md"
HEAD = "| files | why |\n|---|---|\n"


def with_table(text: str) -> str:
    before, rest = text.split(HEAD)
    rows = "".join(
        f"| {', '.join(f'`{pattern}`' for pattern in patterns)} | {reason} |\n"
        for reason, patterns in RUN_LATER.items()
    )
    return before + HEAD + rows + rest[rest.index("\n\n") + 1 :]


@pytest.mark.parametrize("above", ["", "deep/in/"])
def test_each_is_asked_about(above):
    """In auto-edit, in any case, with the reason. Neighboring files do not."""
    patterns = [pattern for some in RUN_LATER.values() for pattern in some]
    each({pattern: pattern for pattern in patterns}, partial(is_asked_about, above=above))


def is_asked_about(pattern: str, above: str) -> None:
    path = above + pattern.replace("*", "x") + ("file" if pattern.endswith("/") else "")
    for spelt in (path, path.upper()):
        approval = ApprovalRequest("write", WriteText(spelt, ""), "write", "write", paths=(spelt,))
        assert PermissionPolicy("auto-edit").decide(approval)[0] == "ask", spelt
        assert approval.caution in RUN_LATER


@pytest.mark.parametrize("path", ["src/a.py", "conftest.py", "Makefile", "docs/package.json.md", "claude.py", "a.path"])
def test_others_are_not(path):
    """Files that run only when called, and similar names."""
    assert explain_autorun([path]) == ""


@pytest.mark.parametrize(
    "path",
    [
        *(".neovate/skills/x/run.sh", "a/.kode/agents/x.md", ".newagent/commands/go.md", ".some/plugin/x.js"),
        *(".some/plugins/x/index.ts", ".Some/Hooks/start.sh", ".x/rules/all.mdc", ".x/steering/y.md", ".x/mcp.json"),
    ],
)
def test_folders_of_unknown_agents_are_asked_about(path):
    """Every agent has its own folder, with similar files."""
    assert explain_autorun([path]).startswith("coding agents")


@pytest.mark.parametrize(
    "path", ["skills/x.md", "src/agents/a.py", "lib/plugins/x.ts", ".x/data.json", "src/rules/a.py"]
)
def test_folders_without_a_dot_are_not(path):
    assert explain_autorun([path]) == ""
