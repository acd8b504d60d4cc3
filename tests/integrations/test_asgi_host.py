"""The server within another program's event loop, as in a Ray Serve deployment."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the server: pip install 'toolcall-adapter[server]'")
pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")

from adapter.integrations.asgi_host import call_app, run_lifespan
from adapter.server.app import ServerSettings, create_app
from tests.live_upstream import LiveUpstream
from tests.scripted_server import delta

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
CALL = '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>'
SCOPE: dict[str, Any] = {
    "method": "POST",
    "path": "/v1/chat/completions",
    "raw_path": b"/v1/chat/completions",
    "query_string": b"",
    "headers": [(b"content-type", b"application/json"), (b"host", b"127.0.0.1")],
    "root_path": "",
    "scheme": "http",
    "http_version": "1.1",
    "client": ("127.0.0.1", 1),
    "server": ("127.0.0.1", 2),
}
BODY = json.dumps(
    {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Read a.py"}], "tools": TOOLS}
).encode()


def test_call_app_yields_the_response():
    """Status and headers first."""

    async def ask(url: str) -> list[Any]:
        app = create_app(ServerSettings(f"{url}/v1"))
        async with run_lifespan(app):
            return [piece async for piece in call_app(app, SCOPE, BODY)]

    with LiveUpstream(lambda _: iter([delta(CALL), delta(finish_reason="stop")])) as upstream:
        (status, headers), *pieces = asyncio.run(ask(upstream.url))
    assert status == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in headers
    assert b'"name":"read_file"' in b"".join(pieces)


def test_disconnect_stops_the_model_server():
    """In the middle of an answer without an end."""

    def without_end(_: Any) -> Any:
        while True:
            yield delta("word " * 500)

    async def leave(upstream: LiveUpstream) -> bool:
        app = create_app(ServerSettings(f"{upstream.url}/v1"))
        async with run_lifespan(app):
            async with aclosing(call_app(app, SCOPE, BODY)) as pieces:
                for _ in range(3):
                    await anext(pieces)
            return await asyncio.to_thread(upstream.hung_up.wait, 60)

    with LiveUpstream(without_end) as upstream:
        assert asyncio.run(leave(upstream))


def test_lifespan_ends_after_an_error():
    """As where nothing goes wrong: connections are closed."""
    heard = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            message = await receive()
            heard.append(message["type"])
            await send({"type": f"{message['type']}.complete"})

    async def fail() -> None:
        async with run_lifespan(app):
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        asyncio.run(fail())
    assert heard == ["lifespan.startup", "lifespan.shutdown"]


def test_failed_startup_raises_with_the_message():
    """Also for an application that ends without a message."""

    async def fails(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no disk"})

    async def ends(scope: Any, receive: Any, send: Any) -> None:
        pass

    async def begin(app: Any) -> None:
        async with run_lifespan(app):
            pass

    with pytest.raises(RuntimeError, match="startup failed: no disk"):
        asyncio.run(begin(fails))
    with pytest.raises(RuntimeError, match="startup failed: app ended"):
        asyncio.run(begin(ends))
