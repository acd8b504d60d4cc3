"""The report on a probe, as one HTML file."""

from __future__ import annotations

from adapter.backends.profiles import Model, Profile
from adapter.core.version import __version__
from adapter.evaluation.probe.successive_halving import Probe, SetupTrial
from adapter.recording.html import Bar, Table, render_page

MAX_TEXT = 600
"""Characters of an answer that are shown."""
_HEAD = ("setup", "tasks", "valid", "right", "needless calls", "prompt tokens", "written tokens", "seconds")


def page(model: Model, profile: Profile | None, probe: Probe) -> str:
    """Render the report; text of a model or a server is escaped."""
    trials = [trial for trial in probe.trials if trial.outcomes or trial.refusal]
    trials.sort(key=lambda trial: (len(trial.outcomes), *trial.rank(len(trial.outcomes))), reverse=True)
    answered, best = [trial for trial in trials if trial.outcomes], probe.best
    summary = [("No setup made a right call.", "")]
    if profile is not None:
        after, before = profile.after, profile.before
        told = f", {after.right} of {after.tasks} tasks right. The server alone: {before.right} of {before.tasks}."
        summary = [(f"Best: {profile.setup.name}", told)]
    about = [f"{model.server} at {model.base_url}", *([model.file] if model.file else [])]
    return render_page(
        "report.html",
        title=f"How {model.name} calls tools",
        summary=summary,
        note=f"{', '.join([*about, f'toolcall-adapter {__version__}'])}. "
        f"{f'Not all was tried: {probe.ended}. ' if probe.ended else ''}"
        "The tasks are few: a difference of one or two may be chance.",
        chart="Right and valid answers, by setup", bars=[_bar(trial, trial is best) for trial in answered],
        tables=[
            Table(
                "", "Every setup that was tried: format, prompt style, constraint. Those that did worse got fewer "
                "tasks.", _HEAD, [_row(trial, trial is best) for trial in trials],
                best=next((number for number, trial in enumerate(trials) if trial is best), None),
            )
        ],
        details_title="Every answer",
        ending="", details=[
            (
                f"{trial.setup.name}: {trial.score.right} of {trial.score.tasks} right",
                [
                    (each.task.name, "right" if each.right else "valid" if each.valid else "not valid",
                     each.answer[:MAX_TEXT])
                    for each in trial.outcomes
                ],
            )
            for trial in answered
        ],
    )  # fmt: skip


def _bar(trial: SetupTrial, is_best: bool) -> Bar:
    score = trial.score
    label = f"{score.right} right and {score.valid} valid of {score.tasks}"
    shares = [("valid", score.valid / score.tasks), ("right", score.right / score.tasks)]
    return Bar(trial.setup.name, label, shares, is_first=is_best)


def _row(trial: SetupTrial, is_best: bool) -> list[str]:
    score, name = trial.score, f"{trial.setup.name}{' (best)' if is_best else ''}"
    if not trial.outcomes:
        return [name, trial.refusal]
    counts = score.tasks, score.valid, score.right, score.needless, score.prompt_tokens, score.written_tokens
    return [name, *map(str, counts), f"{score.seconds:.1f}"]
