"""The retry policy for model servers: pauses grow and vary randomly. The kind of failure limits the total time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenacity import RetryCallState
    from tenacity.retry import retry_base


def retry_policy(
    retry: retry_base,
    limit_s: Callable[[RetryCallState], float],
    *,
    max_wait_s: float = 5.0,
    wait_s: Callable[[RetryCallState], float | None] = lambda _: None,
) -> dict[str, Any]:
    """Return settings for tenacity. ``limit_s``: returns the maximum total time. ``wait_s``: returns the pause that the
    server requested, or None."""
    from tenacity import wait_random_exponential

    growing = wait_random_exponential(multiplier=0.25, max=max_wait_s)

    def wait(state: RetryCallState) -> float:
        requested_s = wait_s(state)
        return growing(state) if requested_s is None else requested_s

    def stop(state: RetryCallState) -> bool:
        return (state.seconds_since_start or 0.0) + state.upcoming_sleep > limit_s(state)

    return {"retry": retry, "wait": wait, "stop": stop}
