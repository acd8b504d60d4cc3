"""Completion with its interval, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapter.evaluation.runner import EvalRun
from adapter.evaluation.scenario import KINDS

Z = 1.959964
"""Of a normal distribution, for 95 %."""


def wilson(successes: int, tries: int) -> tuple[float, float]:
    """Bounds of a share with 95 % confidence (Wilson 1927, the score interval); nothing is known without tries."""
    if tries == 0:
        return 0.0, 1.0
    share, z2 = successes / tries, Z * Z
    middle = share + z2 / (2 * tries)
    reach = Z * math.sqrt(share * (1 - share) / tries + z2 / (4 * tries * tries))
    return max(0.0, (middle - reach) / (1 + z2 / tries)), min(1.0, (middle + reach) / (1 + z2 / tries))


@dataclass(frozen=True, slots=True)
class Score:
    """Of runs. Turns, calls, tokens and seconds are means of a run."""

    runs: int
    done: int
    turns: float
    calls: float
    prompt_tokens: float
    written_tokens: float
    seconds: float

    @property
    def share(self) -> float:
        return self.done / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.done, self.runs)


def aggregate_runs(runs: Sequence[EvalRun]) -> Score:
    """What these runs show together."""
    count = len(runs)

    def mean(values: Sequence[float]) -> float:
        return sum(values) / count if count else 0.0

    return Score(
        count, sum(run.done for run in runs), mean([run.turns for run in runs]), mean([run.calls for run in runs]),
        mean([run.prompt_tokens for run in runs]), mean([run.written_tokens for run in runs]),
        mean([run.seconds for run in runs]),
    )  # fmt: skip


def by_kind(runs: Sequence[EvalRun]) -> dict[str, list[EvalRun]]:
    """In the order of `KINDS`, then others as they come."""
    found: dict[str, list[EvalRun]] = {kind: [] for kind in KINDS}
    for run in runs:
        found.setdefault(run.kind, []).append(run)
    return {kind: some for kind, some in found.items() if some}


def discordant_pairs(runs: Sequence[EvalRun], one: str, other: str) -> tuple[int, int]:
    """Of the runs that both ways had: done by the one alone, by the other alone."""
    by_key = {(run.scenario, run.number, run.way): run.done for run in runs}
    pairs = [
        (done, by_key[scenario, number, other])
        for (scenario, number, way), done in by_key.items()
        if way == one and (scenario, number, other) in by_key
    ]
    return sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def with_interval(score: Score) -> str:
    """``67 % (52-79)``."""
    low, high = score.interval
    return f"{percent(score.share)} ({100 * low:.0f}-{100 * high:.0f})"
