"""What a client posts, within bounds of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError
from adapter.protocols.request_limits import read_body
from adapter.server.telemetry.request_info import current_request
from adapter.server.work_queue import WorkQueue

MAX_BODY_BYTES = 32 * 1024 * 1024
"""A conversation with some twenty screenshots. It is held several times over while it is translated."""

BODY_S = 10.0
"""How long the body of a request may take."""

Endpoint: TypeAlias = Callable[[HttpRequest], Awaitable[ASGIApp]]


def with_memory_budget(work: WorkQueue, endpoint: Endpoint) -> Endpoint:
    """``endpoint`` that reads and translates a large request only when there is room for it."""

    async def waiting(http: HttpRequest) -> ASGIApp:
        announced = http.headers.get("content-length", str(MAX_BODY_BYTES))
        async with work.reserve(min(int(announced[:12]), MAX_BODY_BYTES)):  # llhttp has seen that it is digits
            return await endpoint(http)

    return waiting


async def read_content(http: HttpRequest) -> bytes:
    """The body, whatever it is. Raises RequestError for one that is too large or too slow."""
    pieces: list[bytes] = []
    size = 0
    announced = http.headers.get("content-length", "0")
    if len(announced) > 12 or int(announced) > MAX_BODY_BYTES:  # llhttp has seen that it is digits
        raise _too_large()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in http.stream():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BODY_BYTES:
                    raise _too_large()
    except TimeoutError as error:
        message = f"the request's body was not there after {BODY_S:g} seconds; {size:,} bytes came"
        raise RequestError(message, status=408) from error
    except ClientDisconnect as error:
        raise RequestError("the client went before its request was there") from error
    return b"".join(pieces)


def _too_large() -> RequestError:
    message = (
        f"the request's body is larger than {MAX_BODY_BYTES} bytes: shorten the conversation, or send fewer images"
    )
    return RequestError(message, status=413)


async def read_json_body(http: HttpRequest, work: WorkQueue) -> tuple[bytes, JsonObject]:
    """The body, and the JSON object that it is.

    A page can post anything but ``application/json`` without asking first: from pages nothing else is taken. Others may
    say what they like, or nothing, as litellm and curl do.
    """
    kind, encoding = http.headers.get("content-type", ""), http.headers.get("content-encoding", "identity")
    if "origin" in http.headers and kind.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(f"Content-Type must be application/json from a page, got {kind[:80]!r}", status=415)
    if encoding != "identity":
        raise RequestError(f"the request's body must not be encoded, got {encoding[:80]!r}", status=415)
    content = await read_content(http)
    body = await work.run(len(content), partial(read_body, content))
    current_request().asks_for(body)
    return content, body
