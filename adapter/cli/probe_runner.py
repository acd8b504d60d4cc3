"""Run `adapter probe`: try tool-calling setups, show the progress, and write a profile and a report page."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console as Rich
from rich.progress import Progress
from rich.table import Table

from adapter.backends import model_queries, probe_profiles
from adapter.backends.chat_client import ChatClient, build_constraint_fields
from adapter.backends.engine_details import query_engine_details
from adapter.backends.model_queries import Model
from adapter.backends.probe_profiles import Profile, ProfileSetup
from adapter.cli.agent_console import Console
from adapter.cli.escaped_output import print_escaped
from adapter.cli.model_loading import load_model, require_model_choice
from adapter.cli.options import parse_auto
from adapter.cli.probe_settings import ProbeSettings
from adapter.cli.progress_bars import create_task_progress
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import JsonObject
from adapter.core.private_files import write_private
from adapter.core.text.redaction import Redactor
from adapter.evaluation.probe.probe_report_page import render_probe_report
from adapter.evaluation.probe.probe_task_runner import TaskRunner
from adapter.evaluation.probe.server_faults import find_server_faults
from adapter.evaluation.probe.shared_result import build_shared_result, check_shareable
from adapter.evaluation.probe.successive_halving import RUNGS, STOPPED, Probe, SetupTrial, list_candidates, probe_model
from adapter.evaluation.probe.tasks import TASKS, TOOLS
from adapter.parsing.formats import DEFAULT_FORMAT, get_format, guess_format, is_format_file
from adapter.recording.exchange_log import ExchangeLog
from adapter.tools.tool_set import ToolSet


def run_probe(settings: ProbeSettings) -> int:
    """Run the probe, and return the exit code: 0, 1 without a profile, or 130 after Ctrl-C."""
    require_model_choice("probe", settings.base_url, settings.model, settings.time_limit)
    console = Console()
    log = ExchangeLog(settings.record, Redactor(os.environ)) if settings.record else None
    with load_model(settings.base_url, settings.model, console) as served:
        chat = served.chat
        model = model_queries.query_model(chat.endpoint, chat.model)
        guessed = guess_format(model.name, model_queries.query_template(chat.endpoint)) or guess_format(model.file)
        format = get_format(parse_auto(settings.format) or guessed or DEFAULT_FORMAT).name
        output = settings.output or probe_profiles.build_profile_path(model.name)
        html = settings.page or output.parent / f"{output.stem}.html"
        for option, path in (("--output", output), ("--page", html), ("--share", settings.share)):
            if path is not None and path.is_dir():  # reported before the probe, which takes minutes
                raise UsageError(f"{option} is the folder {path}; pass a file")
        engine = query_engine_details(chat.endpoint, model) if settings.share else None
        if engine:
            check_shareable(engine, settings.format)
        for note in _list_notes(chat):
            console.note(note)
        can_constrain = bool(build_constraint_fields(chat.endpoint.kind, ToolSet(TOOLS)))
        prompt = chat.discover_own_prompt()
        console.note(f"prompt: {prompt.explanation}")
        setups = list_candidates(
            format, can_constrain=can_constrain, can_use_template=prompt.template_prompt is not None
        )
        limit = _format_duration(settings.time_limit)
        console.note(f"trying {len(setups)} setups with up to {len(TASKS)} tasks each, for at most {limit}")
        with create_task_progress() as bar:
            display = _ProbeProgress(bar, len(setups))
            runner = TaskRunner(chat, template=prompt.template_prompt, observe=log)
            found = probe_model(runner, setups, time_limit_s=settings.time_limit, observe=display)
    if not any(trial.outcomes for trial in found.trials):
        if found.ended == STOPPED:
            raise KeyboardInterrupt
        raise TransportError(f"the server did not answer any task: {found.ended or found.trials[0].refusal}")
    faults = find_server_faults([each.written for trial in found.trials for each in trial.outcomes])
    for fault in faults:
        console.note(fault)
    profile = _build_profile(model, found, settings.format)
    if profile is not None:
        probe_profiles.save_profile(profile, output)
    write_private(html, render_probe_report(model, profile, found), "--page")
    if settings.share and engine:
        result = build_shared_result(found, engine, model.template, time.strftime("%Y-%m-%d"))
        write_private(settings.share, result.to_json(), "--share")
    if settings.as_json:
        print(
            json.dumps(
                {"profile": profile and str(output), "page": str(html), **_build_rows(found), "server_faults": faults},
                indent=2,
            )
        )
    else:
        _print(found)
    print_escaped(profile.describe() if profile else NO_RIGHT_CALL, to_stderr=True)
    print_escaped(f"profile: {output if profile else 'not written'}\npage: {html}", to_stderr=True)
    if settings.share:
        print(f"scores to publish: {settings.share}", file=sys.stderr)
    return 130 if found.ended == STOPPED else 0 if profile else 1


NO_RIGHT_CALL = (
    "no setup produced a correct call, so no profile was written. Raise --time-limit, check the answers on the page, "
    "or use a larger model."
)


def _build_profile(model: Model, found: Probe, format: str) -> Profile | None:
    """Return a profile with the best setup, or None if no setup works. If the format is a file, the profile has its
    absolute path, so that programs in other folders find it."""
    if (best := found.best) is None:
        return None
    setup = best.setup
    if is_format_file(format):
        setup = replace(setup, format=str(Path(format).resolve()))
    return Profile(
        made=time.strftime("%Y-%m-%d"),
        is_whole=not found.ended and len(best.outcomes) == len(TASKS),
        model=model,
        use=ProfileSetup(**asdict(setup)),
        before=found.before.build_score(len(best.outcomes)),
        after=best.score,
    )


def _build_rows(found: Probe) -> JsonObject:
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


def _list_notes(chat: ChatClient) -> list[str]:
    advice = chat.context().advice
    ignores_tools = model_queries.template_supports_tools(chat.endpoint) is False
    warning = "the model's chat template does not support tools: the server drops them silently"
    return [note for note in (advice, warning if ignores_tools else "") if note]


def _print(found: Probe) -> None:
    table = Table("setup", box=None)
    for heading in ("tasks", "valid", "correct", "extra calls", "tokens", "s"):
        table.add_column(heading, justify="right")
    for trial in found.trials:
        score = trial.score
        tokens = score.prompt_tokens + score.written_tokens
        figures = (score.tasks, score.valid, score.right, score.needless, tokens, f"{score.seconds:.0f}")
        name = trial.setup.name + (" *" if trial is found.best else "") + (" (refused)" if trial.refusal else "")
        table.add_row(name, *map(str, figures))
    Rich(soft_wrap=True, markup=False).print(table)
    for trial in found.trials:
        if trial.refusal:
            print_escaped(f"refused: {trial.setup.name}: {trial.refusal}", to_stderr=True)
    if found.ended:
        print_escaped(f"the probe is incomplete: {found.ended}", to_stderr=True)


FORECAST_AFTER = 4
"""Number of answers after which the total time is estimated."""


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"


class _ProbeProgress:
    """Shows the progress on stderr: a bar on a terminal, otherwise a line for each setup in each round of `RUNGS`."""

    def __init__(self, bar: Progress, setups: int) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=setups * RUNGS[0][0])
        self._began = time.monotonic()

    def __call__(self, trial: SetupTrial, done: int, planned: int) -> None:
        score = trial.score
        summary = f"{trial.setup.name}: {score.right} of {score.tasks} correct"
        self._bar.update(self._task, completed=done, total=max(done, planned), description=summary)
        if done == FORECAST_AFTER:
            each_s = (time.monotonic() - self._began) / done
            total = _format_duration(planned * each_s)
            forecast = f"about {planned} answers, {each_s:.1f} s each so far: {total} in total"
            self._bar.console.print(forecast, highlight=False)
        if self._bar.disable and score.tasks in {tasks for tasks, _ in RUNGS}:
            print(f"{summary} ({done} of about {planned} answers)", file=sys.stderr, flush=True)
