"""Limit the memory for large request bodies in all routes that translate requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.server.translation_threads import TranslationThreads

RESERVE = "adapter.reserve"
"""Key, in an ASGI scope, of the function that reserves memory for the body of the request."""


class MemoryLimitedEndpoint:
    """An ASGI app that sends the response that ``respond`` returns, and limits the memory for large request bodies.

    It is a class, because Starlette would wrap a function in another app that handles exceptions.
    """

    def __init__(self, work: TranslationThreads, respond: Callable[[HttpRequest], Awaitable[ASGIApp]]) -> None:
        self._work, self._respond = work, respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._work.reserve_room() as reserve:
            scope[RESERVE] = reserve
            response = await self._respond(HttpRequest(scope, receive, send))
        await response(scope, receive, send)
