"""The results of a probe as one HTML file that needs nothing else."""

from __future__ import annotations

from adapter.prompting.pages import rendered
from adapter.upstream.probing.halving import Probe, Trial
from adapter.upstream.probing.profiles import Model, Profile
from adapter.values.version import __version__

ROW_HEIGHT = 30
BAR_WIDTH = 360


def page(model: Model, profile: Profile | None, probe: Probe) -> str:
    """Everything a model or a server wrote is escaped."""
    tried = [trial for trial in probe.trials if trial.outcomes or trial.refusal]
    tried.sort(key=lambda trial: (len(trial.outcomes), *trial.rank(len(trial.outcomes))), reverse=True)
    bars = [
        _bar(trial, row, trial is probe.best) for row, trial in enumerate(trial for trial in tried if trial.outcomes)
    ]
    return rendered(
        "probe.html",
        model=model,
        profile=profile,
        version=__version__,
        probe=probe,
        trials=tried,
        bars=bars,
        height=len(bars) * ROW_HEIGHT + 24,
        bar_width=BAR_WIDTH,
    )


def _bar(trial: Trial, row: int, is_best: bool) -> dict[str, object]:
    score = trial.score
    return {
        "name": trial.setup.name,
        "y": row * ROW_HEIGHT,
        "score": score,
        "is_best": is_best,
        "right": round(BAR_WIDTH * score.right / score.tasks),
        "valid": round(BAR_WIDTH * score.valid / score.tasks),
    }
