"""An approver that keeps the requests that it answers."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest


def record_requests(
    *attributes: str, answer: bool | ApprovalDecision = True
) -> tuple[list[Any], Callable[[ApprovalRequest], bool | ApprovalDecision]]:
    """Return a list, and an approver that adds each request, or these attributes of it, to the list."""
    seen: list[Any] = []

    def approve(request: ApprovalRequest) -> bool | ApprovalDecision:
        seen.append(attrgetter(*attributes)(request) if attributes else request)
        return answer

    return seen, approve
