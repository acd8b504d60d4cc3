"""Imports point one way, and only the outer modules touch the world."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "adapter"
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

# From the bottom up: a module may import from the groups below its own, and from its own group. Of two names
# that a module is within, the lower counts.
LAYERS = [
    ["adapter.events", "adapter.errors", "adapter.fixes", "adapter.rejections", "adapter.explanation"],
    ["adapter.operations", "adapter.text", "adapter.command_words", "adapter.customary"],
    ["adapter.policy", "adapter.approval", "adapter.host"],
    ["adapter.repair"],
    ["adapter.tools"],
    ["adapter.schema"],
    ["adapter.formats"],
    ["adapter.calls", "adapter.neutral"],
    ["adapter.parser"],
    ["adapter.edits", "adapter.outline"],
    ["adapter.dialects"],
    ["adapter.functions"],
    ["adapter.constraints"],
    ["adapter.examples", "adapter.resources"],
    ["adapter.prompt"],
    ["adapter.conversation"],
    ["adapter.probing.setups"],
    ["adapter.wire"],
    ["adapter.transcripts.transcript", "adapter.transcripts.exchanges"],
    ["adapter.workspace"],
    ["adapter.upstream"],
    ["adapter.probing", "adapter.wrapped"],
    ["adapter.agent"],
    ["adapter.transcripts", "adapter.toolfiles", "adapter.mcp"],
    ["adapter.subagents"],
    ["adapter.doctor", "adapter.server"],
    ["adapter.commands"],
    ["adapter.cli"],
    ["adapter.__main__"],
]
"""Every module stands here: a new one is placed by whoever adds it."""

PURE = [
    "adapter.events", "adapter.errors", "adapter.operations", "adapter.text", "adapter.tools", "adapter.fixes",
    "adapter.repair", "adapter.schema", "adapter.calls", "adapter.parser", "adapter.formats", "adapter.edits",
    "adapter.dialects", "adapter.constraints", "adapter.examples", "adapter.conversation", "adapter.approval",
    "adapter.policy", "adapter.rejections", "adapter.explanation", "adapter.host", "adapter.command_words",
    "adapter.functions", "adapter.wire", "adapter.neutral", "adapter.customary", "adapter.probing.setups",
    "adapter.transcripts.transcript",
]  # fmt: skip
"""Modules, and packages with all they hold, that compute and do nothing else."""

WORLD = {
    "os", "pathlib", "socket", "subprocess", "openai", "httpx", "httpx2", "time", "threading", "asyncio",
    "tempfile", "shutil", "http", "urllib",
}  # fmt: skip


def layer_of(module: str) -> int | None:
    """The number of the group that ``module``, or a package around it, stands in."""
    for number, names in enumerate(LAYERS):
        if any(is_within(module, name) for name in names):
            return number
    return None


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that run when this one does: imports for type checkers alone do not count."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    if module == "pathlib" and alias.name.startswith("Pure"):
                        continue  # paths as text, without a disk
                    inner = f"{module}.{alias.name}"
                    yield inner if inner in MODULES else module
            case _:
                yield from imports(node)


def imports_of(module: str) -> list[str]:
    return list(imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


@pytest.mark.parametrize("module", [name for name in MODULES if any(is_within(name, pure) for pure in PURE)])
def test_pure_modules_do_not_touch_the_world(module):
    """No disk, no process, no socket, no clock: what these modules give depends on what they get."""
    assert [name for name in imports_of(module) if name.split(".")[0] in WORLD] == []


@pytest.mark.parametrize("module", [name for name in MODULES if name != "adapter"])
def test_imports_point_down(module):
    """A module knows what lies below it, never what uses it."""
    own = layer_of(module)
    assert own is not None, "place the new module in LAYERS"
    above = [name for name in imports_of(module) if (layer_of(name) or 0) > own]
    assert above == []


@pytest.mark.parametrize("module", MODULES)
def test_imports_are_absolute(module):
    """A reader sees from the line where a name comes from."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def test_a_format_builds_on_one_other_at_most():
    """A format is one file beside shared readers, or a variant of one other; only the registry knows them all."""
    from adapter.formats import FORMATS

    homes = {f"adapter.formats.{name}" for name in FORMATS}
    for module in homes & MODULES.keys():
        assert len((homes - {module}) & set(imports_of(module))) <= 1, module


def test_the_readme_names_each_folder():
    """A newcomer finds every one in the table, and none that is gone."""
    table = (ROOT.parent / "README.md").read_text(encoding="utf-8").partition("| folder of `adapter/` |")[2]
    named = {name for row in table.partition("\n\n")[0].splitlines() for name in re.findall(r"`(\w+)/`", row)}
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders <= named <= folders | {"reading"}
