"""Imports point one way, from folder to folder and from file to file, and only the outer folders touch the world.

python -m tests.test_layers         the folders from the bottom up, with their files and lines, and any circle
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent / "adapter"
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

# From the bottom up: a file may import from the folders above its own line here, and from its own folder.
FOLDERS = [
    "values", "text", "operations", "tools",
    "reading", "reading.bodies", "formats",
    "outline", "outline.languages", "edits",
    "dialects", "dialects.blade", "dialects.maki", "dialects.promptly", "dialects.proxyai",
    "constraints", "prompting", "prompting.intent", "prompting.deriving", "conversation.guardrails", "conversation",
    "wire",
    "workspace.paths", "workspace.processes", "workspace.changes", "workspace.files", "workspace.hosted", "workspace",
    "upstream", "upstream.probing", "agent", "transcripts", "mcp", "server.telemetry", "server", "engines", "batch",
    "testing", "evaluating", "commands",
]  # fmt: skip

PURE = {
    "values", "text", "operations", "tools", "reading", "reading.bodies", "formats", "edits", "outline.languages",
    "dialects", "dialects.blade", "dialects.maki", "dialects.promptly", "dialects.proxyai",
    "constraints", "prompting.deriving", "conversation.guardrails", "conversation", "wire",
}  # fmt: skip
"""What these compute depends on what they are given, and on nothing else."""
TOUCHING = {
    "adapter.dialects.promptly.toolfiles",
}
"""Files in pure folders that do read from disk, and say so."""

WORLD = {
    "os", "pathlib", "socket", "subprocess", "openai", "httpx", "httpx2", "time", "threading", "asyncio",
    "tempfile", "shutil", "http", "urllib",
}  # fmt: skip


def folder_of(module: str) -> str:
    """The folder of a file below ``adapter/``, with dots; empty for what stands at its top."""
    parts = module.split(".")[1:]
    return ".".join(parts if MODULES[module].name == "__init__.py" else parts[:-1])


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere: within functions and for type checkers, too. "." for a relative one."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    if module == "pathlib" and alias.name.startswith("Pure"):
                        continue  # paths as text, without a disk
                    inner = f"{module}.{alias.name}"
                    yield inner if inner in MODULES else module
            case ast.ImportFrom():
                yield "."


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> tuple[str, ...]:
    return tuple(imports(tree_of(module)))


def graph() -> dict[str, set[str]]:
    """The files that each file imports."""
    return {module: {name for name in imports_of(module) if name in MODULES} - {module} for module in MODULES}


def circle(edges: Mapping[str, set[str]]) -> list[str]:
    """One circle of ``edges``, empty when there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


INNER = [name for name in MODULES if folder_of(name)]


def test_pure_modules_do_not_touch_the_world():
    """No disk, no process, no socket, no clock."""
    touching = {
        module
        for module in INNER
        if folder_of(module) in PURE and any(name.split(".")[0] in WORLD for name in imports_of(module))
    }
    assert touching == TOUCHING


def test_imports_point_down():
    """A file knows what lies below its folder, never what uses it: not within functions, not for type checkers."""
    floor = {module: FOLDERS.index(folder_of(module)) for module in INNER}
    assert [(one, other) for one in INNER for other in imports_of(one) if floor.get(other, -1) > floor[one]] == []


def test_no_file_is_in_a_circle():
    """Each can be read, and understood, after those that it imports."""
    assert circle(graph()) == []


def test_the_list_of_folders_is_whole():
    """A new folder is placed by whoever adds it."""
    assert set(FOLDERS) == {folder_of(module) for module in INNER}


def test_a_newcomer_meets_few_names():
    """At the top, and in each room of the workspace."""
    assert len([path for path in ROOT.iterdir() if not path.name.startswith("__") and path.name != "py.typed"]) <= 26
    for room in (ROOT / "workspace").iterdir():
        assert len(list(room.glob("[!_]*.py"))) <= 14, room.name


def test_every_file_and_folder_says_what_it_is_for():
    """In its first sentence."""
    assert [module for module in INNER if not ast.get_docstring(tree_of(module))] == []


def test_imports_are_absolute():
    """A reader sees from the line where a name comes from."""
    assert [module for module in MODULES if "." in imports_of(module)] == []


def test_a_format_builds_on_one_other_at_most():
    """A format is one file beside shared readers, or a variant of one other; only the registry knows them all."""
    from adapter.formats import FORMATS

    homes = {f"adapter.formats.{name}" for name in FORMATS}
    for module in homes & MODULES.keys():
        assert len((homes - {module}) & set(imports_of(module))) <= 1, module


def test_each_folder_is_named_for_newcomers():
    """A newcomer finds every one in the table, and none that is gone."""
    table = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| folder of `adapter/` |")[2]
    named = {name for row in table.partition("\n\n")[0].splitlines() for name in re.findall(r"`(\w+)/`", row)}
    assert named == {path.parent.name for path in ROOT.glob("*/__init__.py")}


if __name__ == "__main__":
    for folder in FOLDERS:
        paths = [MODULES[module] for module in INNER if folder_of(module) == folder]
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        print(f"{folder:24} {len(paths):4} files {lines:6} lines")
    found = circle(graph())
    print("circles:", " -> ".join(found) if found else "none")
