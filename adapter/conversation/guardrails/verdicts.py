"""Define the verdicts of guardrails on an answer and its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from adapter.conversation.guardrails.retry_messages import Wordings


@dataclass(frozen=True, slots=True)
class Accept:
    """Verdict of `Guardrails`: use the answer."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Verdict of `Guardrails`: retry with a message to the model.

    If the server supports constraints, the retry must call one of the tools ``held_to``. If it is empty, there is no
    constraint.
    """

    guardrail: str
    message: str
    held_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Verdict of `Guardrails`: stop the agent, because it makes no progress. ``reason`` is a sentence for the user."""

    guardrail: str
    reason: str


Verdict: TypeAlias = Accept | Retry | Stop
ACCEPT = Accept()


@dataclass(frozen=True, slots=True)
class Violation:
    """A mistake that a guardrail found in an answer, and the messages for retries. ``held_to`` is as in `Retry`, but
    does not constrain the first retry if ``is_free_first`` is True.
    """

    guardrail: str
    wordings: Wordings
    held_to: tuple[str, ...] = ()
    is_free_first: bool = False


@dataclass(frozen=True, slots=True)
class DroppedCall:
    """A call that is not run, and the guardrail that dropped this call or an earlier one in the same answer."""

    name: str
    guardrail: str
