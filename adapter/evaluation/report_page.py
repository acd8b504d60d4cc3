"""The report on an evaluation, as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapter.core.events import Json, JsonObject
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.version import __version__
from adapter.evaluation.metrics import Score, aggregate_runs, by_kind, discordant_pairs, with_interval
from adapter.evaluation.runner import EvalRun
from adapter.evaluation.scenario import Scenario
from adapter.recording.html import Bar, Table, render_page
from adapter.recording.view.page_data import message_text

MAX_TEXT = 1_500
"""Characters of a message that are shown."""
MAX_SHOWN = 60
"""Unfinished runs whose conversation is shown; the results have them all."""
_COSTS = ("way", "runs", "done", "answers", "calls", "prompt tokens", "written tokens", "seconds")


def page(
    model: str, server: str, settings: Mapping[str, Json], scenarios: Sequence[Scenario], runs: Sequence[EvalRun],
    ways: Sequence[str], ended: str,
) -> str:  # fmt: skip
    """Render the report; text of a model, a server or a suite is escaped."""
    scores, failed = _scores(runs, ways), [run for run in runs if not run.done]
    pairs = [(way, *discordant_pairs(runs, ways[0], way)) for way in ways[1:]]
    shown = [f"{name} {value}" for name, value in settings.items() if name not in ("model", "version")]
    return render_page(
        "report.html",
        title=f"Tasks that {model} finishes",
        summary=[
            *((way, f": {with_interval(each)} of {each.runs} runs") for way, each in scores.items() if each.runs),
            *(
                (way, f" alone did {other} runs that {ways[0]} did not; the other way round: {first}")
                for way, first, other in pairs
            ),
        ],
        note=f"{', '.join([server, f'toolcall-adapter {__version__}', *shown])}. "
        f"{f'Not all was run: {ended}. ' if ended else ''}The lines are intervals with 95 % confidence (Wilson); "
        "a run is one scenario from its task to the final answer.",
        chart="Done, by kind", bars=_bars(runs, ways),
        tables=[
            Table(
                "What a run takes", "Means of all runs, done or not. Answers are those that the loop saw.", _COSTS,
                [_costs(way, each) for way, each in scores.items()],
            ),
            Table(
                "Every scenario", "Runs that were done, of those that were run.", ("scenario", "kind", *ways),
                [_cells(scenario, runs, ways) for scenario in scenarios], texts=2,
            ),
        ],
        details_title="Runs that were not done",
        details=[
            (
                f"{run.way}, {run.scenario}, run {run.number + 1}: {run.fault}",
                [(escape_for_display(str(each.get("role"))), _shortened(each)) for each in run.messages],
            )
            for run in failed[:MAX_SHOWN]
        ],
        ending=f"{len(failed) - MAX_SHOWN} more are in the results."
        if len(failed) > MAX_SHOWN
        else "" if failed else "All were done.",
    )  # fmt: skip


def _scores(runs: Sequence[EvalRun], ways: Sequence[str]) -> dict[str, Score]:
    return {way: aggregate_runs([run for run in runs if run.way == way]) for way in ways}


def _bars(runs: Sequence[EvalRun], ways: Sequence[str]) -> list[Bar]:
    bars = []
    for kind, some in [("all", list(runs)), *by_kind(runs).items()]:
        for number, (way, each) in enumerate(_scores(some, ways).items()):
            interval = each.interval if each.runs else None
            label, group = f"{each.done} of {each.runs}", "" if number else kind
            bars.append(Bar(way, label, [(f"way{number % 5}", each.share)], group, kind == "all", interval))
    return bars


def _costs(way: str, each: Score) -> list[str]:
    means = f"{each.turns:.1f}", f"{each.calls:.1f}", f"{each.prompt_tokens:.0f}", f"{each.written_tokens:.0f}"
    return [way, str(each.runs), str(each.done), *means, f"{each.seconds:.1f}"]


def _cells(scenario: Scenario, runs: Sequence[EvalRun], ways: Sequence[str]) -> list[str]:
    scores = _scores([run for run in runs if run.scenario == scenario.name], ways).values()
    return [scenario.name, scenario.kind, *(f"{each.done} of {each.runs}" if each.runs else "" for each in scores)]


def _shortened(message: JsonObject) -> str:
    """The text of a message with its calls, control characters spelled out."""
    text = escape_for_display(message_text(message), keep="\n\t")
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n[... {len(text) - MAX_TEXT:,} characters ...]\n{text[-MAX_TEXT // 2 :]}"
    return text
