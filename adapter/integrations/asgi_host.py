"""An ASGI application within another program's event loop, without a socket: begun, asked and ended by calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Scope

MAX_PIECES = 64
"""Of an answer that wait for whoever asked: then the model server waits, too."""

Head: TypeAlias = tuple[int, list[tuple[bytes, bytes]]]
"""Status and headers."""


@asynccontextmanager
async def run_lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """The time in which ``app`` may be asked. Raises RuntimeError where it says that it cannot begin."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    running = asyncio.ensure_future(app(scope, told.get, heard.put))
    running.add_done_callback(lambda _: heard.put_nowait({"type": "its end"}))  # whatever it was
    try:
        await _step("startup", told, heard)
        try:
            yield
        finally:
            await _step("shutdown", told, heard)
    finally:
        running.cancel()


async def _step(name: str, told: asyncio.Queue[Message], heard: asyncio.Queue[Message]) -> None:
    told.put_nowait({"type": f"lifespan.{name}"})
    answer = await heard.get()
    if answer["type"] != f"lifespan.{name}.complete":
        raise RuntimeError(f"the server's {name} failed: {answer.get('message') or answer['type']}")


async def call_app(app: ASGIApp, scope: Scope, body: bytes) -> AsyncGenerator[Head | bytes, None]:
    """Status and headers, then the body in pieces. To close it is to leave: the model server is stopped."""
    pieces: asyncio.Queue[Message | None] = asyncio.Queue(MAX_PIECES)
    gone = asyncio.Event()
    requests = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        if (request := next(requests, None)) is not None:
            return request
        await gone.wait()
        return {"type": "http.disconnect"}

    async def run() -> None:
        try:
            await app({"type": "http", "state": {}, **scope}, receive, pieces.put)
        finally:
            await pieces.put(None)

    running = asyncio.create_task(run())
    try:
        while (message := await pieces.get()) is not None:
            if message["type"] == "http.response.start":
                yield message["status"], list(message["headers"])
            elif data := message.get("body", b""):
                yield data
        await running
    finally:
        gone.set()
        running.cancel()
