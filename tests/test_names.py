"""Names are unique, and functions are named for what they do.

python -m tests.test_names     the names that break a rule
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_layers import MODULES, tree_of

ROOT = Path(__file__).parent.parent

_, VERBS, _, OTHER_NAMES = (
    frozenset(part.split())
    for part in (ROOT / "tests" / "function_names.txt").read_text(encoding="utf-8").split("\n\n")
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for module, path in MODULES.items():
        yield path.relative_to(ROOT).as_posix(), tree_of(module)


def repeated_classes() -> dict[str, list[str]]:
    """Class names that two or more modules define, with these modules."""
    found = defaultdict(list)
    for path, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def functions_without_verb() -> list[str]:
    """Functions that are not named by a verb. A predicate is a claim: ``is_final``, ``ends_in_loop``."""
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not has_verb(node)
    ]


def has_verb(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    word = node.name.strip("_").partition("_")[0]
    is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    is_claim = word in ("is", "has") or word[:-1] in VERBS or (node.returns and "bool" in ast.unparse(node.returns))
    is_required = node.name.startswith("__") or node.name in OTHER_NAMES
    return bool(is_required or is_property or is_claim or word in VERBS or word in ("to", "from", "with", "on"))


REFERENCE = re.compile(r"(?<!`)`(adapter(?:\.\w+){2,})`(?!`)")
"""The name of a module in a docstring, or of something in a module."""


def stale_references() -> list[str]:
    """References to modules, or names in modules, that do not exist."""
    stale = []
    for path in MODULES.values():
        for reference in REFERENCE.findall(path.read_text(encoding="utf-8")):
            module = reference
            while module not in MODULES:
                module = module.rpartition(".")[0]
            name = reference[len(module) + 1 :].partition(".")[0]
            if name and name not in defined_names(module):
                stale.append(f"{path}: {reference}")
    return stale


@cache
def defined_names(module: str) -> set[str]:
    tree = tree_of(module)
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


def test_a_function_is_named_by_a_verb():
    assert functions_without_verb() == []


def test_entry_points_named_in_docs_exist():
    """Such as ``adapter.integrations.ray_serve:app``, which Ray imports."""
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md"))]
    named = set(re.findall(r"\b(adapter(?:\.\w+)+):(\w+)", "\n".join(texts)))
    assert ("adapter.integrations.ray_serve", "app") in named
    assert [name for module, name in named if name not in defined_names(module)] == []


def test_modules_named_in_docstrings_exist():
    assert stale_references() == []


if __name__ == "__main__":
    for name, paths in repeated_classes().items():
        print(name, *paths)
    print("\n".join(functions_without_verb()))
