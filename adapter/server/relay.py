"""Answers as they go to a client: translated, or bytes passed through; over when the client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TypeAlias

import aiohttp
from starlette.types import Receive, Scope, Send

from adapter.events import JsonObject
from adapter.server.upstream import Upstream, UpstreamError
from adapter.wire.errors import error_object, relayed
from adapter.wire.exchange import Streamed
from adapter.wire.request import Request
from adapter.wire.sse import as_json

HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "content-length", "host",
    }
)  # fmt: skip
"""RFC 9110, 7.6.1, and what each side of a proxy says for itself."""

PRIVATE = frozenset({"authorization", "cookie", "origin", "x-api-key"})
"""What a client says to us alone."""


Whole: TypeAlias = Callable[[bytes], tuple[int, JsonObject] | JsonObject]
"""From the body of a server's 200 to the status and body for the client, or to the body of one more request."""

AsError: TypeAlias = Callable[[JsonObject, int], JsonObject]
"""From OpenAI's shape of an error, and its status, to the shape of the client's dialect."""


def as_it_is(error: JsonObject, _status: int) -> JsonObject:
    """For clients of OpenAI's own interfaces."""
    return error


class Answering:
    """An ASGI answer that stops the model as soon as the client has gone."""

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await _while_there(receive, self.run(send))

    async def run(self, send: Send) -> None:
        raise NotImplementedError


class StreamedAnswer(Answering):
    """``keep_alive_s``: the longest silence. When the model server takes longer for its first word the answer
    begins without it, and an error becomes an event of the stream."""

    def __init__(
        self,
        upstream: Upstream,
        path: str,
        request: Request,
        streamed: Streamed,
        as_error: AsError,
        keep_alive_s: float,
    ) -> None:
        self._upstream, self._path, self._request, self._streamed = upstream, path, request, streamed
        self._as_error, self._keep_alive_s = as_error, keep_alive_s
        self._has_begun = False
        self._beginning = asyncio.Lock()
        self._written_at = 0.0

    async def run(self, send: Send) -> None:
        pinging = asyncio.create_task(self._ping(send))
        body: JsonObject | None = self._request.body
        try:
            while body is not None:
                response = await self._upstream.ask(self._path, body)
                try:
                    if response.status != 200:
                        error = await self._upstream.body_of(response)
                        await self._fail(send, response.status, relayed(response.status, error))
                        return
                    await self._relay(send, response)
                finally:
                    response.close()
                body = self._streamed.next_body()
            await self._write(send, self._streamed.close(), more=False)
        except UpstreamError as error:
            await self._fail(send, error.status, error_object(str(error), "upstream_error"))
        finally:
            pinging.cancel()
            self._streamed.leave()

    async def _relay(self, send: Send, response: aiohttp.ClientResponse) -> None:
        streamed = self._streamed
        while not streamed.is_done:
            try:
                piece = await response.content.readany()
            except aiohttp.SocketTimeoutError as error:
                raise self._upstream.failure(error, has_begun=True) from error
            except aiohttp.ClientError:
                break  # the end of the stream says what that means
            if not piece:
                break
            if out := streamed.feed(piece):
                await self._write(send, out)

    async def _ping(self, send: Send) -> None:
        """A sign of life whenever nothing was written for so long. A task of its own: a timer per chunk costs more."""
        loop = asyncio.get_running_loop()
        self._written_at = loop.time()
        while True:  # until it is cancelled
            silence = loop.time() - self._written_at
            if silence >= self._keep_alive_s:
                await self._write(send, self._streamed.ping)
            else:
                await asyncio.sleep(self._keep_alive_s - silence)

    async def _write(self, send: Send, body: bytes, *, more: bool = True) -> None:
        if not self._has_begun:
            async with self._beginning:
                await self._begin(send)
        self._written_at = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": body, "more_body": more})

    async def _begin(self, send: Send) -> None:
        if not self._has_begun:
            headers = {"content-type": self._streamed.content_type, "cache-control": "no-cache"}
            await _begin(send, 200, headers)
            self._has_begun = True

    async def _fail(self, send: Send, status: int, error: JsonObject) -> None:
        event = self._streamed.fail(error)
        if self._has_begun:
            await self._write(send, event, more=False)
        else:
            await send_json(send, status, self._as_error(error, status))


class WholeAnswer(Answering):
    def __init__(self, upstream: Upstream, path: str, request: Request, whole: Whole, as_error: AsError) -> None:
        self._upstream, self._path, self._request = upstream, path, request
        self._whole, self._as_error = whole, as_error

    async def run(self, send: Send) -> None:
        try:
            await send_json(send, *await self._answer(self._request.body))
        except UpstreamError as error:
            wrong = self._as_error(error_object(str(error), "upstream_error"), error.status)
            await send_json(send, error.status, wrong)

    async def _answer(self, asked: JsonObject) -> tuple[int, JsonObject]:
        while True:
            response = await self._upstream.ask(self._path, asked)
            try:
                body = await self._upstream.body_of(response)
            finally:
                response.close()
            if response.status != 200:
                return response.status, self._as_error(relayed(response.status, body), response.status)
            answer = self._whole(body)
            if isinstance(answer, tuple):
                return answer
            asked = answer


class PassedThrough(Answering):
    """The model server's own answer, byte by byte."""

    def __init__(self, upstream: Upstream, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> None:
        self._upstream, self._method, self._path, self._content = upstream, method, path, content
        self._headers = {name: value for name, value in headers.items() if name not in HOP_BY_HOP | PRIVATE}

    async def run(self, send: Send) -> None:
        try:
            response = await self._upstream.send(self._method, self._path, self._content, self._headers)
        except UpstreamError as error:
            await send_json(send, error.status, error_object(str(error), "upstream_error"))
            return
        try:
            # Whom this server talks to in a browser is not for the model server to say (llama.cpp: everybody).
            headers = {
                name.lower(): value
                for name, value in response.headers.items()
                if name.lower() not in HOP_BY_HOP and not name.lower().startswith("access-control-")
            }
            await _begin(send, response.status, headers)
            if response.status >= 400:
                await send(
                    {"type": "http.response.body", "body": await self._upstream.body_of(response), "more_body": True}
                )
            while piece := await response.content.readany():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (aiohttp.ClientError, UpstreamError):
            pass  # an answer without its end is broken off: that is how the client learns of it
        finally:
            response.close()


async def send_json(send: Send, status: int, value: JsonObject) -> None:
    body = as_json(value)
    await _begin(send, status, {"content-type": "application/json", "content-length": str(len(body))})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _begin(send: Send, status: int, headers: Mapping[str, str]) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def _while_there(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Do ``work`` until it is done or the client has gone, whose request has been read."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    if not working.cancelled():
        working.result()


async def _gone(receive: Callable[[], Awaitable[Mapping[str, object]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
