"""Imports point one way, and only the outer modules touch the world."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "adapter"
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

# From the bottom up: a module may import from the groups below its own, and from its own group.
LAYERS = [
    [
        "adapter.events",
        "adapter.contents",
        "adapter.errors",
        "adapter.fixes",
        "adapter.rejections",
        "adapter.explanation",
    ],
    [
        "adapter.operations",
        "adapter.lines",
        "adapter.visible",
        "adapter.command_words",
        "adapter.customary",
        "adapter.secrets",
    ],
    ["adapter.policy", "adapter.approval", "adapter.host", "adapter.constraint"],
    ["adapter.diffs", "adapter.repair", "adapter.truncate", "adapter.failures"],
    ["adapter.tools"],
    ["adapter.schema"],
    ["adapter.formats"],
    ["adapter.calls", "adapter.neutral"],
    ["adapter.parser"],
    ["adapter.replies"],
    ["adapter.edits", "adapter.outline"],
    ["adapter.dialects"],
    ["adapter.functions"],
    ["adapter.number_ranges", "adapter.patterns"],
    ["adapter.schema_shapes", "adapter.mentions", "adapter.frames"],
    ["adapter.gbnf_rules"],
    ["adapter.pair_rules"],
    ["adapter.grammar", "adapter.grounding"],
    ["adapter.examples"],
    ["adapter.resources"],
    ["adapter.prompt"],
    ["adapter.history", "adapter.tokens"],
    ["adapter.budget"],
    ["adapter.setups"],
    ["adapter.session"],
    ["adapter.wire"],
    ["adapter.transcript"],
    ["adapter.workspace"],
    ["adapter.endpoints", "adapter.weights", "adapter.config"],
    ["adapter.allocator", "adapter.embedded", "adapter.sdk_errors", "adapter.context"],
    ["adapter.transport"],
    ["adapter.profiles", "adapter.exchanges"],
    ["adapter.guidance", "adapter.native", "adapter.probing", "adapter.wrapped"],
    ["adapter.agent"],
    ["adapter.recording", "adapter.console", "adapter.span_listing", "adapter.toolfiles", "adapter.mcp_tools"],
    ["adapter.subagents"],
    ["adapter.replay", "adapter.runner", "adapter.tool_commands", "adapter.doctor"],
    ["adapter.probe_command"],
    ["adapter.server", "adapter.mcp_server"],
    ["adapter.cli"],
    ["adapter.__main__"],
]
"""Every module stands here: a new one is placed by whoever adds it."""

PURE = [
    "adapter.events", "adapter.errors", "adapter.operations", "adapter.tools", "adapter.fixes", "adapter.repair",
    "adapter.schema", "adapter.calls", "adapter.parser", "adapter.formats", "adapter.edits", "adapter.truncate",
    "adapter.dialects", "adapter.grammar", "adapter.grounding", "adapter.mentions", "adapter.examples",
    "adapter.schema_shapes", "adapter.session", "adapter.transcript", "adapter.approval", "adapter.diffs",
    "adapter.lines", "adapter.visible", "adapter.failures", "adapter.policy", "adapter.rejections",
    "adapter.explanation", "adapter.host", "adapter.command_words", "adapter.functions", "adapter.wire",
    "adapter.constraint", "adapter.replies", "adapter.frames", "adapter.neutral", "adapter.customary",
    "adapter.contents", "adapter.history", "adapter.tokens", "adapter.budget", "adapter.setups", "adapter.secrets",
    "adapter.number_ranges", "adapter.patterns",
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
