"""The retry policy for model servers: pauses grow and vary randomly, and the kind of failure limits the total time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenacity import RetryCallState
    from tenacity.retry import retry_base

MAX_PAUSE_S = 5.0
"""Maximum pause between retries, in seconds."""


def build_retry_policy(retry: retry_base, limit_s: Callable[[RetryCallState], float]) -> dict[str, Any]:
    """Return settings for tenacity. ``retry`` selects the failures to retry, and ``limit_s`` returns the maximum total
    time."""
    from tenacity import wait_random_exponential

    def stop(state: RetryCallState) -> bool:
        return (state.seconds_since_start or 0.0) + state.upcoming_sleep > limit_s(state)

    return {"retry": retry, "wait": wait_random_exponential(multiplier=0.25, max=MAX_PAUSE_S), "stop": stop}
