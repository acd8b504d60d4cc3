"""Policies that define how a call must be written and where it may appear.

Under every policy, a call is only text if it appears in reasoning, inline code, a quotation, an example with
placeholders or an echoed tool result.
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
    """True to accept calls that needed repairs. If it is false, such calls are errors that list the repairs."""
    unmarked: Literal["none", "reads", "all"] = "reads"
    """The tools that may be called in bare or fenced JSON, without the format's markers: none, tools that only read
    (``reads``), or all."""
    allow_midtext: bool = False
    """True to accept a call in bare or fenced JSON even if text is both before and after it."""
    allow_other_formats: bool = True
    """True to accept the markers of formats other than the expected one."""


STRICT = ParsePolicy("strict", repairs=False, unmarked="none", allow_other_formats=False)
SAFE = ParsePolicy("safe")
APPROVED = ParsePolicy("approved", unmarked="all")
"""Like `SAFE`, but bare or fenced JSON may call any tool. This is for programs in which a person approves every
change."""
LENIENT = ParsePolicy("lenient", unmarked="all", allow_midtext=True)

POLICIES = {policy.name: policy for policy in (STRICT, SAFE, APPROVED, LENIENT)}


def get_policy(policy: str | ParsePolicy) -> ParsePolicy:
    """Return the policy called ``policy``. A `ParsePolicy` is returned unchanged. Raises UsageError for an unknown
    name."""
    if isinstance(policy, ParsePolicy):
        return policy
    if not isinstance(policy, str) or policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}; expected {', '.join(POLICIES)}")
    return POLICIES[policy]
