"""Names are unique, and functions are named for what they do.

python -m tests.test_names     the names that break a rule
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

PARTICIPLES = re.compile(
    r"_?(?:said|told|heard|asked|made|given|kept|seen|chosen|placed|named|written|shown|meant|described|joined|marked"
    r"|standing|beside|around|found|wanted|held|left|taken|settled|offered|sought|drawn|checked|fitted|of|at)"
)
"""Words that are neither imperatives nor nouns: a function with such a name does not show its result."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted((ROOT / "adapter").rglob("*.py")):
        yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def repeated_classes() -> dict[str, list[str]]:
    """Class names that two or more modules define, with these modules."""
    found = defaultdict(list)
    for path, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def vague_functions() -> list[str]:
    """Functions that are named by a bare participle or preposition."""
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and PARTICIPLES.fullmatch(node.name)
    ]


REFERENCE = re.compile(r"(?<!`)`(adapter(?:\.\w+){2,})`(?!`)")
"""The name of a module in a docstring, or of something in a module."""


def stale_references() -> list[str]:
    """References in docstrings to modules, or names in modules, that do not exist."""
    names = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree for path, tree in modules()}
    stale = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            for reference in REFERENCE.findall(node.value):
                module = reference
                while module not in names:
                    module = module.rpartition(".")[0]
                name = reference[len(module) + 1 :].partition(".")[0]
                if name and name not in defined_names(names[module]):
                    stale.append(f"{path}: {reference}")
    return stale


def defined_names(tree: ast.Module) -> set[str]:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        *(node.name for node in ast.walk(tree) if isinstance(node, definitions)),
        *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)),
        *(
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ),
    }


def test_class_names_are_unique_in_the_package():
    assert repeated_classes() == {}


def test_function_names_are_not_vague():
    assert vague_functions() == []


def test_modules_named_in_docstrings_exist():
    assert stale_references() == []


if __name__ == "__main__":
    for name, paths in repeated_classes().items():
        print(name, *paths)
    print("\n".join(vague_functions()))
