"""Run an ASGI application inside another program's event loop, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Scope

MAX_BUFFERED_CHUNKS = 64
"""Maximum number of buffered response chunks. While the buffer is full, the application waits before it sends more."""

Head: TypeAlias = tuple[int, list[tuple[bytes, bytes]]]
"""The status code and headers of a response."""


@asynccontextmanager
async def run_lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """Run the lifespan of ``app`` for the duration of the context. Raises RuntimeError if its startup fails."""
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    task = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    task.add_done_callback(lambda _: from_app.put_nowait({"type": "app ended"}))
    try:
        await _wait_for_step("startup", to_app, from_app)
        try:
            yield
        finally:
            await _wait_for_step("shutdown", to_app, from_app)
    finally:
        task.cancel()


async def _wait_for_step(name: str, to_app: asyncio.Queue[Message], from_app: asyncio.Queue[Message]) -> None:
    to_app.put_nowait({"type": f"lifespan.{name}"})
    answer = await from_app.get()
    if answer["type"] != f"lifespan.{name}.complete":
        raise RuntimeError(f"the server's {name} failed: {answer.get('message') or answer['type']}")


async def call_app(app: ASGIApp, scope: Scope, body: bytes) -> AsyncGenerator[Head | bytes, None]:
    """Send a request to ``app``. Yield the status and headers, then the body in pieces. Closing the generator counts as
    the client's disconnection."""
    messages: asyncio.Queue[Message | None] = asyncio.Queue(MAX_BUFFERED_CHUNKS)
    disconnected = asyncio.Event()
    requests = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        if (request := next(requests, None)) is not None:
            return request
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def run() -> None:
        try:
            await app({"type": "http", "state": {}, **scope}, receive, messages.put)
        finally:
            await messages.put(None)

    task = asyncio.create_task(run())
    try:
        while (message := await messages.get()) is not None:
            if message["type"] == "http.response.start":
                yield message["status"], list(message["headers"])
            elif data := message.get("body", b""):
                yield data
        await task
    finally:
        disconnected.set()
        task.cancel()
