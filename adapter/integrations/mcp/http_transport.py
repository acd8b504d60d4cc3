"""The way to an MCP server over HTTP, on which no message is larger than any should be.

The SDK bounds the events of a stream itself, and reads a plain answer whole, however long it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

WAIT_S = 30.0
"""For a connection, and for a request to be taken; an answer may come as late as a call may take."""


@asynccontextmanager
async def limited_http_client(url: str, max_message: int, call_s: float) -> AsyncIterator[TransportStreams]:
    """A transport for the SDK's client. A message of more than ``max_message`` bytes fails what it answers."""
    timeout = httpx2.Timeout(WAIT_S, read=call_s)
    # What is packed may be much larger than it is long; so nothing is.
    headers = {"Accept-Encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=_Bounded(max_message), timeout=timeout, headers=headers) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=max_message) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncHTTPTransport):
    """Whatever is no stream of events ends after so many bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_packed = response.headers.get("content-encoding", "identity").lower() != "identity"
        if is_packed or not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _BoundedStream(response.stream, 0 if is_packed else self._limit)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._limit:
                said = f"a message of more than {self._limit:,} bytes" if self._limit else "a packed message, unasked"
                raise httpx2.StreamError(said)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
