"""The engine tables of docs/performance.md match benchmarks/engines.json, the results of `benchmarks.bench_engines`.

``python -m tests.generate`` updates them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
FOUND = json.loads((ROOT / "benchmarks" / "engines.json").read_text(encoding="utf-8"))
SPECIAL = ", special tokens"
NAMES = {"vllm": "vLLM", "sglang": "SGLang"}


def suite() -> str:
    """Return the counts of right, right except for whitespace, and wrong, by release, whole and streamed."""
    rows = ["| release | ours, whole | ours, streamed | its own, whole | its own, streamed |", "|---|---|---|---|---|"]
    for release in _releases("suite"):
        by_whose = FOUND["suite"][release]
        cells = [
            " + ".join(map(str, by_whose[whose][way][:2])) if whose in by_whose else ""
            for whose in ("ours", "its own")
            for way in ("whole", "streamed")
        ]
        rows.append(f"| {_shown(release)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def choices() -> str:
    """Return the number of right cases and the names of the others, by release."""
    rows = ["| release | right | not right |", "|---|---|---|"]
    for release in _releases("choices"):
        cases = FOUND["choices"][release]
        names = {_case(name) for name, what in cases.items() if what}
        wrong = sorted(name for name in names if name.removesuffix(SPECIAL) not in names - {name})
        right = sum(not what for what in cases.values())
        rows.append(f"| {_shown(release)} | {right} of {len(cases)} | {'; '.join(wrong)} |")
    return "\n".join(rows)


def speed() -> str:
    """Return microseconds by the size of the call."""
    rows = []
    for release in _releases("speed"):
        found = FOUND["speed"][release]
        for size in sorted(int(name.partition(", ")[2]) for name in found if name.startswith("its own")):
            (delta, first, whole), (own_delta, own_first, own_whole) = (
                found[f"{whose}, {size}"] for whose in ("ours", "its own")
            )
            pairs = ((delta, own_delta), (first, own_first), (whole, own_whole))
            cells = [f"{ours:.0f} : {own:.0f}" for ours, own in pairs]
            rows.append(f"| {_shown(release)} | {size} | {' | '.join(cells)} |")
    head = (
        "| release | characters | a delta, ours : its own | the first delta | a whole answer |\n|---|--:|--:|--:|--:|"
    )
    return "\n".join((head, *rows))


TABLES = {"suite": suite, "choices": choices, "speed": speed}


def with_tables(text: str) -> str:
    for name, table in TABLES.items():
        before, mark, rest = text.partition(f"<!-- table: {name} -->\n")
        text = f"{before}{mark}\n{table()}\n\n{rest[rest.index('<!-- end -->') :]}"
    return text


def _releases(part: str) -> list[str]:
    """Return them by engine, the newest first."""

    def order(release: str) -> tuple[bool, list[int]]:
        engine, _, version = release.partition(" ")
        return engine == "vllm", [int(number) for number in re.findall(r"\d+", version)]

    return sorted(FOUND.get(part, {}), key=order, reverse=True)


def _shown(release: str) -> str:
    engine, _, version = release.partition(" ")
    return f"{NAMES[engine]} {version}"


def _case(name: str) -> str:
    """Return a case without its variants."""
    return re.sub(r", (whole|streamed)$", "", name).replace(", markers are text", "").replace(", markers are", ",")


def test_each_table_of_engines_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in re.findall(r"<!-- table: (\w+) -->", text) if name in TABLES] == list(TABLES)


def test_results_count_all_outputs():
    """A release whose run was interrupted does not count as tested."""
    counts: list[Any] = [
        counts for found in FOUND["suite"].values() for ways in found.values() for counts in ways.values()
    ]
    assert {sum(each) for each in counts} == {469}
