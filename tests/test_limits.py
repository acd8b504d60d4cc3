"""docs/limits.md lists every limit of the program, as it is in the code.

    python -m tests.test_limits         writes the page anew

A limit is a public constant, or a field with a default, whose name says so (MAX_..., ..._LIMIT, ..._S, ..._BYTES).
What it bounds is said in the docstring below it.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "limits.md"
NAME = re.compile(
    r"(?:MAX|LONGEST)_\w+|\w+_(?:LIMIT|TIMEOUT|S|MS|SECONDS|BYTES|LINES|CHARACTERS)|(?:max_\w+|\w+_s|seconds|entries|depth)"
)
NO_LIMIT = re.compile(r"MIN_\w+|CONTEXT_LINES|TELLING_\w+|SURE_\w+|NEAR_LINES|(?:\w+Output|Done|Tree|Array)\..*")
"""Constants whose names only look like limits: thresholds of a judgement, and what a result counts."""
MAKES_FIELDS = re.compile(r"dataclass|frozen|mutable")
ARITHMETIC = (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Name, ast.expr_context)
HEAD = """# Limits

Everything that could grow without end has a bound: what a model writes, what files and servers hold, how long
something takes. Reaching one is never silent: a result says what was left out, a refusal what was asked for and what is
possible. This page is made from the code by `python -m tests.test_limits`; what the user chooses himself (timeouts of a
server, turns of a run) can be given on the command line or as an argument.

"""


@dataclass(frozen=True)
class Limit:
    module: str
    name: str
    value: float
    text: str


@cache
def limits() -> list[Limit]:
    return [limit for path in sorted((ROOT / "adapter").rglob("*.py")) for limit in limits_of(path)]


def limits_of(path: Path) -> Iterator[Limit]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = path.relative_to(ROOT).as_posix()
    yield from _in_body(module, "", tree.body, "")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and MAKES_FIELDS.search(" ".join(map(ast.unparse, node.decorator_list))):
            about = (ast.get_docstring(node) or "").split("\n\n")[0]
            yield from _in_body(module, f"{node.name}.", node.body, " ".join(about.split()))


def _in_body(module: str, prefix: str, body: list[ast.stmt], about: str) -> Iterator[Limit]:
    for node, following in zip(body, [*body[1:], None], strict=True):
        for name, value in _numbers(node, module):
            is_every = prefix == "Limits."
            if (is_every or NAME.fullmatch(name)) and not NO_LIMIT.fullmatch(prefix + name):
                yield Limit(module, prefix + name, value, _text(following) or about)


def _numbers(node: ast.stmt, module: str) -> Iterator[tuple[str, float]]:
    """The public names that a statement gives numbers, and these."""
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        pairs = [(node.target, node.value)]
    else:
        return
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs += list(zip(target.elts, value.elts, strict=True))
        elif isinstance(target, ast.Name) and not target.id.startswith("_"):
            number = _number(value, module)
            if number is not None:
                yield target.id, number


def _number(value: ast.expr, module: str) -> float | None:
    """The number that an expression of numbers, and of constants of its module, gives."""
    if not all(isinstance(each, ARITHMETIC) for each in ast.walk(value)):
        return None
    names = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
    known = vars(importlib.import_module(module.removesuffix(".py").replace("/", "."))) if names else {}
    if not all(isinstance(known.get(name), int | float) for name in names):
        return None
    number = eval(ast.unparse(value), {name: known[name] for name in names})
    return number if type(number) in (int, float) else None


def _text(following: ast.stmt | None) -> str:
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return " ".join(str(following.value.value).split())
    return ""


def page() -> str:
    lines = [HEAD + "| where | limit | value | what it bounds |\n|---|---|--:|---|\n"]
    for limit in limits():
        text = limit.text.replace("|", "\\|")
        lines.append(f"| {limit.module.removeprefix('adapter/')} | {limit.name} | {shown(limit.value)} | {text} |\n")
    return "".join(lines)


def shown(value: float) -> str:
    if isinstance(value, int) and value >= 1024 * 1024 and value % (1024 * 1024) == 0:
        return f"{value // 1024**2:,} MiB"
    return f"{value:,}"


def test_the_page_is_up_to_date():
    """A constant that is not listed, or has another value than the page says, fails."""
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.test_limits"


def test_every_limit_says_what_it_bounds():
    """In a docstring below it, or in that of the class that it is a field of."""
    assert [f"{limit.name} in {limit.module}" for limit in limits() if not limit.text] == []


def test_a_limit_is_found_wherever_it_stands(tmp_path, monkeypatch):
    """By itself, made of others, in a tuple, in a dataclass; private names and other numbers are none."""
    code = (
        'MAX_A = 2 * 3\n"""Of a."""\nB_LIMIT, C_S = 4, 5.0\n"""Of two."""\nVERSION = 1\n_MAX_D = 7\nMAX_E = len("x")\n'
        'MAX_YES = True\n@dataclass\nclass F:\n    """Of F."""\n    max_g: int = 8\n    h: int = 9\n'
    )
    (tmp_path / "x.py").write_text(code)
    monkeypatch.setattr("tests.test_limits.ROOT", tmp_path)
    found = [(limit.name, limit.value, limit.text) for limit in limits_of(tmp_path / "x.py")]
    assert found == [
        ("MAX_A", 6, "Of a."),
        ("B_LIMIT", 4, "Of two."),
        ("C_S", 5.0, "Of two."),
        ("F.max_g", 8, "Of F."),
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
