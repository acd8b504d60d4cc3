"""Which setups get how many tasks: all get a few, the better ones more, until the best has done all.

Successive halving (Jamieson and Talwalkar 2016): most of the time goes to what may still win. The server's
own tool calling does as many as the best, for it is what the others are measured by. Each round has an equal
share of the time that is left; where the planned tasks do not fit in, all setups of the round get fewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adapter.backends.profiles import ProfileScore
from adapter.core.callbacks import observer
from adapter.core.errors import TransportError
from adapter.evaluation.probe.task_runner import TaskOutcome, TaskRunner
from adapter.evaluation.probe.tasks import TASKS, ProbeTask
from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.calling_setup import CallingSetup
from adapter.prompting.system_prompt import Style

RUNGS = ((2, 5), (4, 3), (8, 1), (len(TASKS), 1))
"""(tasks done, setups that go on) after each round, beside the server's own."""

FEWEST = RUNGS[0][0]
"""Tasks of a setup, however slow the machine: a call and an answer in words."""

NATIVE = CallingSetup(native=True)

STOPPED = "it was stopped"


@dataclass(slots=True)
class SetupTrial:
    """A setup and what came of it. ``refusal``: why the server does not take it."""

    setup: CallingSetup
    outcomes: list[TaskOutcome] = field(default_factory=list)
    refusal: str = ""

    @property
    def score(self) -> ProfileScore:
        return self.score_of(len(self.outcomes))

    def score_of(self, tasks: int) -> ProfileScore:
        """Of its first ``tasks`` answers."""
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
        """By its first ``tasks`` answers, the higher the better: right ones, valid ones, as few tokens as can be.

        Calls that are wanted and calls that are not weigh the same, however many tasks there are of each: who knows
        other tools meets both.

        One that cannot both call and answer comes after those that can: who never calls is right whenever no call
        is wanted, and who always calls can never say that the work is done. Who has never called the tool that was
        wanted comes last: of that nothing will come, while wrong arguments may have been bad luck.
        """
        done = self.outcomes[:tasks]
        abilities = len({bool(outcome.task.expected) for outcome in done if outcome.right})
        tokens = sum(outcome.usage.prompt + 2 * outcome.usage.written for outcome in done)
        can_call = any(each.named and each.task.expected for each in done)
        return can_call, abilities, _balance(done), sum(each.valid for each in done), -tokens


def _balance(outcomes: Sequence[TaskOutcome]) -> float:
    """The share of right calls where one is wanted, and of right answers where none is."""
    groups = [[each.right for each in outcomes if bool(each.task.expected) == wanted] for wanted in (True, False)]
    return sum(sum(group) / len(group) for group in groups if group)


@dataclass(slots=True)
class Probe:
    """``trials`` in the order in which they were begun. ``ended``: why it ended early; "" where it did not."""

    trials: list[SetupTrial]
    ended: str = ""

    @property
    def before(self) -> SetupTrial:
        """The server's own tool calling."""
        return next(trial for trial in self.trials if trial.setup.native)

    @property
    def best(self) -> SetupTrial | None:
        """Of the setups that were tried most the best; the server's own if that is better on the same tasks.
        None where no call came out right: nothing is known then."""
        tried = [trial for trial in self.trials if trial.outcomes]
        ours = [trial for trial in tried if not trial.setup.native]
        tasks = max((len(trial.outcomes) for trial in ours or tried), default=0)
        whole = [trial for trial in tried if len(trial.outcomes) >= tasks and trial.has_right_call]
        return max(whole, key=lambda trial: (trial.rank(tasks), not trial.setup.native), default=None)


def candidates(format: str, *, can_constrain: bool, can_own: bool = False) -> list[CallingSetup]:
    """The setups worth trying for a model that is thought to write ``format``, the likeliest first.

    ``required`` is none of them: ``prefer`` admits the same calls, and an answer. ``can_own``: the model's own
    template can describe the tools.
    """
    held = [CallingSetup(format, style, mode) for mode, styles in HELD for style in styles] if can_constrain else []
    free = [CallingSetup(format, style) for style in ("trained", "compact", "small")]
    others = [CallingSetup(other, "compact") for other in ("hermes", "llama3_json") if other != format]
    modes: list[Constraint] = ["off", *(mode for mode, _ in HELD if can_constrain)]
    own = [CallingSetup(format, constraint=mode, uses_template=True) for mode in modes if can_own]
    return [NATIVE, *own, *free, *held, *others]


HELD: tuple[tuple[Constraint, tuple[Style, ...]], ...] = (
    ("arguments", ("compact", "small")),
    ("prefer", ("bare", "compact", "small")),
)
"""The styles that are tried with each mode."""


def probe_model(
    asker: TaskRunner,
    setups: Sequence[CallingSetup],
    *,
    tasks: Sequence[ProbeTask] = TASKS,
    rungs: Sequence[tuple[int, int]] = RUNGS,
    time_limit_s: float = 600.0,
    observe: Callable[[SetupTrial, int, int], None] = lambda _trial, _done, _planned: None,
) -> Probe:
    """Try ``setups``. ``observe`` gets the trial after each answer, how many there are and how many are planned.

    Ctrl-C and the time limit end it, and what is known by then counts. Raises TransportError where the
    server fails altogether: with every setup.
    """
    observe = observer(observe, "observe")
    found = Probe([SetupTrial(setup) for setup in setups])
    began, done = time.monotonic(), 0
    going = list(found.trials)
    try:
        for rung, (upto, keep) in enumerate(rungs):
            share_s = (time_limit_s - (time.monotonic() - began)) / (len(rungs) - rung)
            upto = largest_fitting_rung(upto, going, share_s)
            for trial in going:
                for task in tasks[len(trial.outcomes) : upto]:
                    if time.monotonic() - began > time_limit_s:
                        found.ended = f"the time limit of {time_limit_s:g} s was reached"
                        return found
                    if not _try(asker, trial, task):
                        break
                    done += 1
                    observe(trial, done, done + _left(going, [(upto, keep), *rungs[rung + 1 :]], tasks))
            if not any(trial.outcomes for trial in found.trials):
                raise TransportError(going[0].refusal)
            if all(trial.refusal for trial in going):
                found.ended = going[0].refusal
                return found
            native, ours = [trial for trial in going if trial.setup.native], [t for t in going if not t.setup.native]
            ours.sort(key=lambda trial: (not trial.refusal, trial.rank(upto)), reverse=True)
            going = [trial for trial in (*native, *ours[:keep]) if not trial.refusal]
    except KeyboardInterrupt:
        found.ended = STOPPED
    return found


def _try(asker: TaskRunner, trial: SetupTrial, task: ProbeTask) -> bool:
    """Whether the server took it. One refusal of a setup is enough: it would refuse the next as well."""
    try:
        trial.outcomes.append(asker.ask(task, trial.setup))
    except TransportError as error:
        trial.refusal = str(error)
        return False
    return True


def largest_fitting_rung(upto: int, going: Sequence[SetupTrial], share_s: float) -> int:
    """How many tasks the setups get by the end of a round of ``share_s`` seconds: ``upto``, or what fits in."""
    outcomes = [outcome for trial in going for outcome in trial.outcomes]
    if not outcomes:
        return upto
    fewest = min(len(trial.outcomes) for trial in going)
    seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
    more = int(share_s / max(seconds * len(going), 1e-9))
    return min(upto, max(fewest + more, FEWEST))


def _left(going: Sequence[SetupTrial], rungs: Sequence[tuple[int, int]], tasks: Sequence[ProbeTask]) -> int:
    """About how many answers are still to come."""
    (upto, _), *later = rungs
    upto = min(upto, len(tasks))
    left = sum(max(0, upto - len(trial.outcomes)) for trial in going if not trial.refusal)
    keep = rungs[0][1]
    for next_upto, next_keep in later:
        left += (min(next_upto, len(tasks)) - upto) * min(keep + 1, len(going))
        upto, keep = min(next_upto, len(tasks)), next_keep
    return left
