"""Render the report of a probe as one HTML file."""

from __future__ import annotations

from adapter.backends.model_queries import Model
from adapter.backends.probe_profiles import Profile
from adapter.core.version import __version__
from adapter.evaluation.probe.successive_halving import Probe, SetupTrial
from adapter.recording.html_pages import Bar, Table, render_page

MAX_TEXT = 600
"""Maximum length of an answer that the report shows completely, in characters."""
_COLUMNS = (
    "setup", "tasks", "valid", "correct", "unnecessary calls", "prompt tokens", "output tokens", "seconds",
)  # fmt: skip


def render_probe_report(model: Model, profile: Profile | None, probe: Probe) -> str:
    """Return the report of a probe as HTML, with text from models and servers escaped.

    ``profile`` contains the best setup. It is None if no setup produced a correct call.
    """
    trials = [trial for trial in probe.trials if trial.outcomes or trial.refusal]
    trials.sort(key=lambda trial: (len(trial.outcomes), *trial.rank(len(trial.outcomes))), reverse=True)
    answered, best = [trial for trial in trials if trial.outcomes], probe.best
    summary = [("No setup produced a correct call.", "")]
    if profile is not None:
        after, before = profile.after, profile.before
        counts = f": {after.right} of {after.tasks} tasks correct. The server's own: {before.right} of {before.tasks}."
        summary = [(f"Best setup, {profile.setup.name}", counts)]
    about = [f"{model.server} at {model.base_url}", *([model.file] if model.file else [])]
    return render_page(
        "report.html",
        title=f"Tool-calling setups for {model.name}",
        summary=summary,
        note=f"{', '.join([*about, f'toolcall-adapter {__version__}'])}. "
        f"{f'The probe is incomplete: {probe.ended}. ' if probe.ended else ''}"
        "With so few tasks, a difference of one or two may be chance.",
        chart="Correct and valid answers by setup", bars=[_build_bar(trial, trial is best) for trial in answered],
        tables=[
            Table(
                "", "All setups: format, prompt style, constraint. Weaker setups got fewer tasks.", _COLUMNS,
                [_build_row(trial, trial is best) for trial in trials],
                best=next((number for number, trial in enumerate(trials) if trial is best), None),
            )
        ],
        details_title="All answers",
        ending="", details=[
            (
                f"{trial.setup.name}: {trial.score.right} of {trial.score.tasks} correct",
                [
                    (each.task.name, "correct" if each.right else "valid" if each.valid else "invalid",
                     each.answer[:MAX_TEXT])
                    for each in trial.outcomes
                ],
            )
            for trial in answered
        ],
    )  # fmt: skip


def _build_bar(trial: SetupTrial, is_best: bool) -> Bar:
    score = trial.score
    label = f"{score.right} correct and {score.valid} valid of {score.tasks}"
    shares = [("valid", score.valid / score.tasks), ("right", score.right / score.tasks)]
    return Bar(trial.setup.name, label, shares, is_first=is_best)


def _build_row(trial: SetupTrial, is_best: bool) -> list[str]:
    score, name = trial.score, f"{trial.setup.name}{' (best)' if is_best else ''}"
    if not trial.outcomes:
        return [name, trial.refusal]
    counts = score.tasks, score.valid, score.right, score.needless, score.prompt_tokens, score.written_tokens
    return [name, *map(str, counts), f"{score.seconds:.1f}"]
