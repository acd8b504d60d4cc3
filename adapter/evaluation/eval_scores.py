"""Compute completion rates with their confidence intervals, and mean costs per run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapter.evaluation.scenario import KINDS
from adapter.evaluation.scenario_runner import EvalRun

Z = 1.959964
"""The normal distribution's quantile for 95 % confidence."""


def compute_wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a success rate (Wilson's score, 1927), or (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, Z * Z
    center = share + z2 / (2 * trials)
    margin = Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return max(0.0, (center - margin) / (1 + z2 / trials)), min(1.0, (center + margin) / (1 + z2 / trials))


@dataclass(frozen=True, slots=True)
class Score:
    """The result of several runs: the numbers of all and of completed runs (``done``), and mean costs per run."""

    runs: int
    done: int
    turns: float
    calls: float
    prompt_tokens: float
    written_tokens: float
    seconds: float

    @property
    def share(self) -> float:
        """The completion rate, from 0 to 1."""
        return self.done / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the completion rate."""
        return compute_wilson_interval(self.done, self.runs)


def aggregate_runs(runs: Sequence[EvalRun]) -> Score:
    count = len(runs)

    def compute_mean(values: Sequence[float]) -> float:
        return sum(values) / count if count else 0.0

    return Score(
        count, sum(run.done for run in runs), compute_mean([run.turns for run in runs]),
        compute_mean([run.calls for run in runs]), compute_mean([run.prompt_tokens for run in runs]),
        compute_mean([run.written_tokens for run in runs]),
        compute_mean([run.seconds for run in runs]),
    )  # fmt: skip


def group_by_kind(runs: Sequence[EvalRun]) -> dict[str, list[EvalRun]]:
    """Group runs by the kind of their scenario: first the kinds in `KINDS`, then all others in order of appearance."""
    groups: dict[str, list[EvalRun]] = {kind: [] for kind in KINDS}
    for run in runs:
        groups.setdefault(run.kind, []).append(run)
    return {kind: group for kind, group in groups.items() if group}


def count_discordant_pairs(runs: Sequence[EvalRun], one: str, other: str) -> tuple[int, int]:
    """Compare two tool-calling methods on the runs that were tried with both.

    Return the number of runs that were completed only with ``one``, and the number completed only with ``other``.
    """
    by_key = {(run.scenario, run.number, run.way): run.done for run in runs}
    pairs = [
        (done, by_key[scenario, number, other])
        for (scenario, number, way), done in by_key.items()
        if way == one and (scenario, number, other) in by_key
    ]
    return sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)


def format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def format_rate(score: Score) -> str:
    """Format the completion rate with its interval, like ``67 % (52-79)``."""
    low, high = score.interval
    return f"{format_percent(score.share)} ({100 * low:.0f}-{100 * high:.0f})"
