"""Check the project's English against the habits that make it hard to read.

    python -m tests.prose            print each habit's rate, and fail above its limit
    python -m tests.prose --list     print every line that shows a habit, with a suggestion

A rate is the number of hits per 1,000 words. Each limit is twice the rate measured in httpx, h11, attrs, rich, llm and
pydantic-ai. Words that are code (between backticks, in a code block, on a command line) do not count.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parent.parent
Kind = Literal["code", "docs", "tests"]


@dataclass(frozen=True, slots=True)
class Habit:
    """A pattern to avoid, its limits in hits per 1,000 words, and what to write instead."""

    name: str
    pattern: re.Pattern[str]
    code: float
    docs: float
    instead: str


def _habit(name: str, pattern: str, code: float, docs: float, instead: str) -> Habit:
    return Habit(name, re.compile(pattern, re.IGNORECASE), code, docs, instead)


HABITS = (
    _habit("what-clause", r"\bwhat(?:ever)?\b(?![^.!?]*\?)", 1.70, 2.90, "name the thing: a noun"),
    _habit("say", r"\b(?:says?|said|saying)\b", 0.18, 0.30, "state, report, write, show"),
    _habit("stand", r"\b(?:stands?|stood|standing)\b(?! for\b)", 0.20, 0.10, "is, appears, occurs"),
    _habit("tell", r"\b(?:tells?|told|telling)\b", 0.18, 0.60, "report, inform, show, given"),
    _habit("is no", r"(?<!there )\b(?:is|are|was|were) (?:no|none)\b(?! longer)", 0.42, 0.36, "is not a; there is no"),
    _habit("nobody", r"\b(?:nobody|somebody|anybody|whoever|whom)\b", 0.04, 0.04, "name the actor, or use the passive"),
    _habit("beside", r"\bbesides?\b", 0.02, 0.04, "next to, in addition to"),
    _habit("go on", r"\b(?:go|goes|going|gone|went) on\b", 0.04, 0.02, "continue"),
    _habit("by itself", r", too\b|\bby itself\b|\b(?:is|are) to be\b", 0.02, 0.04, "also, automatically, must be"),
    _habit(
        "that of",
        r"\bthose (?:of|in|that|which|who|whose|from|with)\b|\bthat of\b",
        0.06,
        0.20,
        "repeat the noun, or use 's",
    ),
    _habit("translated", r"\b(?:sought|mended|of use|asked for)\b", 0.05, 0.05, "searched, fixed, useful, requested"),
    _habit(
        "British",
        r"\b(?:(?:recogn|normal|summar|initial|quant|organ|optim)is(?:e[ds]?|ing|ation)"
        r"|(?:behavi|col|fav|hon)our\w*|labelled|centre|licence)\b",
        0.02,
        0.02,
        "the American spelling, as in all names",
    ),
)

HEADLESS = re.compile(r"(?:What|Whether|Where|How|Of|That|Whose|Which|Who|Those)\b")
"""Words that no docstring begins with: PEP 257 asks for an imperative, or a noun phrase."""

ALLOWED = re.compile(r"go-on\b")
"""Phrases that show a habit and are right."""

_ITEM = re.compile(r"(?<!- )(?:(?<=\s)|^)``\w+``(?:, ``\w+``)*: ")
MOST_ITEMS = 2
"""Most fields or arguments that one docstring describes in running text ("``name``: the name; ``size``: ...")."""

_CODE = re.compile(r"``.+?``|`[^`]*`|https?://\S+|<[^>]+>", re.DOTALL)
_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs")
_GENERATED: set[str] = set()


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of prose, where it is, and the 1-based line that it begins in."""

    path: str
    line: int
    text: str
    is_docstring: bool = False


def passages(kind: Kind) -> Iterator[Passage]:
    if kind == "code":
        for file in sorted((ROOT / "adapter").rglob("*.py")):
            yield from _of_module(file)
            yield from _of_comments(file)
        for file in sorted((ROOT / "prompts").rglob("*.md")):
            yield from _of_page(file)
    elif kind == "tests":
        for file in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]):
            yield from (passage for passage in _of_module(file) if passage.is_docstring)
    else:
        for page in _PAGES:
            path = ROOT / page
            for file in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
                if _name(file) not in _GENERATED:
                    yield from _of_page(file)
        yield from _of_changelog(ROOT / "CHANGELOG.md")


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _of_module(file: Path) -> Iterator[Passage]:
    """Docstrings, and strings of at least three words: messages, help, prompts."""
    source = file.read_text(encoding="utf-8")
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        for constant, text in _docstrings(node):
            docstrings.add(id(constant))
            yield Passage(_name(file), constant.lineno, text, True)
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if len(_WORD.findall(node.value)) > 2:
            yield Passage(_name(file), node.lineno, node.value)


def _of_comments(file: Path) -> Iterator[Passage]:
    source = file.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source if "#" in source else "").readline):
        if token.type == tokenize.COMMENT:
            yield Passage(_name(file), token.start[0], token.string)


def _docstrings(node: ast.AST) -> Iterator[tuple[ast.Constant, str]]:
    """The docstring of a module, class or function, and those below its assignments."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    for before, statement in zip([None, *body], body, strict=False):
        is_after_name = before is None or isinstance(before, ast.Assign | ast.AnnAssign)
        if is_after_name and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            constant = statement.value
            if isinstance(constant.value, str):
                yield constant, constant.value


def _of_page(file: Path) -> Iterator[Passage]:
    text = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), file.read_text(encoding="utf-8"))
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield Passage(_name(file), number, line)


def _of_changelog(file: Path) -> Iterator[Passage]:
    """The part that is not released yet."""
    lines = file.read_text(encoding="utf-8").split("\n")
    headings = [number for number, line in enumerate(lines) if line.startswith("## ")]
    for number in range(headings[0], headings[1] if len(headings) > 1 else len(lines)):
        yield Passage(_name(file), number + 1, lines[number])


def hits(habit: Habit, found: list[Passage]) -> list[tuple[Passage, str]]:
    return [(passage, match[0]) for passage in found for match in habit.pattern.finditer(_without_code(passage.text))]


@cache
def _without_code(text: str) -> str:
    """Return the text that habits are searched in, once for all of them."""
    return ALLOWED.sub("", _CODE.sub("x", text))


def headless(found: list[Passage]) -> list[Passage]:
    """The docstrings that begin with a relative or interrogative word."""
    return [passage for passage in found if passage.is_docstring and HEADLESS.match(passage.text.strip())]


def walls(found: list[Passage]) -> list[Passage]:
    """The docstrings that describe several fields or arguments in running text, where one a line is readable."""
    return [passage for passage in found if passage.is_docstring and len(_ITEM.findall(passage.text)) > MOST_ITEMS]


def report(kind: Kind) -> tuple[list[str], list[str]]:
    """The table of rates, and the habits above their limit."""
    found = list(passages(kind))
    words = sum(len(_WORD.findall(_CODE.sub(" ", passage.text))) for passage in found)
    rows, above = [f"{kind}: {words} words"], []
    for habit in HABITS:
        number, limit = len(hits(habit, found)), habit.docs if kind == "docs" else habit.code
        rate = 1000 * number / max(words, 1)
        rows.append(f"  {habit.name:12} {number:5}  {rate:6.2f}  limit {limit:.2f}")
        if rate > limit:
            above.append(f"{kind}: {habit.name} {rate:.2f} per 1,000 words, limit {limit:.2f}; write: {habit.instead}")
    wrong = headless(found)
    rows.append(f"  docstrings that begin with What, Whether, Where, Of ...: {len(wrong)}")
    if wrong:
        above.append(f"{len(wrong)} docstrings begin headless, the first at {wrong[0].path}:{wrong[0].line}")
    if crowded := walls(found):
        first = f"{crowded[0].path}:{crowded[0].line}"
        above.append(f"{len(crowded)} docstrings describe more than {MOST_ITEMS} items in a row, the first at {first}")
    return rows, above


def main() -> int:
    kinds: tuple[Kind, ...] = ("code", "docs", "tests")
    failed = []
    for kind in kinds:
        if "--list" in sys.argv:
            found = list(passages(kind))
            for habit in HABITS:
                for passage, words in hits(habit, found):
                    text = " ".join(passage.text.split())[:120]
                    print(f"{passage.path}:{passage.line}: {words!r}: {habit.instead}: {text}")
            for passage in headless(found):
                print(f"{passage.path}:{passage.line}: headless docstring: {passage.text.strip()[:100]}")
            for passage in walls(found):
                print(f"{passage.path}:{passage.line}: one argument or field a line: {passage.text.strip()[:100]}")
        rows, above = report(kind)
        print("\n".join(rows))
        failed += above
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
