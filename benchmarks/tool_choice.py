"""Count the checks that a small model passes, with its server alone and with `adapter serve`: canitoolcall's and
others.

    python -m benchmarks.tool_choice [--model MODEL.gguf | --base-url URL] [--mode MODE ...] [--details]

``canitoolcall`` has nine scenarios, each whole, streamed, and compared: 27 checks, of which 9 compare and pass for any
consistent server. ``held out`` has the checks of ``scenarios.json``, judged by the same client and code. Answers are
cut off after 256 tokens.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from canitoolcall.probe import BUILTIN_SCENARIOS, ProbeExpectation, ProbeReport, Scenario, probe
from rich.console import Console
from rich.table import Table

from adapter.backends.builtin_model import download_builtin_model
from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.grammars.constraint_mode import CONSTRAINTS
from tests.serving import serving

HERE = Path(__file__).parent
MAX_TOKENS = 256
TIMEOUT_S = 300.0


def scenarios_in(file: Path) -> list[Scenario]:
    given = json.loads(file.read_text(encoding="utf-8"))
    return [_scenario(row, given["tools"]) for row in given["scenarios"]]


def _scenario(row: Mapping[str, Any], known: Mapping[str, Any]) -> Scenario:
    expect = ProbeExpectation(
        tool_names=tuple(row["calls"]),
        expect_content=None if row["calls"] else True,
        argument_contains=tuple(row.get("contains", ())),
    )
    tools = tuple(known[name] for name in row["tools"])
    extra = {"parallel_tool_calls": True} if len(row["calls"]) > 1 else {}
    choice = row.get("tool_choice", "auto")
    return Scenario(row["id"], "", tuple(row["messages"]), tools, expect, choice, extra)


def score(report: ProbeReport) -> str:
    passed = report.summary()["pass"]
    return f"{passed}/{len(report.outcomes)}"


def failures(report: ProbeReport) -> Iterator[str]:
    for outcome in report.outcomes:
        if outcome.status != "pass":
            how = outcome.check if outcome.check != "scenario" else ("streamed" if outcome.stream else "whole")
            yield f"{outcome.scenario_id} ({how}): {(outcome.detail or '')[:160]}"


def measure(url: str, scenarios: Sequence[Scenario]) -> ProbeReport:
    return probe(url, "smollm2", scenarios=scenarios, timeout_s=TIMEOUT_S, concurrency=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--model", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running llama.cpp instead")
    parser.add_argument("--mode", action="append", choices=["alone", "auto", *CONSTRAINTS], help="default: all")
    parser.add_argument("--scenarios", type=Path, default=HERE / "scenarios.json")
    parser.add_argument("--details", action="store_true", help="list what failed")
    options = parser.parse_args()
    sets = {"canitoolcall": list(BUILTIN_SCENARIOS), options.scenarios.stem: scenarios_in(options.scenarios)}
    table = Table("mode", *sets)
    with ExitStack() as stack:
        upstream = options.base_url
        if upstream is None:
            engine = EmbeddedServer(options.model or download_builtin_model(), max_tokens=MAX_TOKENS)
            upstream = stack.enter_context(engine).endpoint.base_url
        for mode in options.mode or ["alone", *CONSTRAINTS]:
            with ExitStack() as inner:
                url = upstream if mode == "alone" else inner.enter_context(serving(upstream, "--constraint", mode))
                reports = {name: measure(url, scenarios) for name, scenarios in sets.items()}
            table.add_row(mode, *map(score, reports.values()))
            for name, report in reports.items() if options.details else ():
                print(f"{mode}, {name}:", *failures(report), sep="\n  ")
    Console().print(table)


if __name__ == "__main__":
    main()
