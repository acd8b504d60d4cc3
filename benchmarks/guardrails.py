"""Compare how many mistakes of the same simulated model each harness recovers: this program's, Forge's, and none.

    python -m benchmarks.guardrails --forge DIR [--rate R ...] [--runs N] [--arm NAME ...] [--by-mistake]
        [--only MISTAKE] [--mending NAMED TOLD ANEW] [--serve OPTIONS] [--agent JSON] [--results FILE]

The model is `benchmarks.faulty_model`, which solves the scenarios of `adapter eval` and makes mistakes at a rate per
step. Every arm meets the same first mistakes. *bare* is the plain loop of an OpenAI client with the engine's own tools.
Forge (`forge-guardrails` on PyPI, unmodified) runs in its own environment, ``--forge DIR``, which is created if missing
(Python 3.12 or newer): its proxy with its tool for text answers, as it recommends, or with its defaults (*default*),
and its runner, which knows the required steps. Ours are `adapter serve` with the same plain loop, without or with the
required steps (*told*), and `Agent` with or without them (*untold*).

*done* is the share of runs with the right outcome (Wilson's 95 % interval), *model calls* the number of requests to the
model per run, and how many of them were superfluous in completed runs. Without mistakes (``--rate 0``), any superfluous
request is a false alarm. ``--serve`` and ``--agent`` change our options, to measure the effect of each part.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adapter.agent.agent import Agent
from adapter.backends.endpoint_discovery import Endpoint
from adapter.core.events import JsonObject
from adapter.evaluation.eval_scores import aggregate_runs, format_percent, format_rate
from adapter.evaluation.run_log import RunLog
from adapter.evaluation.scenario import ExecutedCall, Scenario, find_next_step, perform
from adapter.evaluation.scenario_runner import (
    MAX_TURNS,
    AgentHarness,
    EvalRun,
    Harness,
    SdkHarness,
    score_run,
)
from adapter.evaluation.suite_loader import load_suite, select_scenarios
from benchmarks.faulty_model import CorrectionRates, FaultyServer, model_name
from benchmarks.mistakes import MISTAKES
from benchmarks.other_programs import make_environment, started

USUAL_ARMS = ("bare", "forge proxy", "forge runner", "ours proxy", "ours agent")
ARMS = (*USUAL_ARMS, "forge proxy default", "ours proxy told", "ours agent untold")
RATES = (0.05, 0.1, 0.2, 0.4)
CONTEXT = 32_768
FORGE = "forge-guardrails"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Setting:
    """The settings for the model's mistakes. ``only``: the only kind of mistake, if set."""

    rate: float
    only: str = ""
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.rate:g} {self.only}".strip()


def count_needed_answers(scenario: Scenario) -> int:
    """Return the number of answers of a model that makes no mistake."""
    made, steps = list[ExecutedCall](), 0
    world = scenario.world()
    while not isinstance(step := find_next_step(scenario, made), str):
        made += [perform(scenario, world, call.name, call.arguments) for call in step.calls]
        steps += 1
    return steps + 1


# ------------------------------------------------------------------------------------------------------------- arms


@dataclass
class ForgeRunner:
    """Runs Forge's loop in a process of its environment."""

    name: str
    python: Path
    base_url: str
    model: Callable[[Scenario, int], str]
    process: subprocess.Popen[str] | None = None

    def run(self, scenario: Scenario, number: int, go_on: Callable[[], None]) -> EvalRun:
        go_on()
        if self.process is None:
            command = [str(self.python), str(HERE / "forge_runner.py")]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
            )
        world, made = scenario.world(), list[ExecutedCall]()
        run = EvalRun(scenario.name, scenario.kind, self.name, number)
        began = time.monotonic()
        self._say({
            "system": scenario.system, "user": scenario.user, "tools": list(scenario.tools), "context": CONTEXT,
            "required": list(scenario.required_tools), "model": self.model(scenario, number),
            "base_url": self.base_url, "max_turns": MAX_TURNS,
        })  # fmt: skip
        while "call" in (said := self._hear()):
            made.append(perform(scenario, world, said["call"]["name"], said["call"]["arguments"]))
            self._say({"result": made[-1].result, "ok": made[-1].ok})
        run.answer, run.fault = said["ended"]["answer"], said["ended"]["fault"]
        return score_run(run, scenario, world, made, began)

    def _say(self, value: object) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def _hear(self) -> dict[str, dict[str, str]]:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(
                f"Forge's runner ended with {self.process.wait()}; run benchmarks/forge_runner.py by itself"
            )
        heard: dict[str, dict[str, str]] = json.loads(line)
        return heard

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Bench:
    """The faulty model and the servers in front of it, which start when an arm needs them."""

    server: FaultyServer
    forge: Path | None
    serve_options: Sequence[str] = ()
    agent_options: JsonObject = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    urls: dict[str, str] = field(default_factory=dict)

    def way(self, arm: str, setting: Setting) -> Harness:
        from openai import OpenAI

        def model(scenario: Scenario, number: int) -> str:
            return model_name(setting.rate, setting.seed, number, run_name(arm, scenario), setting.only)

        name, url = f"{arm}, {setting}", f"{self.server.url}/v1"
        if arm.startswith("ours agent"):
            told = none if arm.endswith("untold") else steps
            return AgentHarness(
                name, Endpoint(url), model, options=lambda scenario: {**told(scenario), **self.agent_options}
            )
        if arm == "forge runner":
            runner = ForgeRunner(name, self._forge(), url, model)
            self.stack.callback(runner.close)
            return runner
        if arm != "bare":
            url = f"{self._proxy(arm)}/v1"
        client = self.stack.enter_context(OpenAI(base_url=url, api_key="none", max_retries=0))
        extra = build_server_steps if arm.endswith(" told") else none
        return SdkHarness(name, client, model, extra=extra)

    def _forge(self) -> Path:
        if self.forge is None:
            raise SystemExit("these arms need Forge: --forge DIR")
        return self.forge

    def _proxy(self, arm: str) -> str:
        arm = arm.removesuffix(" told")
        if arm not in self.urls:
            if arm == "ours proxy":
                upstream = ["--upstream", self.server.url, "--port", "0", *self.serve_options]
                command = [sys.executable, "-m", "adapter", "serve", *upstream]
                pattern = r"^serving (\S+?)(?:/v1)?, from "
            else:
                respond = [] if arm.endswith("default") else ["--inject-respond-tool"]
                upstream = ["--backend-url", f"{self.server.url}/v1", "--port", str(free_port())]
                command = [str(self._forge()), "-u", "-m", "forge.proxy", *upstream, *respond]
                pattern = r"proxy running at (\S+)"
            self.urls[arm] = self.stack.enter_context(started(command, pattern))
        return self.urls[arm]


def none(_scenario: Scenario) -> JsonObject:
    return {}


def steps(scenario: Scenario) -> JsonObject:
    knows = "steps" in inspect.signature(Agent).parameters
    return {"steps": {"required": list(scenario.required_tools)}} if knows else {}


def build_server_steps(scenario: Scenario) -> JsonObject:
    """Return the required steps in the form that our server accepts."""
    return {"adapter": {"steps": {"required": list(scenario.required_tools)}}}


def run_name(arm: str, scenario: Scenario) -> str:
    return re.sub(r"\W+", "_", f"{arm} {scenario.name}")


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


# ------------------------------------------------------------------------------------------------------ measurements


def measure(
    bench: Bench, arm: str, setting: Setting, scenarios: Sequence[Scenario], runs: int, log: RunLog | None
) -> list[EvalRun]:
    """Return the runs of an arm, with the numbers of turns and tokens that the model counted."""
    way = bench.way(arm, setting)
    done = []
    for number in range(runs):
        for scenario in scenarios:
            run = log.get(scenario, way.name, number) if log else None
            if run is None:
                told = bench.server.model.told
                before = set(told)
                run = way.run(scenario, number, lambda: None)
                (name,) = set(told) - before
                run.turns, run.prompt_tokens = told[name].requests, told[name].prompt_tokens
                run.written_tokens = told[name].written_tokens
                if log:
                    log.add(run, scenario)
            done.append(run)
    print(f"{way.name}: {sum(run.done for run in done)} of {len(done)} done", file=sys.stderr)
    return done


def table_of(title: str, columns: Sequence[str]) -> Table:
    table = Table(title, box=None)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def compare(bench: Bench, arms: Sequence[str], settings: Sequence[Setting], scenarios: Sequence[Scenario], runs: int,
            log: RunLog | None) -> None:  # fmt: skip
    """Print a block of rows for each setting."""
    table = table_of("mistakes, arm", ("done", "model calls", "more where done", "tokens"))
    least = {scenario.name: count_needed_answers(scenario) for scenario in scenarios}
    for setting in settings:
        for arm in arms:
            some = measure(bench, arm, setting, scenarios, runs, log)
            each = aggregate_runs(some)
            more = [run.turns - least[run.scenario] for run in some if run.done]
            table.add_row(
                f"{format_percent(setting.rate)}, {arm}", format_rate(each), f"{each.turns:.2f}",
                f"{statistics.mean(more):+.2f}" if more else "", f"{each.prompt_tokens + each.written_tokens:,.0f}",
            )  # fmt: skip
            if not setting.rate:
                asked = sum(run.turns for run in some)
                print(
                    f"no mistakes, {arm}: {sum(more)} of {asked} answers were asked for again ({sum(more) / asked:.2%})"
                )
    Console(width=140).print(table)


def by_mistake(
    bench: Bench, arms: Sequence[str], setting: Setting, scenarios: Sequence[Scenario], runs: int, log: RunLog | None
) -> None:
    table = table_of(f"only this, in {format_percent(setting.rate)} of the steps", arms)
    for mistake in MISTAKES:
        only = replace(setting, only=mistake)
        shares = [aggregate_runs(measure(bench, arm, only, scenarios, runs, log)) for arm in arms]
        table.add_row(mistake.replace("_", " "), *(format_percent(each.share) for each in shares))
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--forge", type=Path, metavar="DIR", help="an environment with forge-guardrails")
    parser.add_argument("--python", help="what that environment is made with, 3.12 or newer")
    parser.add_argument("--rate", type=float, action="append", help="mistakes a step; can be given again")
    parser.add_argument("--runs", type=int, default=2, help="of each scenario, arm and rate")
    parser.add_argument("--arm", choices=ARMS, action="append", help="only this; can be given again")
    parser.add_argument("--kind", action="append", default=[], help="only scenarios of this kind; can be given again")
    parser.add_argument("--only", choices=MISTAKES, default="", help="only this mistake")
    parser.add_argument("--by-mistake", action="store_true", help="a row for each kind of mistake")
    parser.add_argument("--mending", type=float, nargs=3, metavar=("NAMED", "TOLD", "ANEW"), default=(0.85, 0.5, 0.3))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", default="", metavar="OPTIONS", help="more of them for `adapter serve`, in one word")
    parser.add_argument("--agent", default="{}", metavar="JSON", help="more arguments for `Agent`")
    parser.add_argument("--results", type=Path, help="every run, as JSON lines; goes on with those there")
    given = parser.parse_args()
    scenarios = select_scenarios(load_suite(), given.kind, [], easy=False)
    arms = [arm for arm in given.arm or USUAL_ARMS if given.forge or not arm.startswith("forge")]
    forge = make_environment(given.forge, FORGE, given.python) if any(arm.startswith("forge") for arm in arms) else None
    print(f"a simulation: {len(scenarios)} scenarios, {given.runs} runs of each, seed {given.seed}, {given.mending=}")
    with FaultyServer(scenarios, CorrectionRates(*given.mending)) as server, ExitStack() as stack:
        bench = Bench(server, forge, shlex.split(given.serve), json.loads(given.agent), stack)
        log = None
        if given.results:
            head = {"simulation": True, "seed": given.seed, "mending": list(given.mending), "serve": given.serve}
            head["agent"] = given.agent
            log = stack.enter_context(RunLog(given.results, head))
        if given.by_mistake:
            by_mistake(bench, arms, Setting((given.rate or [0.3])[0], seed=given.seed), scenarios, given.runs, log)
        else:
            settings = [Setting(rate, given.only, given.seed) for rate in given.rate or RATES]
            compare(bench, arms, settings, scenarios, given.runs, log)


if __name__ == "__main__":
    main()
