"""Connect to MCP servers over HTTP with a limit on the size of messages.

The SDK limits the size of the events in a stream, but not the size of other responses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TextIO

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

WAIT_S = 30.0
"""Timeout for connecting and for sending a request, in seconds. Responses have a call's timeout."""


@asynccontextmanager
async def create_limited_http_client(
    url: str, headers: Mapping[str, str], max_message: int, call_s: float, log: TextIO, *, is_sse: bool = False
) -> AsyncIterator[TransportStreams]:
    """Create a transport for the SDK's client. A message of more than ``max_message`` bytes makes its request fail.

    The status of each request that fails is written to ``log``. ``is_sse`` selects the older protocol, whose stream may
    be silent between calls, and whose messages the SDK limits to 1 MiB."""

    # Compressed responses could expand to any size.
    own_headers = {**headers, "Accept-Encoding": "identity"}
    own_timeout = httpx2.Timeout(WAIT_S, read=None if is_sse else call_s)

    def create_client(**_: object) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=_LimitedTransport(max_message, log), timeout=own_timeout, headers=own_headers
        )

    if is_sse:
        create: Any = create_client  # the SDK's settings are not used
        async with sse_client(url, httpx_client_factory=create) as streams:
            yield streams
        return
    async with (
        create_client() as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=max_message) as streams,
    ):
        yield streams


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """Limits the size of all responses except event streams."""

    def __init__(self, limit: int, log: TextIO) -> None:
        super().__init__()
        self._limit, self._log = limit, log

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.status_code >= 300 and request.method == "POST":  # the SDK's errors omit the status
            location = response.headers.get("location", "")
            print(f"HTTP {response.status_code} {location}", file=self._log, flush=True)
        is_compressed = response.headers.get("content-encoding", "identity").lower() != "identity"
        if is_compressed or not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _LimitedStream(response.stream, 0 if is_compressed else self._limit)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._limit:
                reason = (
                    f"a message of more than {self._limit:,} bytes"
                    if self._limit
                    else "an unexpected compressed message"
                )
                raise httpx2.StreamError(reason)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
