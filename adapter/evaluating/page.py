"""The results of an evaluation as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from adapter.evaluating.running import Run
from adapter.evaluating.scenario import Scenario
from adapter.evaluating.scores import Score, by_kind, only_one, score, with_interval
from adapter.prompting.pages import rendered
from adapter.text.visible import visible
from adapter.values.events import Json, JsonObject
from adapter.values.version import __version__

ROW_HEIGHT = 22
WIDTH = 480
"""Of a bar that stands for everything, as of the places where names stand before it."""
NAMES_WIDTH = 260
MAX_TEXT = 1_500
"""Characters of a message that are shown."""
MAX_SHOWN = 60
"""Runs that were not done whose conversation is shown; the results have them all."""


def page(
    model: str, server: str, settings: Mapping[str, Json], scenarios: Sequence[Scenario], runs: Sequence[Run],
    ways: Sequence[str], ended: str,
) -> str:  # fmt: skip
    """Everything a model, a server or a suite wrote is escaped."""
    groups = [("all", list(runs)), *by_kind(runs).items()]
    plot = [_row(kind, _scores(some, ways)) for kind, some in groups]
    failed = [run for run in runs if not run.done]
    return rendered(
        "eval.html", model=model, server=server, settings=settings, version=__version__, ways=ways, ended=ended,
        scores=_scores(runs, ways), told=with_interval, plot=plot, width=WIDTH, names=NAMES_WIDTH,
        height=ROW_HEIGHT, pairs=[(way, *only_one(runs, ways[0], way)) for way in ways[1:]],
        table=[_line(scenario, runs, ways) for scenario in scenarios], count=len(runs),
        failed=[{"run": run, "messages": [_shown(each) for each in run.messages]} for run in failed[:MAX_SHOWN]],
        hidden=max(0, len(failed) - MAX_SHOWN),
    )  # fmt: skip


def _scores(runs: Sequence[Run], ways: Sequence[str]) -> dict[str, Score]:
    return {way: score([run for run in runs if run.way == way]) for way in ways}


def _row(kind: str, scores: Mapping[str, Score]) -> JsonObject:
    """A group of bars: one for each way, with the line of its interval."""
    bars = [
        {
            "way": way, "y": number * ROW_HEIGHT, "width": round(WIDTH * each.share, 1), "done": each.done,
            "runs": each.runs, "low": round(WIDTH * each.interval[0], 1), "high": round(WIDTH * each.interval[1], 1),
        }
        for number, (way, each) in enumerate(scores.items())
    ]  # fmt: skip
    return {"kind": kind, "bars": bars, "height": (len(bars) + 1) * ROW_HEIGHT}


def _line(scenario: Scenario, runs: Sequence[Run], ways: Sequence[str]) -> JsonObject:
    """A row of the table of scenarios."""
    cells = _scores([run for run in runs if run.scenario == scenario.name], ways)
    return {"name": scenario.name, "kind": scenario.kind, "cells": list(cells.values())}


def _shown(message: JsonObject) -> tuple[str, str]:
    """Whose message, and its text, with the calls; control characters spelled out."""
    content = message.get("content") or ""
    parts = [content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)]
    for call in message.get("tool_calls") or ():
        parts.append(f"-> {call['function']['name']}({call['function']['arguments']})")
    text = visible("\n".join(filter(None, parts)), keep="\n\t")
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n[... {len(text) - MAX_TEXT:,} characters ...]\n{text[-MAX_TEXT // 2 :]}"
    return visible(str(message.get("role"))), text
