"""Imports point one way, from folder to folder and from file to file, and only the outer folders do I/O.

python -m tests.test_layers         the folders from the bottom up, with their files and lines, and any cycle
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

# From the bottom up: a file may import from the folders before its own in this list, and from its own folder.
FOLDERS = [
    "core", "tools", "parsing", "outline", "editing", "grammars", "dialects", "prompting", "workspace", "conversation",
    "protocols", "backends", "agent", "recording", "evaluation", "server", "integrations", "cli",
]  # fmt: skip

PURE = {
    "core", "tools", "parsing", "editing", "grammars", "dialects", "prompting.deriving",
    "conversation", "protocols",
}  # fmt: skip
"""Folders, with those inside them, whose results depend on their arguments alone: no disk, process, socket or clock."""
TOUCHING = {
    "adapter.core.file_lock", "adapter.core.install_advice", "adapter.core.private_files",
    "adapter.core.package_data", "adapter.core.program_lookup", "adapter.dialects.promptly.tool_files",
    "adapter.parsing.format_file",
}  # fmt: skip
"""The modules in pure folders that read from disk."""

WORLD = {
    "os", "pathlib", "socket", "subprocess", "openai", "httpx", "httpx2", "time", "threading", "asyncio",
    "tempfile", "shutil", "http", "urllib",
}  # fmt: skip


def folder_of(module: str) -> str:
    """Return the folder of a file below ``adapter/``, with dots; empty for files at its top."""
    parts = module.split(".")[1:]
    return ".".join(parts if MODULES[module].name == "__init__.py" else parts[:-1])


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield every module that is imported, also within functions and for type checkers. "." for a relative import."""
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
def tree_at(path: Path) -> ast.Module:
    """Parse a module, once for all tests of the code."""
    return ast.parse(path.read_text(encoding="utf-8"))


def tree_of(module: str) -> ast.Module:
    return tree_at(MODULES[module])


@cache
def imports_of(module: str) -> tuple[str, ...]:
    return tuple(imports(tree_of(module)))


def graph() -> dict[str, set[str]]:
    """Return the files that each file imports."""
    return {module: {name for name in imports_of(module) if name in MODULES} - {module} for module in MODULES}


def circle(edges: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of ``edges``, or an empty list."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def top_of(module: str) -> str:
    return folder_of(module).partition(".")[0]


def is_pure(module: str) -> bool:
    return any(f"{folder_of(module)}.".startswith(f"{folder}.") for folder in PURE)


INNER = [name for name in MODULES if folder_of(name)]


def test_pure_modules_do_not_touch_the_world():
    """No disk, no process, no socket, no clock."""
    touching = {
        module
        for module in INNER
        if is_pure(module) and any(name.split(".")[0] in WORLD for name in imports_of(module))
    }
    assert touching == TOUCHING


def test_imports_point_down():
    """A module never imports from a folder above its own, not even inside a function or for type checkers."""
    floor = {module: FOLDERS.index(top_of(module)) for module in INNER}
    assert [(one, other) for one in INNER for other in imports_of(one) if floor.get(other, -1) > floor[one]] == []


def test_inner_folders_are_in_no_circle():
    edges: dict[str, set[str]] = {}
    for module, others in graph().items():
        for other in others:
            one, two = folder_of(module), folder_of(other)
            if top_of(module) == top_of(other) and one != two and "." in one and "." in two:
                edges.setdefault(one, set()).add(two)
    assert circle(edges) == []


def test_no_file_is_in_a_circle():
    """Each file can be read after the files that it imports."""
    assert circle(graph()) == []


def test_the_list_of_folders_is_complete():
    assert set(FOLDERS) == {top_of(module) for module in INNER}


def exported(package: str) -> set[str]:
    """Return the names in a package's ``__all__``."""
    for node in tree_of(package).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def imported_from_outside() -> dict[str, set[str]]:
    """Return the modules of each package that another folder or an entry point imports."""
    found: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for module, others in graph().items():
        for other in others - PACKAGES.keys():
            if folder_of(other) != folder_of(module):
                found[other.rpartition(".")[0]].add(other.rpartition(".")[2])
    entries = (ROOT.parent / "pyproject.toml").read_text() + (ROOT / "__init__.py").read_text(encoding="utf-8")
    for name in re.findall(r'"(adapter\.[\w.]+)', entries):
        if name in MODULES and name not in PACKAGES:
            found[name.rpartition(".")[0]].add(name.rpartition(".")[2])
    return found


PACKAGES = {module: path for module, path in MODULES.items() if path.name == "__init__.py" and module != "adapter"}


def test_each_folder_lists_the_modules_that_others_may_import():
    """A module that is missing in its folder's ``__all__`` is private to the folder."""
    for package, modules in imported_from_outside().items():
        inner = {name.rpartition(".")[2] for name in MODULES.keys() - PACKAGES if name.rpartition(".")[0] == package}
        assert modules == exported(package) & inner, package


def test_every_module_has_a_docstring():
    assert [module for module in INNER if not ast.get_docstring(tree_of(module))] == []


def test_imports_are_absolute():
    """A reader sees from the line where a name comes from."""
    assert [module for module in MODULES if "." in imports_of(module)] == []


def test_a_format_builds_on_one_other_at_most():
    """A format is one file that uses shared parsers, or a variant of one other; only the registry knows them all."""
    from adapter.parsing.formats import FORMATS

    homes = {f"adapter.parsing.formats.{name}" for name in FORMATS}
    for module in homes & MODULES.keys():
        assert len((homes - {module}) & set(imports_of(module))) <= 1, module


def test_each_folder_is_named_for_newcomers():
    """The table has every folder, and no other."""
    table = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| folder of `adapter/` |")[2]
    named = {name for row in table.partition("\n\n")[0].splitlines() for name in re.findall(r"`(\w+)/`", row)}
    assert named == {path.parent.name for path in ROOT.glob("*/__init__.py")}


if __name__ == "__main__":
    for folder in FOLDERS:
        paths = [MODULES[module] for module in INNER if top_of(module) == folder]
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        print(f"{folder:24} {len(paths):4} files {lines:6} lines")
    found = circle(graph())
    print("circles:", " -> ".join(found) if found else "none")
