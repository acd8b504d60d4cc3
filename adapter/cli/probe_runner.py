"""`adapter probe`: tries setups on the user's server, shows how it goes, and writes a profile and a page."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console as Rich
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from adapter.backends import profiles
from adapter.backends.chat_client import ChatClient, constraint_fields
from adapter.backends.profiles import Model, Profile, ProfileSetup
from adapter.cli.console import Console
from adapter.cli.model_loading import check_chosen, load_model
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import JsonObject
from adapter.core.text.redaction import Redactor
from adapter.evaluation.probe.report_page import page
from adapter.evaluation.probe.successive_halving import RUNGS, STOPPED, Probe, SetupTrial, candidates, probe_model
from adapter.evaluation.probe.task_runner import TaskRunner
from adapter.evaluation.probe.tasks import TASKS, TOOLS
from adapter.parsing.formats import DEFAULT_FORMAT, get_format, guess_format
from adapter.recording.exchange_log import ExchangeLog
from adapter.tools.tool import ToolSet


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """What the command line said. ``output``: the profile; by itself where `run`, `serve` and `wrap` look for it.
    ``page``: the results for people; by itself beside the profile. ``record``: a file of all answers."""

    base_url: str | None = None
    model: str | None = None
    format: str | None = None
    output: Path | None = None
    page: Path | None = None
    record: Path | None = None
    time_limit_s: float = 600.0
    as_json: bool = False


def run_probe(settings: ProbeSettings) -> int:
    """The exit code: 0, or 130 when it was stopped. Raises TransportError and UsageError with the next step."""
    check_chosen("probe", settings.base_url, settings.model, settings.time_limit_s)
    console = Console()
    log = ExchangeLog(settings.record, Redactor(os.environ)) if settings.record else None
    with load_model(settings.base_url, settings.model, console) as served:
        chat = served.chat
        model = profiles.model_of(chat.endpoint, chat.model)
        guessed = guess_format(model.name, profiles.template_of(chat.endpoint)) or guess_format(model.file)
        format = get_format(settings.format or guessed or DEFAULT_FORMAT).name
        for note in _notes(chat):
            console.note(note)
        can_constrain = bool(constraint_fields(chat.endpoint.kind, ToolSet(TOOLS)))
        found_prompt = chat.own_prompt()
        console.note(f"prompt: {found_prompt.explanation}")
        own = found_prompt.own
        setups = candidates(format, can_constrain=can_constrain, can_own=own is not None)
        minutes = settings.time_limit_s / 60
        console.note(f"{len(setups)} ways to call tools, up to {len(TASKS)} tasks each, at most {minutes:g} minutes")
        with _ProbeProgress(len(setups)) as display:
            found = probe_model(
                TaskRunner(chat, own=own, observe=log), setups, time_limit_s=settings.time_limit_s, observe=display
            )
    if not any(trial.outcomes for trial in found.trials):
        raise TransportError(f"no task was answered: {found.ended or found.trials[0].refusal}")
    output = settings.output or profiles.path_of(model.name)
    html = settings.page or output.with_suffix(".html")
    profile = _profile(model, found)
    if profile is not None:
        profiles.save(profile, output)
    try:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(model, profile, found), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {html}: {error.strerror}. Choose another place with --page.") from error
    if settings.as_json:
        print(json.dumps({"profile": profile and str(output), "page": str(html), **_rows(found)}, indent=2))
    else:
        _print(found)
    print(profile.told() if profile else NOTHING, file=sys.stderr)
    print(f"profile: {output if profile else 'none written'}\npage: {html}", file=sys.stderr)
    return 130 if found.ended == STOPPED else 0 if profile else 1


NOTHING = (
    "no setup made a right call, so nothing is known. Give it more time (--time-limit), see the answers on the page, "
    "or take a larger model."
)


def _profile(model: Model, found: Probe) -> Profile | None:
    if (best := found.best) is None:
        return None
    setup = best.setup
    return Profile(
        made=time.strftime("%Y-%m-%d"),
        is_whole=not found.ended and len(best.outcomes) == len(TASKS),
        model=model,
        use=ProfileSetup(**asdict(setup)),
        before=found.before.score_of(len(best.outcomes)),
        after=best.score,
    )


def _rows(found: Probe) -> JsonObject:
    return {
        "ended": found.ended,
        "setups": [
            {
                "name": trial.setup.name,
                "best": trial is found.best,
                "refusal": trial.refusal,
                **trial.score.model_dump(),
            }
            for trial in found.trials
        ],
    }


def _notes(chat: ChatClient) -> list[str]:
    advice = chat.context().advice
    silent = profiles.takes_tools(chat.endpoint) is False
    dropped = "the model's chat template has no place for tools: the server leaves them out without a word"
    return [note for note in (advice, dropped if silent else "") if note]


def _print(found: Probe) -> None:
    table = Table("setup", box=None)
    for heading in ("tasks", "valid", "right", "needless calls", "tokens", "s"):
        table.add_column(heading, justify="right")
    for trial in found.trials:
        score = trial.score
        tokens = score.prompt_tokens + score.written_tokens
        figures = (score.tasks, score.valid, score.right, score.needless, tokens, f"{score.seconds:.0f}")
        name = trial.setup.name + (" *" if trial is found.best else "") + (" (refused)" if trial.refusal else "")
        table.add_row(name, *map(str, figures))
    Rich(soft_wrap=True).print(table)
    for trial in found.trials:
        if trial.refusal:
            print(f"refused: {trial.setup.name}: {trial.refusal}", file=sys.stderr)
    if found.ended:
        print(f"not all was tried: {found.ended}", file=sys.stderr)


FORETOLD = 4
"""Answers after which it is said how long the whole will take."""


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"


class _ProbeProgress:
    """A bar on a terminal, a line for each setup's round elsewhere; on stderr."""

    def __init__(self, setups: int) -> None:
        people = Rich(stderr=True)
        self._is_terminal = people.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left:"), TimeRemainingColumn(),
            console=people, disable=not self._is_terminal, transient=True,
        )  # fmt: skip
        self._task = self._progress.add_task("asking", total=setups * RUNGS[0][0])
        self._began = time.monotonic()

    def __call__(self, trial: SetupTrial, done: int, planned: int) -> None:
        score = trial.score
        said = f"{trial.setup.name}: {score.right} of {score.tasks} right"
        self._progress.update(self._task, completed=done, total=max(done, planned), description=said)
        if done == FORETOLD:
            each_s = (time.monotonic() - self._began) / done
            expected = f"about {planned} answers, {each_s:.1f} s each so far: {_minutes(planned * each_s)} in all"
            self._progress.console.print(expected, highlight=False)
        if not self._is_terminal and score.tasks in {upto for upto, _ in RUNGS}:
            print(f"{said} ({done} of about {planned} answers)", file=sys.stderr, flush=True)

    def __enter__(self) -> _ProbeProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
