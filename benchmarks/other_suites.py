"""Run benchmarks of other projects, with and without this program: their tasks, tools and checks, in our loops.

    python -m benchmarks.other_suites toolcallbench | tool-eval-bench | forge [--model GGUF] [--base-url URL]
        [--scripted RATE] [--way NAME ...] [--forge DIR] [--kind NAME ...] [--limit N] [--runs N] [--max-tokens N]
        [--folder DIR]

*direct* is the plain loop of an OpenAI client with the model server, *serve* the same through `adapter serve`, *agent*
our `Agent`, and *forge proxy* and *forge runner* forge-guardrails' own, in the environment ``--forge``, which is
created if missing. The model is the built-in one, a GGUF file, a server's, or scripted: it follows the reference
solutions of toolcallbench and makes a mistake at this rate in each step (`benchmarks.faulty_model`).

A benchmark is installed into its own environment in ``--folder`` (by default a temporary one) and runs there confined,
because its tools run model output. toolcallbench has 20 tasks in a repository; 53 of 69 scenarios of tool-eval-bench
fit, because they have one user message and need nothing else in a request; Forge has 30 in its source. A run is *done*
if the benchmark's own check passes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import OpenAI
from rich.console import Console
from rich.table import Table

from adapter.backends.builtin_model import download_builtin_model
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import Endpoint, find_endpoint
from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.core.events import Json, JsonObject
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, Oracle, Scenario, ToolRefusal
from adapter.evaluation.scenario_runner import AgentHarness, EvalRun, Harness, Sampling, SdkHarness
from benchmarks.choices import interval
from benchmarks.faulty_model import FaultyServer, model_name
from benchmarks.guardrails import ForgeRunner, free_port
from benchmarks.other_programs import confined, download_source, make_environment, started

RUNNER = Path(__file__).with_name("suite_runner.py")
REQUIREMENTS = {
    "toolcallbench": "toolcallbench==1.0.1",
    "tool-eval-bench": "tool-eval-bench==3.0.0",
    "forge": "forge-guardrails==0.10.0",
}
USUAL = ("direct", "serve", "agent")
WAYS = (*USUAL, "forge proxy", "forge runner")
MAX_TURNS = 10


@dataclass
class Suite:
    """The benchmark's process, which runs one task at a time."""

    process: subprocess.Popen[str]
    turn: int = 0
    performed: int = 0
    tasks: list[JsonObject] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tasks = self._read()

    def scenarios(self) -> list[Scenario]:
        return [self._scenario(task) for task in self.tasks]

    def _scenario(self, task: JsonObject) -> Scenario:
        def oracle() -> Oracle:
            for calls in task.get("steps", ()):
                yield [ExpectedCall(**call) for call in calls]
            return str(task.get("answer", ""))

        return Scenario(
            task["name"], task["kind"], task["user"], task["tools"], lambda: self._start(task["name"]), oracle,
            self._check, system=task["system"], required=(),
        )  # fmt: skip

    def next_turn(self) -> None:
        """Count a request to the model."""
        self.turn += 1

    def perform(self, name: str, arguments: JsonObject) -> str:
        self.performed += 1
        self._write({"call": {"name": name, "arguments": arguments}, "turn": self.turn})
        result = self._read()
        if not result["ok"]:
            raise ToolRefusal(str(result["result"]).removeprefix("error: "))
        return str(result["result"])

    def _start(self, name: str) -> object:
        self.turn = self.performed = 0
        self._write({"start": name})
        return _World(self)

    def _check(self, _world: Json, executed: Sequence[ExecutedCall], answer: str) -> str:
        self._write({"answer": answer, "refused": len(executed) - self.performed})
        return str(self._read()["fault"])

    def _write(self, value: JsonObject) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the benchmark ended with {self.process.wait()}; its message is above")
        return json.loads(line)


class _World:
    """Has a method for each tool."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    def __getattr__(self, name: str) -> Any:
        return lambda **arguments: self._suite.perform(name, arguments)


def start_suite(name: str, folder: Path, base: str | None, stack: ExitStack) -> Suite:
    python = make_environment(folder / "environment", REQUIREMENTS[name], base)
    source = [download_source(python, REQUIREMENTS[name], folder / "source")] if name == "forge" else []
    prefix = [str(python), "-c", "import sys; print(sys.base_prefix)"]
    base_prefix = subprocess.run(prefix, check=True, capture_output=True, text=True).stdout.strip()
    readable = [folder / "environment", Path(base_prefix), RUNNER, *source]
    work = folder / "work"
    work.mkdir(exist_ok=True)
    code = f"import sys, runpy; sys.path[:0] = {list(map(str, source))}; sys.argv = ['', {name!r}]; "
    code += f"runpy.run_path({str(RUNNER)!r}, run_name='__main__')"
    return Suite(stack.enter_context(confined([str(python), "-B", "-c", code], work, readable)))


def find_model(options: argparse.Namespace, scenarios: Sequence[Scenario], stack: ExitStack) -> Endpoint:
    if options.scripted is not None:
        return Endpoint(f"{stack.enter_context(FaultyServer(scenarios)).url}/v1")
    if options.base_url:
        return find_endpoint(options.base_url)
    weights = options.model or download_builtin_model()
    return stack.enter_context(EmbeddedServer(weights, context_size=8192)).endpoint


def harnesses(options: argparse.Namespace, endpoint: Endpoint, stack: ExitStack) -> Iterator[Harness]:
    name = "scripted" if options.scripted is not None else stack.enter_context(ChatClient(endpoint)).model

    sampling = Sampling(max_tokens=options.max_tokens)
    for way in options.way:

        def model(scenario: Scenario, number: int, way: str = way) -> str:
            run = f"{way}_{scenario.name}"
            return name if options.scripted is None else model_name(options.scripted, 1, number, run)

        if way == "agent":
            yield AgentHarness(way, endpoint, model, sampling, MAX_TURNS)
            continue
        url = endpoint.base_url
        if way == "forge runner":
            runner = ForgeRunner(way, options.forge / "bin" / "python", url, model)
            stack.callback(runner.close)
            yield runner
            continue
        if way == "serve":
            upstream = ["--upstream", url.removesuffix("/v1"), "--port", "0"]
            command = [sys.executable, "-m", "adapter", "serve", *upstream]
            url = stack.enter_context(started(command, r"^serving (\S+?)(?:/v1)?, from ")) + "/v1"
        elif way == "forge proxy":
            upstream = ["--backend-url", url, "--port", str(free_port()), "--inject-respond-tool"]
            command = [str(options.forge / "bin" / "python"), "-u", "-m", "forge.proxy", *upstream]
            url = stack.enter_context(started(command, r"proxy running at (\S+)")) + "/v1"
        client = stack.enter_context(OpenAI(base_url=url, api_key="none", max_retries=0))
        yield SdkHarness(way, client, model, sampling, max_turns=MAX_TURNS)


def row(way: str, runs: Sequence[EvalRun], kinds: Sequence[str]) -> list[str]:
    def share(some: Sequence[EvalRun]) -> str:
        return f"{sum(run.done for run in some)}/{len(some)}"

    by_kind = [share([run for run in runs if run.kind == kind]) for kind in kinds]
    costs = [f"{sum(getattr(run, name) for run in runs) / len(runs):.1f}" for name in ("turns", "calls", "refused")]
    return [way, *by_kind, share(runs), interval(sum(run.done for run in runs), len(runs)), *costs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("suite", choices=REQUIREMENTS)
    parser.add_argument("--model", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--scripted", type=float, metavar="RATE", help="scripted, with mistakes in this share of steps")
    parser.add_argument("--way", nargs="*", choices=WAYS, default=USUAL)
    parser.add_argument("--forge", type=Path, help="an environment with Forge, for its ways")
    parser.add_argument("--kind", nargs="*", default=[], help="only tasks of these kinds")
    parser.add_argument("--limit", type=int, help="only the first tasks")
    parser.add_argument("--runs", type=int, default=1, help="of each task and way")
    parser.add_argument("--max-tokens", type=int, default=512, help="of an answer")
    parser.add_argument("--folder", type=Path, help="where the benchmark is installed; default: a temporary folder")
    parser.add_argument("--python", help="what its environment is made with; Forge needs 3.12")
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    options = parser.parse_args()
    if options.scripted is not None and options.suite != "toolcallbench":
        parser.error("only toolcallbench has reference solutions for a scripted model")
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        base = options.python or (None if options.suite == "forge" else sys.executable)
        if options.forge:
            make_environment(options.forge, REQUIREMENTS["forge"], options.python)
        suite = start_suite(options.suite, folder.absolute(), base, stack)
        scenarios = [each for each in suite.scenarios() if not options.kind or each.kind in options.kind]
        scenarios = scenarios[: options.limit]
        kinds = list(dict.fromkeys(each.kind for each in scenarios))
        table = Table("way", *kinds, "done", "%", "answers", "calls", "refused")
        for harness in harnesses(options, find_model(options, scenarios, stack), stack):
            runs = []
            for scenario in scenarios:
                for number in range(options.runs):
                    runs.append(run := harness.run(scenario, number, suite.next_turn))
                    if options.verbose:
                        print(harness.name, run.scenario, run.fault or "done", f"{run.calls} calls", flush=True)
            print(json.dumps(row(harness.name, runs, kinds)), flush=True)
            table.add_row(*row(harness.name, runs, kinds))
    Console(width=max(100, os.get_terminal_size().columns if sys.stdout.isatty() else 0)).print(table)


if __name__ == "__main__":
    main()
