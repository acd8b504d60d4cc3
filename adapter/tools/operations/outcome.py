"""The kinds of effects of operations, and the base class of their outcomes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

Effect: TypeAlias = Literal["read", "state", "write", "delete", "execute", "network", "skill"]
"""The kind of effect of an operation, which determines whether it needs approval.

``state`` changes only the agent's own state (todo list, memory, cursor). ``skill`` loads instructions.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an operation. ``notes``: tolerated, assumed and omitted details, one sentence each."""

    _: KW_ONLY
    notes: tuple[str, ...] = ()
