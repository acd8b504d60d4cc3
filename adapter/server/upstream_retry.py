"""Retry requests to a model server that is starting, loading or busy, until it begins to answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import aiohttp

from adapter.backends.retries import retry_policy
from adapter.server.telemetry.request_info import current_request

if TYPE_CHECKING:
    from tenacity import RetryCallState

RETRY_S = 15.0
"""Seconds of retries while a server reports that it is loading or busy; clients also retry."""

REFUSED_S = 3.0
"""Seconds of retries while nothing listens: the server may be starting, but usually it is not running."""


async def retry_until_ready(
    ask: Callable[[], Awaitable[aiohttp.ClientResponse]], retry_s: float = RETRY_S
) -> aiohttp.ClientResponse:
    """Return the response to ``ask``, retried while nothing listens, or on 503, or on 429 with a ``Retry-After`` within
    ``retry_s``. Return the last response, or raise the last error, when time is up."""
    first: aiohttp.ClientResponse | aiohttp.ClientConnectorError | None
    try:
        first = await ask()
    except aiohttp.ClientConnectorError as error:
        first = error
    else:
        if not _is_busy(first):  # the usual case: tenacity takes time
            return first

    from tenacity import AsyncRetrying, retry_if_exception_type, retry_if_result

    def limit_s(state: RetryCallState) -> float:
        return min(retry_s, REFUSED_S) if state.outcome is not None and state.outcome.failed else retry_s

    async def attempt() -> aiohttp.ClientResponse:
        nonlocal first
        outcome, first = first, None
        if isinstance(outcome, Exception):
            raise outcome
        return await ask() if outcome is None else outcome

    is_temporary = retry_if_exception_type(aiohttp.ClientConnectorError) | retry_if_result(_is_busy)
    attempts = AsyncRetrying(
        **retry_policy(is_temporary, limit_s, max_wait_s=3.0, wait_s=_retry_after_s),
        before_sleep=_close,
        retry_error_callback=lambda state: state.outcome.result() if state.outcome is not None else None,
    )
    response: aiohttp.ClientResponse = await attempts(attempt)
    return response


def _is_busy(response: aiohttp.ClientResponse) -> bool:
    return response.status == 503 or (response.status == 429 and "Retry-After" in response.headers)


def _response(state: RetryCallState) -> aiohttp.ClientResponse | None:
    return None if state.outcome is None or state.outcome.failed else state.outcome.result()


def _retry_after_s(state: RetryCallState) -> float | None:
    """Return the server's ``Retry-After`` in seconds. Dates are ignored: no model server sends them."""
    response = _response(state)
    value = response.headers.get("Retry-After", "") if response is not None else ""
    return float(value) if re.fullmatch(r"\d{1,6}(?:\.\d+)?", value) else None


def _close(state: RetryCallState) -> None:
    current_request().retries += 1
    if (response := _response(state)) is not None:
        response.close()
