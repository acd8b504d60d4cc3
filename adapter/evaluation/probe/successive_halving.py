"""Compare tool-calling setups by successive halving (Jamieson and Talwalkar 2016).

The probe runs a few tasks with every setup, more tasks with the better setups, and all tasks with the best one. It
therefore spends most of the time on setups that can still win. The server's own tool calling gets as many tasks as the
best setup, so that the two can be compared. Each round gets an equal share of the remaining time. If the planned tasks
do not fit into this share, all setups in the round get fewer tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adapter.backends.probe_profiles import ProfileScore
from adapter.core.callback_checks import wrap_observer
from adapter.core.errors import TransportError
from adapter.evaluation.probe.probe_task_runner import TaskOutcome, TaskRunner
from adapter.evaluation.probe.tasks import TASKS, ProbeTask
from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.calling_setup import CallingSetup
from adapter.prompting.system_prompt import Style

RUNGS = ((2, 5), (4, 3), (8, 1), (len(TASKS), 1))
"""For each round: the total number of tasks per setup at its end, and the number of setups in the next round.

The server's own tool calling is not counted, and is in every round.
"""

MIN_TASKS = RUNGS[0][0]
"""Minimum number of tasks per setup, even on a slow machine: one task with a call and one without."""

NATIVE = CallingSetup(native=True)

STOPPED = "stopped by the user"


@dataclass(slots=True)
class SetupTrial:
    """A setup and the outcomes of its tasks.

    ``refusal`` is the server's error message if the server rejected the setup, otherwise "".
    """

    setup: CallingSetup
    outcomes: list[TaskOutcome] = field(default_factory=list)
    refusal: str = ""

    @property
    def score(self) -> ProfileScore:
        return self.build_score(len(self.outcomes))

    def build_score(self, tasks: int) -> ProfileScore:
        """Return the score of the first ``tasks`` outcomes."""
        done = self.outcomes[:tasks]
        return ProfileScore(
            tasks=len(done),
            valid=sum(outcome.valid for outcome in done),
            right=sum(outcome.right for outcome in done),
            needless=sum(outcome.needless for outcome in done),
            prompt_tokens=sum(outcome.usage.prompt for outcome in done),
            written_tokens=sum(outcome.usage.written for outcome in done),
            seconds=round(sum(outcome.seconds for outcome in done), 2),
        )

    @property
    def has_right_call(self) -> bool:
        return any(outcome.right and outcome.task.expected for outcome in self.outcomes)

    def rank(self, tasks: int) -> tuple[float, ...]:
        """Return a sort key for the first ``tasks`` outcomes. A greater key is better.

        A setup that never called an expected tool ranks last. Setups that solved both kinds of task, with and without
        calls, rank above the others: a model that never calls a tool is right whenever no call is needed, and a model
        that always calls one never finishes. Further criteria are correct answers (both kinds of task have the same
        weight), then valid answers, then a low number of tokens.
        """
        done = self.outcomes[:tasks]
        abilities = len({bool(outcome.task.expected) for outcome in done if outcome.right})
        tokens = sum(outcome.usage.prompt + 2 * outcome.usage.written for outcome in done)
        can_call = any(each.named and each.task.expected for each in done)
        return can_call, abilities, _sum_rates(done), sum(each.valid for each in done), -tokens


def _sum_rates(outcomes: Sequence[TaskOutcome]) -> float:
    """Return the sum of two success rates: for tasks with calls, and for tasks without."""
    groups = [[each.right for each in outcomes if bool(each.task.expected) == expected] for expected in (True, False)]
    return sum(sum(group) / len(group) for group in groups if group)


@dataclass(slots=True)
class Probe:
    """The trials of a probe: one for each setup. ``ended`` is the reason why the probe ended early, or ""."""

    trials: list[SetupTrial]
    ended: str = ""

    @property
    def before(self) -> SetupTrial:
        """The trial of the server's own tool calling."""
        return next(trial for trial in self.trials if trial.setup.native)

    @property
    def best(self) -> SetupTrial | None:
        """The best trial, or None if no setup produced a correct call.

        The setups that ran the most tasks are compared with each other and with the server's own tool calling, by the
        tasks that all of them ran.
        """
        tried = [trial for trial in self.trials if trial.outcomes]
        ours = [trial for trial in tried if not trial.setup.native]
        tasks = max((len(trial.outcomes) for trial in ours or tried), default=0)
        finalists = [trial for trial in tried if len(trial.outcomes) >= tasks and trial.has_right_call]
        return max(finalists, key=lambda trial: (trial.rank(tasks), not trial.setup.native), default=None)


def list_candidates(format: str, *, can_constrain: bool, can_use_template: bool = False) -> list[CallingSetup]:
    """Return the setups to try for a model that probably writes ``format``, the most promising first.

    ``can_constrain`` is true if the server can constrain output, and ``can_use_template`` if the model's chat template
    can describe the tools. The constraint ``required`` is not tried, because ``prefer`` allows the same calls, and also
    text.
    """
    constrained = (
        [CallingSetup(format, style, mode) for mode, styles in CONSTRAINED for style in styles] if can_constrain else []
    )
    free = [CallingSetup(format, style) for style in ("trained", "compact", "small")]
    others = [CallingSetup(other, "compact") for other in ("hermes", "llama3_json") if other != format]
    modes: list[Constraint] = ["off", *(mode for mode, _ in CONSTRAINED if can_constrain)]
    own = [CallingSetup(format, constraint=mode, uses_template=True) for mode in modes if can_use_template]
    return [NATIVE, *own, *free, *constrained, *others]


CONSTRAINED: tuple[tuple[Constraint, tuple[Style, ...]], ...] = (
    ("arguments", ("compact", "small")),
    ("prefer", ("bare", "compact", "small")),
)
"""The constraints to try, each with the prompt styles to combine it with."""


def probe_model(
    runner: TaskRunner,
    setups: Sequence[CallingSetup],
    *,
    tasks: Sequence[ProbeTask] = TASKS,
    rungs: Sequence[tuple[int, int]] = RUNGS,
    time_limit_s: float = 600.0,
    observe: Callable[[SetupTrial, int, int], None] = lambda _trial, _done, _planned: None,
) -> Probe:
    """Compare ``setups`` by successive halving, and return their trials.

    ``rungs`` has the same meaning as `RUNGS`. ``observe`` is called after each task with the trial, the number of
    finished tasks, and the estimated total number of tasks. Ctrl-C and the time limit end the probe with partial
    results. Raises TransportError if every setup fails.
    """
    observe = wrap_observer(observe, "observe")
    found = Probe([SetupTrial(setup) for setup in setups])
    began, done = time.monotonic(), 0
    active = list(found.trials)
    try:
        for rung, (task_limit, keep) in enumerate(rungs):
            share_s = (time_limit_s - (time.monotonic() - began)) / (len(rungs) - rung)
            task_limit = find_largest_fitting_rung(task_limit, active, share_s)
            for trial in active:
                for task in tasks[len(trial.outcomes) : task_limit]:
                    if time.monotonic() - began > time_limit_s:
                        found.ended = f"the time limit of {time_limit_s:g} s was reached"
                        return found
                    if not _run_task(runner, trial, task):
                        break
                    done += 1
                    observe(
                        trial, done, done + _estimate_remaining(active, [(task_limit, keep), *rungs[rung + 1 :]], tasks)
                    )
            if not any(trial.outcomes for trial in found.trials):
                raise TransportError(active[0].refusal)
            if all(trial.refusal for trial in active):
                found.ended = active[0].refusal
                return found
            native, ours = [trial for trial in active if trial.setup.native], [t for t in active if not t.setup.native]
            ours.sort(key=lambda trial: (not trial.refusal, trial.rank(task_limit)), reverse=True)
            active = [trial for trial in (*native, *ours[:keep]) if not trial.refusal]
    except KeyboardInterrupt:
        found.ended = STOPPED
    return found


def _run_task(runner: TaskRunner, trial: SetupTrial, task: ProbeTask) -> bool:
    """Run a task and add its outcome to ``trial``. Returns False if the server refused the setup.

    It would then also refuse all other tasks.
    """
    try:
        trial.outcomes.append(runner.run(task, trial.setup))
    except TransportError as error:
        trial.refusal = str(error)
        return False
    return True


def find_largest_fitting_rung(task_limit: int, active: Sequence[SetupTrial], share_s: float) -> int:
    """Return the number of tasks that each active setup will have run after another ``share_s`` seconds.

    The number is at most ``task_limit``. It is estimated from the mean duration of the tasks so far.
    """
    outcomes = [outcome for trial in active for outcome in trial.outcomes]
    if not outcomes:
        return task_limit
    fewest = min(len(trial.outcomes) for trial in active)
    seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
    more = int(share_s / max(seconds * len(active), 1e-9))
    return min(task_limit, max(fewest + more, MIN_TASKS))


def _estimate_remaining(
    active: Sequence[SetupTrial], rungs: Sequence[tuple[int, int]], tasks: Sequence[ProbeTask]
) -> int:
    """Estimate the number of tasks that the probe will still run, in this round and the later ones (``rungs``)."""
    (task_limit, _), *later = rungs
    task_limit = min(task_limit, len(tasks))
    left = sum(max(0, task_limit - len(trial.outcomes)) for trial in active if not trial.refusal)
    keep = rungs[0][1]
    for next_limit, next_keep in later:
        left += (min(next_limit, len(tasks)) - task_limit) * min(keep + 1, len(active))
        task_limit, keep = min(next_limit, len(tasks)), next_keep
    return left
