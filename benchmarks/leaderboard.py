"""Run cases of the Berkeley Function Calling Leaderboard, drawn by a seed, with its own checker.

    pip install --no-deps --target DIR bfcl-eval==2026.3.23
    python -m benchmarks.leaderboard DIR [--model MODEL.gguf] [--base-url URL] [--count N] [--seed N] [--way NAME ...]
        [--max-tokens N] [--results FILE]

The package contains the cases and the checker; its other dependencies are model clients, which are not used here. Four
categories are drawn: one function, several functions, several calls, and no call. Ways, answers and intervals are as in
`benchmarks.choices`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from adapter.core.events import Json, JsonObject
from benchmarks.choices import WAYS, Answer, Case, Results, connect, interval

SHARES = {"simple_python": 2, "multiple": 1, "parallel": 1, "irrelevance": 1}
"""Number of cases from each category, for each case of the others."""
USUAL = ("server alone", "words", "prefer", "all")
MODEL = "model"
MAX_TOKENS = 400
"""Maximum tokens of an answer with several calls."""
Check: TypeAlias = Callable[["Drawn", Answer], bool]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn case. ``functions`` and ``answers`` are as in the package, ``case`` is the request to a server."""

    category: str
    case: Case
    functions: Sequence[JsonObject]
    answers: Sequence[JsonObject]


def draw(package: Path, count: int, seed: int) -> list[Drawn]:
    """Draw cases from each category."""
    data, drawn, chance = package / "bfcl_eval" / "data", [], random.Random(seed)
    for category in SHARES:
        name = f"BFCL_v4_{category}.json"
        answers = {row["id"]: row["ground_truth"] for row in _rows(data / "possible_answer" / name)}
        for row in chance.sample(_rows(data / name), count * SHARES[category] // sum(SHARES.values())):
            request = row["question"][0][-1]["content"]
            tools = [{"type": "function", "function": _as_openai(each)} for each in row["function"]]
            drawn.append(
                Drawn(category, Case(category, request, tools, ()), row["function"], answers.get(row["id"], ()))
            )
    return drawn


def _rows(path: Path) -> list[JsonObject]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _as_openai(function: JsonObject) -> JsonObject:
    return {**function, "name": function["name"].replace(".", "_"), "parameters": _as_schema(function["parameters"])}


_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def _as_schema(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if isinstance(kind := made.get("type"), str):
        made["type"] = _TYPES.get(kind, kind)
    if isinstance(properties := made.get("properties"), dict):
        made["properties"] = {name: _as_schema(each) for name, each in properties.items()}
    if "items" in made:
        made["items"] = _as_schema(made["items"])
    return made


def checker(package: Path) -> Check:
    """Return the leaderboard's checker. It needs to know only whether the model writes underscores for dots."""
    sys.path.append(str(package))
    table = ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = {MODEL: SimpleNamespace(underscore_to_dot=True)}  # type: ignore[attr-defined]
    sys.modules[table.__name__] = table
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(drawn: Drawn, answered: Answer) -> bool:
        if drawn.category == "irrelevance":
            return not answered.calls
        calls = [{call["name"]: call["arguments"]} for call in answered.calls]
        category = drawn.category.removesuffix("_python")
        return bool(ast_checker(drawn.functions, calls, drawn.answers, Language.PYTHON, category, MODEL)["valid"])

    return check


def row(way: str, asked: Sequence[tuple[Drawn, Answer]], check: Check) -> list[str]:
    right = {category: [0, 0] for category in SHARES}
    for drawn, answered in asked:
        right[drawn.category][0] += check(drawn, answered)
        right[drawn.category][1] += 1
    good, of = (sum(each[place] for each in right.values()) for place in (0, 1))

    def mean(name: str) -> float:
        return float(sum(getattr(answered, name) for _, answered in asked)) / max(of, 1)

    costs = [f"{mean('prompt_tokens'):.0f}", f"{mean('written_tokens'):.0f}", f"{mean('seconds'):.1f}"]
    return [way, *(f"{each[0]}/{each[1]}" for each in right.values()), f"{good}/{of}", interval(good, of), *costs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("package", type=Path, help="where bfcl-eval is")
    parser.add_argument("--model", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--way", nargs="*", default=USUAL, choices=[way.name for way in WAYS])
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="of an answer")
    parser.add_argument("--results", type=Path, help="keep the answers here, and go on from those that are there")
    options = parser.parse_args()
    drawn, check = draw(options.package, options.count, options.seed), checker(options.package)
    if not drawn:
        parser.error(f"no cases in {options.package}: pip install --no-deps --target {options.package} bfcl-eval")
    results = Results(options.results, options.max_tokens)
    table = Table("way", *SHARES, "right", "%", "tokens read", "written", "s")
    with ExitStack() as stack:
        client = connect(stack, options.model, options.base_url)
        for way in (way for way in WAYS if way.name in options.way):
            made = row(way.name, [(each, results.get(way, each.case, client)) for each in drawn], check)
            print(json.dumps(made), flush=True)
            table.add_row(*made)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
