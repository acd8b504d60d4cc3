"""Define the required steps of a task: its tools, their prerequisites, and the tools that end it."""

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
"""Input of `parse_steps`: ``{"required": [...], "before": {...}, "ends_with": [...]}``."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The required and ordered tool calls of a task, by tool name. A step is done once its call has succeeded."""

    required: Sequence[str] = ()
    """Tools that must be called after each user message, before the model may end the task with an answer."""
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The prerequisites of each tool. ``{"delete": ["read"]}`` requires a call to ``read`` earlier in the conversation;
    ``"read(path)"`` also requires the same value of ``path`` in both calls.
    """
    ends_with: Sequence[str] = ()
    """Tools that end the task: after the required tools, one of these must succeed."""

    def __post_init__(self) -> None:
        """Raise UsageError for values that are not lists of tools."""
        if not isinstance(self.before, Mapping):
            raise UsageError(
                f'steps.before must be {{tool: [tools]}}, like {{"delete": ["read"]}}, got {self.before!r}'
            )
        needs = {f"before.{name}": each for name, each in self.before.items()}
        for key, names in {"required": self.required, "ends_with": self.ends_with, **needs}.items():
            if isinstance(names, str):
                raise UsageError(f"steps.{key} must be a list of tools, got {names!r}")
            _parse_names(names, key)

    @property
    def tools(self) -> tuple[str, ...]:
        """All tools in the steps, without duplicates."""
        needs = (_parse_need(need)[0] for needs in self.before.values() for need in needs)
        return tuple(dict.fromkeys((*self.required, *self.before, *needs, *self.ends_with)))

    def pending(self, history: CallHistory, earlier: Iterable[PastCall] = ()) -> tuple[str, ...]:
        """Return the required tools that have not been called yet. ``earlier`` has the preceding calls in the same
        answer, which count as done."""
        done = {call.name for call in history.recent if call.ok} | {call.name for call in earlier}
        return tuple(name for name in self.required if name not in done)

    def find_missing(self, history: CallHistory) -> tuple[str, ...]:
        """Return the tools that must be called before the model may answer in words.

        These are the pending tools. If there are none, they are the tools in ``ends_with``, unless one of them has
        succeeded.
        """
        if pending := self.pending(history):
            return pending
        return () if not self.ends_with or self.has_ended(history) else tuple(self.ends_with)

    def has_ended(self, history: CallHistory) -> bool:
        """Return whether a tool in ``ends_with`` has succeeded since the user's message."""
        return bool(self.ends_with) and any(call.ok and call.name in self.ends_with for call in history.recent)

    def missing_before(self, history: CallHistory, call: PastCall, earlier: Iterable[PastCall] = ()) -> tuple[str, ...]:
        """Return the prerequisites of ``call`` that are not done. ``earlier`` has the preceding calls in the same
        answer."""
        needs = self.before.get(call.name, ())
        done = [*(each for each in history.calls if each.ok), *earlier] if needs else []
        return tuple(
            name
            for need in needs
            for name, argument in [_parse_need(need)]
            if not any(each.name == name and (not argument or _shares(each, call, argument)) for each in done)
        )


def parse_steps(steps: StepsInput) -> Steps:
    """Parse ``steps``. Raises UsageError if they are invalid."""
    if isinstance(steps, Steps):
        return steps
    if not isinstance(steps, Mapping) or (unknown := sorted(set(steps) - {"required", "before", "ends_with"})):
        got = f"the key {unknown[0]!r}" if isinstance(steps, Mapping) else repr(steps)[:60]
        raise UsageError(f"steps can have only the keys required, before and ends_with, got {got}")
    before = steps.get("before") or {}
    if not isinstance(before, Mapping):
        return Steps(before=before)  # raises UsageError
    return Steps(
        _parse_names(steps.get("required"), "required"),
        {str(name): _parse_names(needs, f"before.{name}") for name, needs in before.items()},
        _parse_names(steps.get("ends_with"), "ends_with"),
    )


def validate_steps(steps: Steps, tools: Iterable[str]) -> Steps:
    """Return ``steps`` unchanged. Raises UsageError if a step is not in ``tools``."""
    known = list(tools)
    for name in steps.tools:
        if name not in known:
            raise UsageError(f"unknown tool {name!r} in steps; available: {', '.join(known)}")
    return steps


def _parse_names(value: Json, key: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value or []
    if not isinstance(names, list | tuple) or not all(
        isinstance(each, str) and _NEED.fullmatch(each) for each in names
    ):
        raise UsageError(f"steps.{key} must be a list of tools, got {value!r}")
    return tuple(names)


def _parse_need(text: str) -> tuple[str, str]:
    match = _NEED.fullmatch(text)
    return (match[1], match[2] or "") if match else (text, "")


def _shares(other: PastCall, call: PastCall, argument: str) -> bool:
    return argument in call.arguments and other.arguments.get(argument) == call.arguments[argument]


def to_json(steps: Steps) -> JsonObject:
    """Return ``steps`` as a mapping for `parse_steps`, without empty keys."""
    before = {name: list(needs) for name, needs in steps.before.items()}
    fields = {"required": list(steps.required), "before": before, "ends_with": list(steps.ends_with)}
    return {key: value for key, value in fields.items() if value}
