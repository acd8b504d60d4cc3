"""Modes of constrained decoding, shared by `run`, `serve` and `wrap`.

- ``off``: unconstrained; the output is parsed and, if unambiguous, repaired.
- ``arguments``: the model can write any text; once it begins a call, the call must be valid.
- ``prefer``: the model writes a valid call or a reply.
- ``required``: the model writes a valid call.

A request's ``tool_choice`` takes precedence: ``"none"`` always, ``"required"`` in every mode except ``off``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from adapter.core.errors import UsageError

Constraint: TypeAlias = Literal["off", "arguments", "prefer", "required"]

CONSTRAINTS: tuple[Constraint, ...] = get_args(Constraint)


def parse_constraint_mode(name: str | None) -> Constraint | None:
    """Return the mode ``name``, or None (automatic) for None. Raises UsageError for an unknown name."""
    for constraint in CONSTRAINTS:
        if name == constraint:
            return constraint
    if name is None:
        return None
    raise UsageError(f"unknown constraint {name!r}; expected auto, {', '.join(CONSTRAINTS)}")


GUIDE_MODES = ("auto", "on", "off")
"""Modes of guided tool choice. ``auto`` applies only to models that the server reports as small
(`adapter.prompting.intent.guided_choice`)."""


def validate_guide_mode(mode: str) -> None:
    """Raise UsageError unless ``mode`` is one of `GUIDE_MODES`."""
    if mode not in GUIDE_MODES:
        raise UsageError(f"unknown guide mode {mode!r}; expected {', '.join(GUIDE_MODES)}")
