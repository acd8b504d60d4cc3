"""Policies that define how a call must be written and where it may appear.

Under every policy, a call in reasoning, inline code, a quotation, an example with placeholders or an echoed tool result
is only text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adapter.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class ParsePolicy:
    """The rules that decide which text may become a call."""

    name: str
    repairs: bool = True
    """True to accept calls that needed repairs. If false, such calls are errors that list the repairs."""
    unmarked: Literal["none", "reads", "all"] = "reads"
    """Tools that may be called without the format's markers, in bare or fenced JSON: none, read-only tools
    (``reads``), or all."""
    allow_midtext: bool = False
    """True to accept a call in bare or fenced JSON even if there is text both before and after it."""
    allow_other_formats: bool = True
    """True to accept the markers of other formats."""


STRICT = ParsePolicy("strict", repairs=False, unmarked="none", allow_other_formats=False)
SAFE = ParsePolicy("safe")
APPROVED = ParsePolicy("approved", unmarked="all")
"""Like `SAFE`, but bare or fenced JSON may call any tool. For programs in which a person approves every change."""
LENIENT = ParsePolicy("lenient", unmarked="all", allow_midtext=True)

POLICIES = {policy.name: policy for policy in (STRICT, SAFE, APPROVED, LENIENT)}


def get_policy(policy: str | ParsePolicy) -> ParsePolicy:
    """Return the policy called ``policy``, or ``policy`` itself if it is a `ParsePolicy`. Raises UsageError for an
    unknown name."""
    if isinstance(policy, ParsePolicy):
        return policy
    if not isinstance(policy, str) or policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}; expected {', '.join(POLICIES)}")
    return POLICIES[policy]
