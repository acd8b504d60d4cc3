"""Steps that somebody knows of a task: what must be done, in which order, and what ends it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject

_NEED = re.compile(r"([^()\s]+)\s*(?:\(\s*([^()\s]+)\s*\))?")

StepsInput: TypeAlias = "Steps | Mapping[str, Json]"
"""``{"required": [...], "before": {...}, "ends_with": [...]}``, in a configuration or a request."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The calls that a task requires, by the names of tools. A step is done once its call succeeded.

    ``required``: what must be done for each message of the user, before an answer without a call counts as the end.
    ``before``: what must be done before a tool, at any time in the conversation: ``{"delete": ["read"]}``;
    ``"read(path)"`` says that it was done with the same value of that argument. ``ends_with``: whose success is the
    end, once what is required is done; without such a call no answer is one.
    """

    required: Sequence[str] = ()
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ends_with: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Raises UsageError for values that are not lists of tools."""
        if not isinstance(self.before, Mapping):
            raise UsageError(
                f'steps.before must be {{tool: [tools]}}, like {{"delete": ["read"]}}, got {self.before!r}'
            )
        needs = {f"before.{name}": each for name, each in self.before.items()}
        for place, names in {"required": self.required, "ends_with": self.ends_with, **needs}.items():
            if isinstance(names, str):
                raise UsageError(f"steps.{place} must be a list of tools, got {names!r}")
            _names(names, place)

    @property
    def tools(self) -> tuple[str, ...]:
        """All that are named, once each."""
        needs = (_need(need)[0] for needs in self.before.values() for need in needs)
        return tuple(dict.fromkeys((*self.required, *self.before, *needs, *self.ends_with)))

    def pending(self, past: CallHistory, earlier: Iterable[PastCall] = ()) -> tuple[str, ...]:
        """What is required and not done. ``earlier``: calls of the same answer, which count as done."""
        done = {made.name for made in past.recent if made.ok} | {made.name for made in earlier}
        return tuple(name for name in self.required if name not in done)

    def left(self, past: CallHistory) -> tuple[str, ...]:
        """What must come before an answer without a call: what is required, or else one of what ends the task."""
        if pending := self.pending(past):
            return pending
        return () if not self.ends_with or self.has_ended(past) else tuple(self.ends_with)

    def has_ended(self, past: CallHistory) -> bool:
        return any(made.ok and made.name in self.ends_with for made in past.recent)

    def missing_before(self, past: CallHistory, call: PastCall, earlier: Iterable[PastCall] = ()) -> tuple[str, ...]:
        """What ``call`` needs before it and has not."""
        done = [*(made for made in past.calls if made.ok), *earlier]
        return tuple(
            name
            for need in self.before.get(call.name, ())
            for name, same in [_need(need)]
            if not any(made.name == name and (not same or _same(made, call, same)) for made in done)
        )


def parse_steps(given: StepsInput) -> Steps:
    """Raises UsageError for what is none."""
    if isinstance(given, Steps):
        return given
    if not isinstance(given, Mapping) or (unknown := sorted(set(given) - {"required", "before", "ends_with"})):
        got = f"the key {unknown[0]!r}" if isinstance(given, Mapping) else repr(given)[:60]
        raise UsageError(f"steps have the keys required, before and ends_with, got {got}")
    before = given.get("before") or {}
    if not isinstance(before, Mapping):
        return Steps(before=before)  # raises
    return Steps(
        _names(given.get("required"), "required"),
        {str(name): _names(needs, f"before.{name}") for name, needs in before.items()},
        _names(given.get("ends_with"), "ends_with"),
    )


def validate_steps(steps: Steps, tools: Iterable[str]) -> Steps:
    """``steps``, if ``tools`` has all that they name; UsageError says which it has not."""
    known = list(tools)
    for name in steps.tools:
        if name not in known:
            raise UsageError(f"steps name the tool {name!r}, which there is not; there are: {', '.join(known)}")
    return steps


def _names(given: Json, place: str) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given or []
    if not isinstance(names, list | tuple) or not all(
        isinstance(name, str) and _NEED.fullmatch(name) for name in names
    ):
        raise UsageError(f"steps.{place} must be a list of tools, got {given!r}")
    return tuple(names)


def _need(text: str) -> tuple[str, str]:
    match = _NEED.fullmatch(text)
    return (match[1], match[2] or "") if match else (text, "")


def _same(made: PastCall, call: PastCall, argument: str) -> bool:
    return argument in call.arguments and made.arguments.get(argument) == call.arguments[argument]


def as_json(steps: Steps) -> JsonObject:
    """What `steps_of` makes the same of; empty where there are none."""
    before = {name: list(needs) for name, needs in steps.before.items()}
    found = {"required": list(steps.required), "before": before, "ends_with": list(steps.ends_with)}
    return {key: value for key, value in found.items() if value}
