"""Retry requests while the model server is starting, loading or busy. A response that has begun is not retried."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable

import aiohttp

from adapter.server.telemetry.request_info import get_current_request

RETRY_S = 15.0
"""Maximum time, in seconds, to retry while a server reports that it is loading or busy. Clients also retry."""

REFUSED_S = 3.0
"""Maximum time, in seconds, to retry while the connection is refused. It is short, because the server may be starting,
but usually it is not running."""

MAX_PAUSE_S = 3.0
"""Maximum pause between retries, in seconds, unless the server requests a longer one."""


async def retry_until_ready(
    ask: Callable[[], Awaitable[aiohttp.ClientResponse]], retry_s: float = RETRY_S
) -> aiohttp.ClientResponse:
    """Call ``ask`` until it returns a response that need not be retried.

    The request is retried if the connection is refused, on status 503, and on status 429 with a ``Retry-After`` header.
    After ``retry_s`` seconds, the last response is returned, or the last error is raised.
    """
    now = asyncio.get_running_loop().time
    began, max_pause_s = now(), 0.25
    while True:
        pause_s = random.uniform(0, max_pause_s)
        try:
            response = await ask()
        except aiohttp.ClientConnectorError:
            if now() - began + pause_s > min(retry_s, REFUSED_S):
                raise
        else:
            header = response.headers.get("Retry-After", "")
            if re.fullmatch(r"\d{1,6}(?:\.\d+)?", header):  # a date is ignored: no model server sends one
                pause_s = float(header)
            is_busy = response.status == 503 or (response.status == 429 and header)
            if not is_busy or now() - began + pause_s > retry_s:
                return response
            response.close()
        get_current_request().retries += 1
        await asyncio.sleep(pause_s)
        max_pause_s = min(2 * max_pause_s, MAX_PAUSE_S)
