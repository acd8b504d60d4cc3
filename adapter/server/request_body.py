"""Read request bodies, with limits on their size, transfer time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.core.events import JsonObject
from adapter.protocols.request_body_parsing import read_body
from adapter.protocols.request_errors import RequestError
from adapter.server.telemetry.request_info import get_current_request
from adapter.server.translation_threads import USUAL_BYTES, Reserve, TranslationThreads

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Maximum size of a request body, in bytes: about twenty screenshots. Translation makes several copies."""

BODY_S = 10.0
"""Maximum time, in seconds, until a request body is complete. A large body must also arrive at an even rate, because
other large bodies wait for it."""
GRACE_S = 2.0
"""Maximum time, in seconds, that a large body may be behind this rate."""

READ_BYTES = 384 * 1024
"""Maximum size, in bytes, of a body that is decoded in the event loop. Decoding usually takes half a millisecond, and
twenty if the body contains only empty lists. A thread would take more processor time."""

RESERVE = "adapter.reserve"
"""Key, in an ASGI scope, of the function that reserves memory for the body of the request."""

Endpoint: TypeAlias = Callable[[HttpRequest], Awaitable[ASGIApp]]
"""A function that returns the response to a request."""


class MemoryLimitedEndpoint:
    """An ASGI app that sends the response returned by ``respond``, and limits the memory for large request bodies.

    It is a class, because Starlette would wrap a function in another app that handles exceptions.
    """

    def __init__(self, work: TranslationThreads, respond: Endpoint) -> None:
        self._work, self._respond = work, respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._work.reserve_room() as reserve:
            scope[RESERVE] = reserve
            response = await self._respond(HttpRequest(scope, receive, send))
        await response(scope, receive, send)


def build_post_route(path: str, work: TranslationThreads, respond: Endpoint) -> Route:
    """Return a POST route with limited memory for request bodies."""
    return Route(path, MemoryLimitedEndpoint(work, respond), methods=["POST"])


async def read_content(http: HttpRequest) -> bytes:
    """Return the body of a request. Raises RequestError if it is too large or too slow.

    Memory for a large body is reserved only when its first part has arrived, so a client that sends nothing blocks no
    memory.
    """
    pieces: list[bytes] = []
    size = 0
    announced = http.headers.get("content-length", str(MAX_BODY_BYTES))
    if len(announced) > 12 or int(announced) > MAX_BODY_BYTES:  # llhttp has checked that it is digits
        raise _build_too_large_error()
    reserve: Reserve | None = http.scope.get(RESERVE)
    try:
        async with asyncio.timeout(BODY_S) as limit:
            async for piece in http.stream():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BODY_BYTES:
                    raise _build_too_large_error()
                if size > USUAL_BYTES and reserve is not None:
                    limit.reschedule(None)
                    await reserve(int(announced))
                    start, reserve = asyncio.get_running_loop().time(), None
                if size > USUAL_BYTES and RESERVE in http.scope:
                    limit.reschedule(start + GRACE_S + BODY_S * size / int(announced))
    except TimeoutError as error:
        message = f"the request body did not arrive within {BODY_S:g} seconds; received {size:,} bytes"
        raise RequestError(message, status=408) from error
    except ClientDisconnect as error:
        raise RequestError("the client disconnected before its request was complete") from error
    return b"".join(pieces)


def _build_too_large_error() -> RequestError:
    advice = "shorten the conversation, or send fewer images"
    return RequestError(f"the request body is larger than {MAX_BODY_BYTES:,} bytes; {advice}", status=413)


async def read_json_body(http: HttpRequest, work: TranslationThreads) -> tuple[bytes, JsonObject]:
    """Return the body of a request as bytes, and the JSON object in it.

    Web pages must send ``application/json``, which browsers send only after a CORS preflight. Other clients may send
    any Content-Type or none, as litellm and curl do.
    """
    kind, encoding = http.headers.get("content-type", ""), http.headers.get("content-encoding", "identity")
    if "origin" in http.headers and kind.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(
            f"a request from a web page must have the Content-Type application/json, got {kind[:80]!r}", status=415
        )
    if encoding != "identity":
        raise RequestError(
            f"Content-Encoding {encoding[:80]!r} is not supported; send the body uncompressed", status=415
        )
    content = await read_content(http)
    body = await work.run(0 if len(content) <= READ_BYTES else len(content), partial(read_body, content))
    get_current_request().set_model(body)
    return content, body
