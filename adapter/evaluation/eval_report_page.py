"""Render the report of an evaluation as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapter.core.events import Json, JsonObject
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.version import __version__
from adapter.evaluation.eval_scores import Score, aggregate_runs, count_discordant_pairs, format_rate, group_by_kind
from adapter.evaluation.scenario import Scenario
from adapter.evaluation.scenario_runner import EvalRun
from adapter.recording.html_pages import Bar, Table, render_page
from adapter.recording.view.view_page_data import render_message_text

MAX_TEXT = 1_500
"""Maximum length of a message that the report shows completely, in characters."""
MAX_SHOWN = 60
"""Maximum number of failed runs that the report shows with their conversations. The results file contains all runs."""
_COLUMNS = ("way", "runs", "completed", "answers", "calls", "prompt tokens", "output tokens", "seconds")


def render_eval_report(
    model: str, server: str, settings: Mapping[str, Json], scenarios: Sequence[Scenario], runs: Sequence[EvalRun],
    ways: Sequence[str], ended: str,
) -> str:  # fmt: skip
    """Return the report of an evaluation as HTML, with text from models, servers and suites escaped.

    ``ways`` are the names of the compared tool-calling methods. ``ended`` is the reason why the evaluation ended early,
    or "" if it did not.
    """
    scores, failed = _compute_scores(runs, ways), [run for run in runs if not run.done]
    pairs = [(way, *count_discordant_pairs(runs, ways[0], way)) for way in ways[1:]]
    options = [f"{name} {value}" for name, value in settings.items() if name not in ("model", "version")]
    return render_page(
        "report.html",
        title=f"Task completion of {model}",
        summary=[
            *(
                (way, f": {format_rate(score)} of {score.runs} runs completed")
                for way, score in scores.items()
                if score.runs
            ),
            *(
                (way, f" completed {other} runs that {ways[0]} failed, and failed {first} that {ways[0]} completed")
                for way, first, other in pairs
            ),
        ],
        note=f"{', '.join([server, f'toolcall-adapter {__version__}', *options])}. "
        f"{f'The evaluation is incomplete: {ended}. ' if ended else ''}Lines show 95 % confidence intervals (Wilson). "
        "A run is one scenario from the task to the final answer.",
        chart="Completed runs by kind", bars=_build_bars(runs, ways),
        tables=[
            Table(
                "Cost of a run", "Means over all runs, completed or not. Only answers that reached the loop count.",
                _COLUMNS, [_build_cost_row(way, score) for way, score in scores.items()],
            ),
            Table(
                "All scenarios", "Completed runs out of all runs.", ("scenario", "kind", *ways),
                [_build_scenario_row(scenario, runs, ways) for scenario in scenarios], texts=2,
            ),
        ],
        details_title="Failed runs",
        details=[
            (
                f"{run.way}, {run.scenario}, run {run.number + 1}: {run.fault}",
                [(escape_for_display(str(each.get("role"))), _abbreviate(each)) for each in run.messages],
            )
            for run in failed[:MAX_SHOWN]
        ],
        ending=f"{len(failed) - MAX_SHOWN} more failed runs are in the results file."
        if len(failed) > MAX_SHOWN
        else "" if failed else "All runs were completed.",
    )  # fmt: skip


def _compute_scores(runs: Sequence[EvalRun], ways: Sequence[str]) -> dict[str, Score]:
    return {way: aggregate_runs([run for run in runs if run.way == way]) for way in ways}


def _build_bars(runs: Sequence[EvalRun], ways: Sequence[str]) -> list[Bar]:
    bars = []
    for kind, some in [("all", list(runs)), *group_by_kind(runs).items()]:
        for number, (way, score) in enumerate(_compute_scores(some, ways).items()):
            interval = score.interval if score.runs else None
            label, group = f"{score.done} of {score.runs}", "" if number else kind
            bars.append(Bar(way, label, [(f"way{number % 5}", score.share)], group, kind == "all", interval))
    return bars


def _build_cost_row(way: str, score: Score) -> list[str]:
    means = f"{score.turns:.1f}", f"{score.calls:.1f}", f"{score.prompt_tokens:.0f}", f"{score.written_tokens:.0f}"
    return [way, str(score.runs), str(score.done), *means, f"{score.seconds:.1f}"]


def _build_scenario_row(scenario: Scenario, runs: Sequence[EvalRun], ways: Sequence[str]) -> list[str]:
    scores = _compute_scores([run for run in runs if run.scenario == scenario.name], ways).values()
    counts = (f"{score.done} of {score.runs}" if score.runs else "" for score in scores)
    return [scenario.name, scenario.kind, *counts]


def _abbreviate(message: JsonObject) -> str:
    """Return a message's text and calls, with visible control characters. The middle of a long text is removed."""
    text = escape_for_display(render_message_text(message), keep="\n\t")
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n[... {len(text) - MAX_TEXT:,} characters ...]\n{text[-MAX_TEXT // 2 :]}"
    return text
