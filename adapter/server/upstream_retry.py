"""Asking a model server again that starts, loads its model or is busy: only until it has begun to answer."""

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
"""How long a server that says it is loading or busy is asked again; clients ask again by themselves, too."""

REFUSED_S = 3.0
"""The same for one that is not there: it may be just starting, but mostly there is none."""


async def retry_until_ready(
    ask: Callable[[], Awaitable[aiohttp.ClientResponse]], retry_s: float = RETRY_S
) -> aiohttp.ClientResponse:
    """What ``ask`` gives, asked again for ``retry_s`` while nothing listens, the answer is 503, or 429 with a
    ``Retry-After`` within that time. The last answer, or error, where that did not help."""
    first: aiohttp.ClientResponse | aiohttp.ClientConnectorError | None
    try:
        first = await ask()
    except aiohttp.ClientConnectorError as error:
        first = error
    else:
        if not _is_busy(first):  # nearly always, and tenacity takes its time
            return first

    from tenacity import AsyncRetrying, retry_if_exception_type, retry_if_result

    def limit_s(state: RetryCallState) -> float:
        return min(retry_s, REFUSED_S) if state.outcome is not None and state.outcome.failed else retry_s

    async def again() -> aiohttp.ClientResponse:
        nonlocal first
        outcome, first = first, None
        if isinstance(outcome, Exception):
            raise outcome
        return await ask() if outcome is None else outcome

    is_temporary = retry_if_exception_type(aiohttp.ClientConnectorError) | retry_if_result(_is_busy)
    attempts = AsyncRetrying(
        **retry_policy(is_temporary, limit_s, max_wait_s=3.0, wait_s=_asked_for),
        before_sleep=_close,
        retry_error_callback=lambda state: state.outcome.result() if state.outcome is not None else None,
    )
    response: aiohttp.ClientResponse = await attempts(again)
    return response


def _is_busy(response: aiohttp.ClientResponse) -> bool:
    return response.status == 503 or (response.status == 429 and "Retry-After" in response.headers)


def _response(state: RetryCallState) -> aiohttp.ClientResponse | None:
    return None if state.outcome is None or state.outcome.failed else state.outcome.result()


def _asked_for(state: RetryCallState) -> float | None:
    """Seconds after which the server wants to be asked again. A date, which none of them sends, is not read."""
    response = _response(state)
    said = response.headers.get("Retry-After", "") if response is not None else ""
    return float(said) if re.fullmatch(r"\d{1,6}(?:\.\d+)?", said) else None


def _close(state: RetryCallState) -> None:
    current_request().retries += 1
    if (response := _response(state)) is not None:
        response.close()
