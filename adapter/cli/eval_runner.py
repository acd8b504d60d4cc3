"""Run `adapter eval`: try scenarios with several tool-calling methods, and write runs, a table and a report page."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import product
from pathlib import Path

from rich.console import Console as Rich
from rich.progress import Progress
from rich.table import Table

from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import build_api_url
from adapter.cli.agent_console import Console
from adapter.cli.eval_settings import EvalSettings
from adapter.cli.model_loading import load_model, require_model_choice
from adapter.cli.options import parse_auto
from adapter.cli.progress_bars import create_task_progress
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import JsonObject
from adapter.core.private_files import write_private
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.plurals import pluralize
from adapter.core.version import __version__
from adapter.evaluation.eval_report_page import render_eval_report
from adapter.evaluation.eval_scores import (
    aggregate_runs,
    count_discordant_pairs,
    format_percent,
    format_rate,
    group_by_kind,
)
from adapter.evaluation.run_log import RunLog
from adapter.evaluation.scenario import Scenario
from adapter.evaluation.scenario_runner import AgentHarness, EvalRun, Harness, Sampling, SdkHarness
from adapter.evaluation.suite_loader import load_suite, select_scenarios
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode

WAYS = ("bare", "ours", "agent")
"""Tool-calling methods: the server's own, this program's through `adapter.wrap`, and the agent of `adapter run`."""
PROGRESS_LINES = 10
"""Number of progress lines that an evaluation prints if stderr is not a terminal."""
STOPPED = "stopped by the user"
SAME_RUNS = "at temperature 0, the runs of a scenario are mostly identical; raise --temperature for independent runs"


class _TimeLimitExceeded(Exception):
    """Raised during a run when the time limit is reached."""


def list_scenarios(settings: EvalSettings) -> int:
    """Print the selected scenarios without running them."""
    table = Table("kind", "scenario", "tools", "calls", box=None)
    for each in _load_scenarios(settings):
        easy = " (easy)" if each.easy else ""
        table.add_row(
            escape_for_display(each.kind),
            escape_for_display(each.name) + easy,
            str(len(each.tools)),
            str(len(each.solution[0])),
        )
    Rich(soft_wrap=True, markup=False).print(table)
    return 0


def run_eval(settings: EvalSettings) -> int:
    """Run the evaluation, and return the exit code: 0, or 130 after Ctrl-C. Raises TransportError and UsageError."""
    scenarios = _load_scenarios(settings)
    constraint = parse_constraint_mode(parse_auto(settings.constraint))
    parse_guardrails(settings.guardrails)
    names, proxies = _parse_ways(settings)
    require_model_choice("eval", settings.base_url, settings.model, settings.time_limit)
    console = Console()
    if settings.runs > 1 and not settings.temperature:
        console.note(SAME_RUNS)
    with ExitStack() as stack:
        chat = stack.enter_context(load_model(settings.base_url, settings.model, console)).chat
        ways = list(_make_harnesses(names, proxies, chat, settings, constraint, stack))
        results, html = _choose_output_paths(settings, chat.model)
        head = {
            "model": chat.model,
            **asdict(_build_sampling(settings)),
            "constraint": settings.constraint,
            "version": __version__,
        }
        head |= {"guardrails": settings.guardrails} if settings.guardrails != "on" else {}
        head |= {"retries": settings.retries} if settings.retries is not None else {}
        log = stack.enter_context(RunLog(results, head))
        planned = [(scenario, way, number) for number, scenario, way in product(range(settings.runs), scenarios, ways)]
        ended = _run_planned(planned, log, settings.time_limit, console)
        runs = [run for each, way, number in planned if (run := log.get(each, way.name, number)) is not None]
        server = f"{chat.endpoint.kind} at {chat.endpoint.display_url}"
    order = [way.name for way in ways]
    write_private(html, render_eval_report(chat.model, server, head, scenarios, runs, order, ended), "--page")
    if settings.as_json:
        print(json.dumps(_build_rows(runs, order, ended, results, html), indent=2))
    else:
        _print(runs, order)
    if ended:
        missing = f"{len(runs)} of {pluralize(len(planned), 'run')}: {ended}"
        print(f"{missing}; run the same command again to continue", file=sys.stderr)
    print(f"runs: {results}\npage: {html}", file=sys.stderr)
    return 130 if ended == STOPPED else 0


def _choose_output_paths(settings: EvalSettings, model: str) -> tuple[Path, Path]:
    """Return the paths for the results and the report."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", model).strip("._") or "model"
    results = settings.results or Path(f"eval-{name}.jsonl")
    html = settings.page or results.parent / f"{results.stem}.html"
    if html == results:
        raise UsageError(f"--results and --page name the same file, {html}; choose another file with --page")
    return results, html


def _load_scenarios(settings: EvalSettings) -> list[Scenario]:
    return select_scenarios(load_suite(settings.suite), settings.kinds or (), settings.names or (), easy=settings.easy)


def _build_sampling(settings: EvalSettings) -> Sampling:
    return Sampling(settings.temperature, settings.max_tokens, settings.seed)


def _parse_ways(settings: EvalSettings) -> tuple[list[str], dict[str, str]]:
    """Return the names of the requested methods (see `WAYS`), and the URLs of the proxies by name."""
    names = list(dict.fromkeys(settings.ways or WAYS[:2]))
    if unknown := [name for name in names if name not in WAYS]:
        raise UsageError(
            f"unknown --way {unknown[0]!r}; expected {', '.join(WAYS)}. To evaluate a proxy, use --also NAME=URL"
        )
    proxies: dict[str, str] = {}
    for value in settings.also or ():
        name, equals, url = value.partition("=")
        if not (name and equals and url) or name in WAYS or name in proxies:
            raise UsageError(
                f"--also {value!r}: expected NAME=URL with an unused name, e.g. proxy=http://127.0.0.1:8090"
            )
        proxies[name] = build_api_url(url)
    return names, proxies


def _make_harnesses(
    names: Sequence[str], proxies: dict[str, str], chat: ChatClient, settings: EvalSettings,
    constraint: Constraint | None, stack: ExitStack,
) -> Iterator[Harness]:  # fmt: skip
    from openai import DefaultHttpxClient, OpenAI

    from adapter.integrations.openai_client.wrap import wrap

    http = DefaultHttpxClient(trust_env=not chat.endpoint.is_local)
    client = stack.enter_context(OpenAI(**chat.build_sdk_settings(), http_client=http))
    sampling = _build_sampling(settings)
    guardrails: JsonObject = {"guardrails": settings.guardrails}
    guardrails |= {} if settings.retries is None else {"retries": settings.retries}
    options: JsonObject = guardrails if constraint is None else {**guardrails, "constraint": constraint}
    for name in names:
        if name == "bare":
            yield SdkHarness(name, client, chat.model, sampling)
        elif name == "ours":
            wrapped = wrap(client, constraint=constraint, profile=settings.profile, **guardrails)
            yield SdkHarness(name, wrapped, chat.model, sampling)
        else:
            yield AgentHarness(name, chat.endpoint, chat.model, sampling, options=lambda _: options)
    for name, url in proxies.items():
        yield SdkHarness(name, client.with_options(base_url=url), chat.model, sampling)


def _run_planned(
    planned: Sequence[tuple[Scenario, Harness, int]], log: RunLog, time_limit_s: float, console: Console
) -> str:
    """Run the planned runs that are not in the log yet. Return the reason for an early end, or ""."""
    until = time.monotonic() + time_limit_s

    def check_time() -> None:
        if time.monotonic() >= until:
            raise _TimeLimitExceeded

    known = [run for each, way, number in planned if (run := log.get(each, way.name, number)) is not None]
    if known:
        console.note(f"{len(known)} of {pluralize(len(planned), 'run')} found in {log.path}")
    try:
        with create_task_progress() as bar:
            display = _EvalProgress(bar, len(planned), known)
            for scenario, way, number in planned:
                if log.get(scenario, way.name, number) is not None:
                    continue
                check_time()
                display.begin(scenario)
                run = way.run(scenario, number, check_time)
                log.add(run, scenario)
                display.end(run)
    except _TimeLimitExceeded:
        return f"the time limit of {time_limit_s:g} s was reached"
    except KeyboardInterrupt:
        return STOPPED
    except TransportError as error:
        if not log.runs:
            raise
        print(f"adapter: {escape_for_display(str(error))}", file=sys.stderr)
        return "the connection to the server was lost"
    return ""


def _build_rows(runs: Sequence[EvalRun], ways: Sequence[str], ended: str, results: Path, html: Path) -> JsonObject:
    def build_row(some: Sequence[EvalRun]) -> JsonObject:
        each = aggregate_runs(some)
        return {**asdict(each), "share": each.share, "interval": each.interval}

    return {
        "ended": ended, "results": str(results), "page": str(html),
        "ways": {
            way: {**build_row(own), "kinds": {kind: build_row(some) for kind, some in group_by_kind(own).items()}}
            for way in ways
            if (own := [run for run in runs if run.way == way])
        },
    }  # fmt: skip


def _print(runs: Sequence[EvalRun], ways: Sequence[str]) -> None:
    table = Table("completed runs (95 % interval)", *ways, box=None)
    scores = {way: aggregate_runs([run for run in runs if run.way == way]) for way in ways}
    for kind, some in group_by_kind(runs).items():
        cells = [aggregate_runs([run for run in some if run.way == way]) for way in ways]
        table.add_row(escape_for_display(kind), *(f"{each.done} of {each.runs}" if each.runs else "" for each in cells))
    table.add_row("all", *(format_rate(each) if each.runs else "" for each in scores.values()), style="bold")
    for name, format_cost in COSTS.items():
        table.add_row(name, *(format_cost(each) if each.runs else "" for each in scores.values()))
    Rich(soft_wrap=True, markup=False).print(table)
    for way in ways[1:]:
        first, second = count_discordant_pairs(runs, ways[0], way)
        print(f"only {escape_for_display(way)}: {second}, only {escape_for_display(ways[0])}: {first}")


COSTS: dict[str, Callable[..., str]] = {
    "answers per run": lambda each: f"{each.turns:.1f}",
    "calls per run": lambda each: f"{each.calls:.1f}",
    "tokens per run": lambda each: f"{each.prompt_tokens + each.written_tokens:,.0f}",
    "seconds per run": lambda each: f"{each.seconds:.1f}",
}


class _EvalProgress:
    """Shows the progress on stderr: a progress bar on a terminal, otherwise at most `PROGRESS_LINES` lines."""

    def __init__(self, bar: Progress, total: int, known: Sequence[EvalRun]) -> None:
        self._bar = bar
        self._total, self._finished = total, len(known)
        self._runs, self._done = Counter(run.way for run in known), Counter(run.way for run in known if run.done)
        self._task = self._bar.add_task("", total=total, completed=len(known))

    def begin(self, scenario: Scenario) -> None:
        name = escape_for_display(scenario.name)[:16]
        self._bar.update(self._task, description=f"{self._describe_progress()} {name}".strip())

    def end(self, run: EvalRun) -> None:
        self._finished += 1
        self._runs[run.way] += 1
        self._done[run.way] += run.done
        self._bar.update(self._task, completed=self._finished)
        step = self._finished * PROGRESS_LINES // self._total
        if self._bar.disable and step > (self._finished - 1) * PROGRESS_LINES // self._total:
            print(f"{self._finished} of {self._total} runs: {self._describe_progress()}", file=sys.stderr, flush=True)

    def _describe_progress(self) -> str:
        return ", ".join(
            f"{way} {format_percent(self._done[way] / count)}" for way, count in self._runs.items() if count
        )
