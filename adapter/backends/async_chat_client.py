"""Stream answers of a model server with asyncio: the same requests and errors as `ChatClient`, without blocking.

Cancelling a stream closes its connection, which stops the server even while it processes the prompt. Each request opens
a new connection, so that an agent can be used in one event loop after another.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from adapter.backends.chat_client import ChatClient, Chunk, Message
from adapter.backends.openai_sdk_errors import is_connection_error, list_sdk_errors
from adapter.backends.stream_chunks import ChunkReader
from adapter.core.events import Json, JsonObject
from adapter.protocols.template_prompt import streams_lines

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

_Events: TypeAlias = "AsyncStream[object] | _AsyncLines"


class AsyncChatClient:
    """Streams answers without blocking. ``chat`` builds the requests and explains failures."""

    def __init__(self, chat: ChatClient) -> None:
        self._chat = chat

    async def stream(
        self, messages: Sequence[Message], *, stop: Sequence[str] = (), extra: JsonObject | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Stream an answer like `ChatClient.stream`. Raises TransportError if the server cannot be reached or fails."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        fields = ({"stop": list(stop)} if stop else {}) | (extra or {})
        body = await asyncio.to_thread(self._chat.build_body, messages, fields)
        http = DefaultAsyncHttpxClient(trust_env=not self._chat.endpoint.is_local)
        async with AsyncOpenAI(**self._chat.build_sdk_settings(), http_client=http) as client:
            response, first = await self._open_with_retries(client, body)
            try:
                async with aclosing(self._read_chunks(response, first)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            finally:
                await response.close()

    async def _open_with_retries(self, client: AsyncOpenAI, body: JsonObject) -> tuple[_Events, Json]:
        """Return a stream and its first event. Failures before the first event are retried."""
        from tenacity import AsyncRetrying

        try:
            return await AsyncRetrying(**self._chat.build_retry_settings())(self._open, client, body)
        except list_sdk_errors() as error:
            raise await asyncio.to_thread(self._chat.to_transport_error, error) from error

    async def _open(self, client: AsyncOpenAI, body: JsonObject) -> tuple[_Events, Json]:
        from openai import AsyncStream

        url, sent = await asyncio.to_thread(self._chat.build_request, body)
        stream = await client.post(url, body=sent, cast_to=object, stream=True, stream_cls=AsyncStream[object])
        response: _Events = _AsyncLines(stream) if streams_lines(body) else stream
        try:
            return response, await anext(response, None)
        except BaseException:
            await response.close()
            raise

    async def _read_chunks(self, response: _Events, first: Json) -> AsyncGenerator[Chunk, None]:
        self._chat.check_first_event(first, response.response.headers)
        event, reader = first, ChunkReader()
        while event is not None:
            yield reader.parse(event)
            event = await self._read_event(response)
        for missing in reader.list_missing():
            yield missing

    async def _read_event(self, response: _Events) -> Json:
        """Return the next event, or None at the end of the stream. A dropped connection also counts as the end, because
        the partial answer is still useful."""
        try:
            return await anext(response, None)
        except list_sdk_errors() as error:
            if is_connection_error(error):
                return None
            raise await asyncio.to_thread(self._chat.to_transport_error, error) from error


class _AsyncLines:
    """An iterator of the events in a stream of JSON lines, as in Ollama's own API."""

    def __init__(self, stream: AsyncStream[object]) -> None:
        self.response = stream.response
        self._lines = stream.response.aiter_lines()

    async def __anext__(self) -> Json:
        while True:
            if line := (await anext(self._lines)).strip():
                return json.loads(line)

    async def close(self) -> None:
        await self.response.aclose()
