"""How far a model is held to valid calls while it writes: one word, the same for `run`, `serve` and `wrap`.

====================  ==================================================================
``off``               It writes freely; what it wrote is read and, where that is certain, mended.
``arguments``         It decides freely whether and what to call; a call once begun must be a valid one.
``prefer``            It writes a valid call or a reply, and nothing else.
``required``          It writes a valid call.
====================  ==================================================================

A request's own ``tool_choice`` comes first: ``"none"`` is always obeyed, ``"required"`` in every mode but ``off``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from adapter.core.errors import UsageError

Constraint: TypeAlias = Literal["off", "arguments", "prefer", "required"]

CONSTRAINTS: tuple[Constraint, ...] = get_args(Constraint)


def parse_constraint_mode(name: str | None) -> Constraint | None:
    """``name`` if it is one of the modes; None stays None, "by itself". Raises UsageError for another name."""
    for constraint in CONSTRAINTS:
        if name == constraint:
            return constraint
    if name is None:
        return None
    raise UsageError(f"unknown constraint {name!r}; expected {', '.join(CONSTRAINTS)}")


GUIDE_MODES = ("auto", "on", "off")
"""auto: only models that their server reports as small are assisted (`adapter.prompting.intent.assist`)."""


def validate_guide_mode(mode: str) -> None:
    """Raise UsageError unless ``mode`` is one of `GUIDE_MODES`."""
    if mode not in GUIDE_MODES:
        raise UsageError(f"unknown guide {mode!r}; expected {', '.join(GUIDE_MODES)}")
