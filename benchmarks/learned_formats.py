"""Learn each family's format from three of its test cases, and parse the family's other cases with it.

    python -m benchmarks.learned_formats [FORMAT...]

Compares the calls (names and arguments) with the case's; a case without calls is right if none is found. The
second column is the built-in format on the same cases. Both parse with the policy ``strict``, so that no other format
helps.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adapter import parse
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS
from adapter.prompting.deriving.learn_from_examples import LearningExample, learn_format
from adapter.tools.tool_set import ToolSet

CASES = Path("fixtures/cases")


def load_cases(family: str) -> dict[str, dict[str, Any]]:
    return {path.stem: tomllib.loads(path.read_text()) for path in sorted((CASES / family).glob("*.toml"))}


def calls_of(case: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(event[1], json.loads(event[2])) for event in case["events"] if event[0] == "call"]


def calls_values(calls: list[tuple[str, Any]]) -> dict[str, Any]:
    return {f"{name}.{key}": value for name, arguments in calls for key, value in arguments.items()}


def is_example(case: dict[str, Any]) -> bool:
    """Return whether the case has calls, all of them as the family writes them."""
    events = case["events"]
    is_clean = all(event[0] != "invalid" and not (event[0] == "call" and len(event) > 3) for event in events)
    return is_clean and bool(calls_of(case)) and case.get("finish_reason", "stop") == "stop"


def choose_examples(cases: dict[str, dict[str, Any]], family: str) -> list[str]:
    """Return three cases: one with two calls, one with two arguments, and others; first the ones with the calls as the
    family's own encoder writes them and with plain values, then the shortest."""
    tools = ToolSet(json.loads((CASES / "tools.json").read_text()))
    usable = [
        name
        for name, case in cases.items()
        if is_example(case) and found_calls(case, tools, FORMATS[family]) == calls_of(case)
    ]

    def rank(name: str) -> tuple[bool, bool, int]:
        calls, text = calls_of(cases[name]), cases[name]["text"]
        is_plain = not re.search(r'[<>\[\\]|""', json.dumps(calls_values(calls), ensure_ascii=False)[1:])
        return not is_plain, FORMATS[family].encode_calls(calls) not in text, len(text)

    by_length = sorted(usable, key=rank)
    two_calls = [name for name in by_length if len(calls_of(cases[name])) > 1]
    two_arguments = [name for name in by_length if any(len(each) > 1 for _, each in calls_of(cases[name]))]
    return list(dict.fromkeys([*two_calls[:1], *two_arguments[:1], *by_length]))[:3]


def found_calls(case: dict[str, Any], tools: ToolSet, format: Format) -> list[tuple[str, Any]]:
    turn = parse(case["text"], tools, format, case.get("finish_reason", "stop"), policy="strict")
    return [(call.name, call.arguments) for call in turn.calls]


def measure(family: str, tools: ToolSet) -> tuple[int, int, int, str]:
    """Return how many cases the learned and the built-in format read, how many there are, and the body or reasons."""
    cases = load_cases(family)
    chosen = choose_examples(cases, family)
    examples = [LearningExample(cases[name]["text"], calls_of(cases[name])) for name in chosen]
    others = [case for name, case in cases.items() if name not in chosen]
    own = sum(found_calls(case, tools, FORMATS[family]) == calls_of(case) for case in others)
    if len(examples) < 3:
        return 0, own, len(others), f"only {len(examples)} cases without repairs"
    learned = learn_format(examples, "learned")
    if learned.spec is None:
        return 0, own, len(others), "; ".join(f"{body}: {why}" for body, why in learned.refusals.items())
    format = compile_format(learned.spec)
    right = sum(found_calls(case, tools, format) == calls_of(case) for case in others)
    return right, own, len(others), f"[{learned.spec.body}]"


def rows(families: list[str]) -> Iterator[str]:
    tools = ToolSet(json.loads((CASES / "tools.json").read_text()))
    totals = [0, 0, 0]
    for family in families:
        *counts, note = measure(family, tools)
        if note.startswith("["):
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        yield f"{family:18} learned {counts[0]:3}  built-in {counts[1]:3}  of {counts[2]:3}  {note[:300]}"
    yield f"{'learned families':18} learned {totals[0]:3}  built-in {totals[1]:3}  of {totals[2]:3}"


if __name__ == "__main__":
    for row in rows(sys.argv[1:] or [name for name in FORMATS if (CASES / name).is_dir()]):
        print(row)
