"""`adapter eval`: runs scenarios in several ways, shows how it goes, and writes every run, a table and a page."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path

from rich.console import Console as Rich
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import api_url
from adapter.cli.console import Console
from adapter.cli.model_loading import check_chosen, load_model
from adapter.conversation.guardrails.registry import parse_guardrails as chosen_guardrails
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import JsonObject
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.plurals import pluralize
from adapter.core.version import __version__
from adapter.evaluation.metrics import aggregate_runs, by_kind, discordant_pairs, percent, with_interval
from adapter.evaluation.report_page import page
from adapter.evaluation.run_log import RunLog
from adapter.evaluation.runner import AgentHarness, EvalRun, Harness, Sampling, SdkHarness
from adapter.evaluation.scenario import Scenario
from adapter.evaluation.suite_loader import BUILT_IN, load_suite, select_scenarios
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode

WAYS = ("bare", "ours", "agent")
NOTED = 10
"""Shares of the runs after which a line says how it stands, where there is no terminal for a bar."""


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """What the command line said."""

    base_url: str | None = None
    model: str | None = None
    ways: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    suite: str = BUILT_IN
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    easy: bool = False
    runs: int = 1
    time_limit_s: float = 3600.0
    sampling: Sampling = field(default_factory=Sampling)
    constraint: str = "auto"
    profile: str = "auto"
    guardrails: str = "on"
    retries: int | None = None
    results: Path | None = None
    page: Path | None = None
    as_json: bool = False


class _TimeLimitExceeded(Exception):
    """The time limit came in the middle of a run."""


def list_scenarios(settings: EvalSettings) -> int:
    """Prints the scenarios that would be run."""
    table = Table("kind", "scenario", "tools", "calls", box=None)
    for each in _scenarios(settings):
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
    """The exit code: 0, or 130 when it was stopped. Raises TransportError and UsageError with the next step."""
    scenarios = _scenarios(settings)
    constraint = parse_constraint_mode(None if settings.constraint == "auto" else settings.constraint)
    watched = _watched(settings)
    names, also = _ways(settings)
    check_chosen("eval", settings.base_url, settings.model, settings.time_limit_s)
    console = Console()
    if settings.runs > 1 and not settings.sampling.temperature:
        console.note(ALIKE)
    with ExitStack() as stack:
        chat = stack.enter_context(load_model(settings.base_url, settings.model, console)).chat
        ways = list(_made(names, also, chat, settings, constraint, watched, stack))
        results, html = _places(settings, chat.model)
        sampling = asdict(settings.sampling)
        head = {"model": chat.model, **sampling, "constraint": settings.constraint, "version": __version__}
        head |= {"guardrails": settings.guardrails} if settings.guardrails != "on" else {}
        head |= {"retries": settings.retries} if settings.retries is not None else {}
        log = stack.enter_context(RunLog(results, head))
        planned = [(scenario, way, number) for number, scenario, way in product(range(settings.runs), scenarios, ways)]
        ended = _run(planned, log, settings.time_limit_s, console)
        runs = [run for each, way, number in planned if (run := log.get(each, way.name, number)) is not None]
        server = f"{chat.endpoint.kind} at {chat.endpoint.display_url}"
    order = [way.name for way in ways]
    _write(html, page(chat.model, server, head, scenarios, runs, order, ended))
    if settings.as_json:
        print(json.dumps(_rows(runs, order, ended, results, html), indent=2))
    else:
        _print(runs, order)
    if ended:
        missing = f"{len(runs)} of {pluralize(len(planned), 'run')}: {ended}"
        print(f"{missing}; the same command goes on from there", file=sys.stderr)
    print(f"runs: {results}\npage: {html}", file=sys.stderr)
    return 130 if ended == STOPPED else 0


def _places(settings: EvalSettings, model: str) -> tuple[Path, Path]:
    """Where the runs and the page are written."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", model).strip("._") or "model"
    results = settings.results or Path(f"eval-{name}.jsonl")
    html = settings.page or results.with_suffix(".html")
    if html == results:
        raise UsageError(f"the results and the page cannot both be {html}. Choose another --page.")
    return results, html


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}. Choose another place with --page.") from error


STOPPED = "it was stopped"
ALIKE = "at temperature 0 the runs of a scenario are mostly alike and tell little more: give --temperature, too"


def _scenarios(settings: EvalSettings) -> list[Scenario]:
    return select_scenarios(load_suite(settings.suite), settings.kinds, settings.names, easy=settings.easy)


def _ways(settings: EvalSettings) -> tuple[list[str], dict[str, str]]:
    """The names of our own ways, and the others' addresses by name."""
    names = list(dict.fromkeys(settings.ways or WAYS[:2]))
    if unknown := [name for name in names if name not in WAYS]:
        raise UsageError(f"unknown way {unknown[0]!r}; expected {', '.join(WAYS)}, or --also NAME=URL for a proxy")
    also = {}
    for each in settings.also:
        name, equals, url = each.partition("=")
        if not (name and equals and url) or name in WAYS or name in also:
            raise UsageError(
                f"--also {each!r}: expected NAME=URL, such as proxy=http://127.0.0.1:8090, with a new name"
            )
        also[name] = api_url(url)
    return names, also


def _watched(settings: EvalSettings) -> JsonObject:
    """How `wrap` and `Agent` are to watch answers."""
    chosen_guardrails(settings.guardrails)
    return {"guardrails": settings.guardrails} | ({} if settings.retries is None else {"retries": settings.retries})


def _made(
    names: Sequence[str], also: dict[str, str], chat: ChatClient, settings: EvalSettings, constraint: Constraint | None,
    watched: JsonObject, stack: ExitStack,
) -> Iterator[Harness]:  # fmt: skip
    from openai import DefaultHttpxClient, OpenAI

    from adapter.integrations.openai_client.wrap import wrap

    http = DefaultHttpxClient(trust_env=not chat.endpoint.is_local)
    client = stack.enter_context(OpenAI(**chat.sdk_settings(), http_client=http))
    options: JsonObject = watched if constraint is None else {**watched, "constraint": constraint}
    for name in names:
        if name == "bare":
            yield SdkHarness(name, client, chat.model, settings.sampling)
        elif name == "ours":
            ours = wrap(client, constraint=constraint, profile=settings.profile, **watched)
            yield SdkHarness(name, ours, chat.model, settings.sampling)
        else:
            yield AgentHarness(name, chat.endpoint, chat.model, settings.sampling, options=lambda _: options)
    for name, url in also.items():
        yield SdkHarness(name, client.with_options(base_url=url), chat.model, settings.sampling)


def _run(planned: Sequence[tuple[Scenario, Harness, int]], log: RunLog, time_limit_s: float, console: Console) -> str:
    """Runs what is not in the log yet; why it ended before the end, nothing when it did not."""
    until = time.monotonic() + time_limit_s

    def go_on() -> None:
        if time.monotonic() >= until:
            raise _TimeLimitExceeded

    known = [run for each, way, number in planned if (run := log.get(each, way.name, number)) is not None]
    if known:
        console.note(f"{pluralize(len(known), 'run')} of {len(planned)} are in {log.path} already")
    try:
        with _EvalProgress(len(planned), known) as display:
            for scenario, way, number in planned:
                if log.get(scenario, way.name, number) is not None:
                    continue
                go_on()
                display.begin(scenario)
                run = way.run(scenario, number, go_on)
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
        return "the server was lost"
    return ""


def _rows(runs: Sequence[EvalRun], ways: Sequence[str], ended: str, results: Path, html: Path) -> JsonObject:
    def row(some: Sequence[EvalRun]) -> JsonObject:
        each = aggregate_runs(some)
        return {**asdict(each), "share": each.share, "interval": each.interval}

    return {
        "ended": ended, "results": str(results), "page": str(html),
        "ways": {
            way: {**row(own), "kinds": {kind: row(some) for kind, some in by_kind(own).items()}}
            for way in ways
            if (own := [run for run in runs if run.way == way])
        },
    }  # fmt: skip


def _print(runs: Sequence[EvalRun], ways: Sequence[str]) -> None:
    table = Table("done, of all runs (95 %)", *ways, box=None)
    scores = {way: aggregate_runs([run for run in runs if run.way == way]) for way in ways}
    for kind, some in by_kind(runs).items():
        cells = [aggregate_runs([run for run in some if run.way == way]) for way in ways]
        table.add_row(escape_for_display(kind), *(f"{each.done} of {each.runs}" if each.runs else "" for each in cells))
    table.add_row("all", *(with_interval(each) if each.runs else "" for each in scores.values()), style="bold")
    for name, told in COSTS.items():
        table.add_row(name, *(told(each) if each.runs else "" for each in scores.values()))
    Rich(soft_wrap=True, markup=False).print(table)
    for way in ways[1:]:
        first, second = discordant_pairs(runs, ways[0], way)
        print(f"only {escape_for_display(way)}: {second}, only {escape_for_display(ways[0])}: {first}")


COSTS: dict[str, Callable[..., str]] = {
    "answers a run": lambda each: f"{each.turns:.1f}",
    "calls a run": lambda each: f"{each.calls:.1f}",
    "tokens a run": lambda each: f"{each.prompt_tokens + each.written_tokens:,.0f}",
    "s a run": lambda each: f"{each.seconds:.1f}",
}


class _EvalProgress:
    """A bar on a terminal, a line now and then elsewhere; on stderr."""

    def __init__(self, total: int, known: Sequence[EvalRun]) -> None:
        people = Rich(stderr=True)
        self._is_terminal = people.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left:"), TimeRemainingColumn(),
            console=people, disable=not self._is_terminal, transient=True,
        )  # fmt: skip
        self._total, self._finished = total, len(known)
        self._runs, self._done = Counter(run.way for run in known), Counter(run.way for run in known if run.done)
        self._task = self._progress.add_task("", total=total, completed=len(known))

    def begin(self, scenario: Scenario) -> None:
        self._progress.update(
            self._task, description=f"{self._stand()} {escape_for_display(scenario.name)[:16]}".strip()
        )

    def end(self, run: EvalRun) -> None:
        self._finished += 1
        self._runs[run.way] += 1
        self._done[run.way] += run.done
        self._progress.update(self._task, completed=self._finished)
        if (
            not self._is_terminal
            and self._finished * NOTED // self._total > (self._finished - 1) * NOTED // self._total
        ):
            print(f"{self._finished} of {self._total} runs: {self._stand()}", file=sys.stderr, flush=True)

    def _stand(self) -> str:
        return ", ".join(f"{way} {percent(self._done[way] / count)}" for way, count in self._runs.items() if count)

    def __enter__(self) -> _EvalProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
