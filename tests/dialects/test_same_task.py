"""One task in every dialect: find the function, read it, change it, run the test. The result is the same workspace.

python -m tests.dialects.test_same_task     let the built-in model edit a file in all dialects; tests use two
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from adapter.agent.agent import Agent
from adapter.backends.builtin_model import download_builtin_model
from adapter.cli.run_settings import RunSettings
from adapter.cli.run_task import run_task
from adapter.core.events import JsonObject, ToolResult
from adapter.dialects import Dialect
from adapter.dialects.promptly import load_default_entries, make_dialect
from adapter.dialects.promptly.tools_file_entries import parse_entry
from adapter.workspace import Workspace
from tests.model_text import Script, call

Step: TypeAlias = tuple[str, JsonObject, str]
"""A tool, its arguments, and a part of its expected result."""

FILES = {
    "shop/prices.py": "RATE = 0.19\n\n\ndef with_tax(net):\n    return net * RATE\n\n\ndef label(net):\n"
    '    return f"{with_tax(net):.2f}"\n',
    "shop/__init__.py": "",
    "test_prices.py": "from shop.prices import label, with_tax\n\nassert with_tax(100) == 119\n"
    'assert label(100) == "119.00"\nprint("all passed")\n',
    "README.md": "# Shop\n\nPrices with_tax.\n",
}
EXPECTED = FILES | {"shop/prices.py": FILES["shop/prices.py"].replace("net * RATE", "net * (1 + RATE)")}
OLD = "def with_tax(net):\n    return net * RATE\n"
NEW = "def with_tax(net):\n    return net * (1 + RATE)\n"
TEST = f"{sys.executable} -B test_prices.py"

SCRIPTS: dict[str, Sequence[Step]] = {
    "blade": [
        ("run_command", {"command": TEST, "cwd": "."}, "AssertionError"),
        ("grep_search", {"pattern": r"def with_tax", "path": "."}, "shop/prices.py:4:def with_tax(net):"),
        ("read_file_range", {"path": "shop/prices.py", "start_line": 4, "end_line": 5}, "5:     return net * RATE"),
        ("apply_edit", {"path": "shop/prices.py", "old_text": OLD, "new_text": NEW}, "Applied 1 patch"),
        ("run_command", {"command": TEST, "cwd": "."}, "all passed"),
    ],
    "maki": [
        ("bash", {"command": TEST, "description": "Run the test", "timeout": 60}, "AssertionError"),
        ("grep", {"pattern": r"def with_tax", "include": "*.py"}, "shop/prices.py:\n  4: def with_tax(net):"),
        ("index", {"path": "{root}/shop/prices.py"}, "def with_tax(net) [4-5]"),
        ("read", {"path": "{root}/shop/prices.py", "offset": 4, "limit": 2}, "5:     return net * RATE"),
        ("edit", {"path": "{root}/shop/prices.py", "old_string": OLD, "new_string": NEW}, "Applied 1 patch"),
        ("bash", {"command": TEST, "description": "Run the test"}, "all passed"),
    ],
    "proxyai": [
        ("Bash", {"command": TEST, "timeout": 60_000}, "AssertionError"),
        ("IntelliJSearch", {"pattern": "with_tax", "fileType": "python"}, "shop/prices.py:4:5: def with_tax(net):"),
        ("Read", {"file_path": "{root}/shop/prices.py", "offset": 4, "limit": 2}, "5\t    return net * RATE"),
        (
            "Edit",
            {
                "file_path": "{root}/shop/prices.py",
                "old_string": OLD,
                "new_string": NEW,
                "short_description": "Add the net price",
            },
            "Replaced 1 occurrence",
        ),
        ("Bash", {"command": TEST, "run_in_background": True}, "bash_id shell_1"),
        ("Bash", {"command": TEST}, "all passed"),
        ("Exit", {}, ""),
    ],
    "proto": [  # it documents no shell: that the change has arrived is read
        ("grep_search", {"pattern": r"def with_tax", "glob": "*.py"}, "shop/prices.py:4:def with_tax(net):"),
        ("read_file", {"path": "{root}/shop/prices.py", "offset": 3, "limit": 2}, "    return net * RATE"),
        ("edit", {"file_path": "{root}/shop/prices.py", "old_string": OLD, "new_string": NEW}, "Applied 1 patch"),
        ("read_file", {"path": "{root}/shop/prices.py"}, "    return net * (1 + RATE)"),
    ],
    "promptly": [  # it has no shell, but whatever program its user defines
        ("RunScript", {"script": "test_prices.py"}, "AssertionError"),
        ("SearchText", {"pattern": "def with_tax", "path": "."}, "shop/prices.py:4:def with_tax(net):"),
        ("ShowFileContents", {"file": "shop/prices.py", "startLine": 3, "lineCount": 2}, "    return net * RATE"),
        ("SearchAndReplace", {"file": "shop/prices.py", "search": OLD, "replace": NEW}, "Applied 1 patch"),
        ("RunScript", {"script": "test_prices.py"}, "all passed"),
    ],
}
"""By dialect; ``{root}`` is the absolute path of the workspace."""


RUN_SCRIPT = {
    "name": "RunScript",
    "description": "Run a Python script",
    "executable": sys.executable,
    "argumentTemplate": [["-B", "{(script)}"]],
    "parameters": {"type": "object", "properties": {"script": {"type": "string"}}, "required": ["script"]},
}


def dialect_of(name: str) -> str | Dialect:
    return (
        make_dialect([parse_entry(RUN_SCRIPT, "tools.json"), *load_default_entries()]) if name == "promptly" else name
    )


def in_root(arguments: JsonObject, root: str) -> JsonObject:
    return {
        key: value.replace("{root}", root) if isinstance(value, str) and value.startswith("{root}") else value
        for key, value in arguments.items()
    }


@pytest.mark.parametrize("dialect", SCRIPTS)
def test_the_same_workspace_comes_out(dialect, tmp_path):
    """C088, C120, C147: the whole loop on real files, with a real shell if there is one."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    steps = SCRIPTS[dialect]
    results: list[ToolResult] = []

    def observe(happening):
        if isinstance(happening, ToolResult):
            results.append(happening)

    with Workspace(tmp_path, dialect_of(dialect), "yolo") as workspace:
        written = [call(name, **in_root(arguments, workspace.root)) for name, arguments, _ in steps]
        done = Agent(workspace, Script(*written, "It is done."), observe=observe).run("Correct with_tax.")
    assert done.reason == ("exited" if steps[-1][0] == "Exit" else "answered")
    for (name, _, expected), result in zip(steps, results, strict=True):
        assert (result.name, expected in result.content) == (name, True), result.content
    after = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == EXPECTED


@pytest.mark.parametrize("dialect", ["maki", "proto"])
def test_the_built_in_model_edits(dialect, tmp_path, real_weights):
    """C106, C164: a real 135M model makes constrained calls of each dialect's tools."""
    edit_with_model(dialect, tmp_path, real_weights)


def edit_with_model(dialect: str, tmp_path: Path, real_weights: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "settings.ini").write_text("[server]\nhost = 127.0.0.1\nport = 8000\n")
    settings = RunSettings(
        folder,
        model=str(real_weights),
        approve="yolo",
        dialect=dialect,
        constraint="required",
        state=tmp_path / "state",
    )
    run_task("In settings.ini change 'port = 8000' to 'port = 9000'", settings)
    assert (folder / "settings.ini").read_text() == "[server]\nhost = 127.0.0.1\nport = 9000\n"


if __name__ == "__main__":
    for name in SCRIPTS:
        with tempfile.TemporaryDirectory() as place:
            edit_with_model(name, Path(place), download_builtin_model())
        print(f"{name}: edited")
