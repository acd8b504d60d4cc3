"""Send ASGI responses with JSON and additional headers, and cancel work if the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping

from starlette.types import Message, Receive, Send

from adapter.core.events import JsonObject
from adapter.protocols.sse import encode_json


async def send_json(send: Send, status: int, value: JsonObject, headers: Mapping[str, str] | None = None) -> None:
    body = encode_json(value)
    defaults = {"content-type": "application/json", "content-length": str(len(body))}
    await send_start(send, status, defaults | dict(headers or {}))
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


def with_headers(send: Send, *headers: tuple[bytes, bytes]) -> Send:
    """Return a ``send`` function that also adds ``headers`` to the response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return send_with_headers


async def cancel_on_disconnect(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Run ``work`` until it is done or the client disconnects. The request body must have been read before."""
    running, has_left = asyncio.current_task(), False
    assert running is not None

    async def wait_for_disconnect() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        running.cancel()

    waiting = asyncio.create_task(wait_for_disconnect())
    try:
        await work
    except asyncio.CancelledError:
        if not has_left or running.uncancel() > 0:  # something else cancelled it
            raise
    finally:
        waiting.cancel()
