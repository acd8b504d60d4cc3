"""Which text may become a call: how it must be written, and where it may stand.

In every policy a call in reasoning, inline code, a quotation, an example with
placeholders or an echoed tool result is text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adapter.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class ParsePolicy:
    """``repairs``: whether a call that needed fixes is taken, or answered with what was wrong.

    ``unmarked``: whether bare or fenced JSON without its format's markers may be a call: of no
    tool, of those that only read, or of all. ``midway``: whether it may be one when text follows it.
    ``foreign``: whether the markers of other formats than the one told may open one.
    """

    name: str
    repairs: bool = True
    unmarked: Literal["none", "reads", "all"] = "reads"
    allow_midtext: bool = False
    allow_other_formats: bool = True


STRICT = ParsePolicy("strict", repairs=False, unmarked="none", allow_other_formats=False)
SAFE = ParsePolicy("safe")
APPROVED = ParsePolicy("approved", unmarked="all")
"""As `SAFE`, for callers where somebody approves what a tool changes."""
LENIENT = ParsePolicy("lenient", unmarked="all", allow_midtext=True)

POLICIES = {policy.name: policy for policy in (STRICT, SAFE, APPROVED, LENIENT)}


def get_policy(policy: str | ParsePolicy) -> ParsePolicy:
    """The policy called ``policy``, or ``policy`` itself. Raises UsageError for an unknown name."""
    if isinstance(policy, ParsePolicy):
        return policy
    if not isinstance(policy, str) or policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}; expected {', '.join(POLICIES)}")
    return POLICIES[policy]
