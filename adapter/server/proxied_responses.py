"""Send translated or passed-through responses, and cancel them if the client disconnects."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import aiohttp
from starlette.types import Receive, Scope, Send

from adapter.core.events import JsonObject
from adapter.protocols.answer_translation import AnswerWriter, BufferedExchange, OpenAIWriter, StreamedExchange
from adapter.protocols.exchange_guardrails import build_guard_headers
from adapter.protocols.openai_errors import (
    build_error_object,
    find_error_status,
    get_error_text,
    relay_error,
    with_status,
)
from adapter.protocols.request_stats import with_usage
from adapter.protocols.template_prompt import TemplatePromptError
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.asgi_messages import cancel_on_disconnect, send_json, send_start
from adapter.server.concurrency_limit import RETRY_AFTER_S, QueueFullError
from adapter.server.error_responses import build_failure_object, find_error_format
from adapter.server.model_server import ModelServer
from adapter.server.telemetry.request_info import get_current_request
from adapter.server.translation_threads import QUICK_BYTES
from adapter.server.upstream_connection import UpstreamError

CHAT = "/v1/chat/completions"

SHUT_DOWN = "server shut down mid-response; please retry"


class ProxiedResponse:
    """An ASGI response that waits for a slot at the model server, and is cancelled if the client disconnects."""

    def __init__(self, upstream: ModelServer) -> None:
        self._upstream = upstream
        self._request_info = get_current_request()
        self._as_error = find_error_format(self._request_info.path)
        self._headers: dict[str, str] = {}

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await cancel_on_disconnect(receive, self.run(send))
        except asyncio.CancelledError:  # this server shuts down
            await self.fail(send, 503, build_error_object(SHUT_DOWN, "overloaded_error"))
        finally:
            self.on_disconnect()

    def on_disconnect(self, why: str = "") -> None:
        """Called after the response, also if the client disconnected. ``why`` is the reason if there was no answer."""

    async def run(self, send: Send) -> None:
        try:
            async with self.acquire_slot():
                await self.exchange(send)
        except (QueueFullError, UpstreamError) as error:
            await self.fail(send, error.status, build_failure_object(error))

    def acquire_slot(self) -> AbstractAsyncContextManager[None]:
        return self._upstream.limit.acquire()

    async def exchange(self, send: Send) -> None:
        """Send the request to the model server, and send its answer to the client."""
        raise NotImplementedError

    async def fail(self, send: Send, status: int, error: JsonObject, retry_after: str | None = None) -> None:
        """Send an error to the client. ``retry_after`` is the value of the model server's ``Retry-After`` header."""
        self._request_info.record_error(error)
        self.on_disconnect(f"{status}: {get_error_text(error)}")
        when = retry_after or (str(RETRY_AFTER_S) if status == 503 else None)
        await send_json(send, status, self._as_error(error, status), {"retry-after": when} if when else {})


class StreamingProxy(ProxiedResponse):
    """A response that may take a long time. It sends a keepalive after ``keep_alive_s`` seconds without output.

    ``writer`` encodes the keepalives. The first keepalive begins the response, so later errors are sent as events.
    """

    def __init__(self, upstream: ModelServer, keep_alive_s: float, writer: AnswerWriter | None) -> None:
        super().__init__(upstream)
        self._keep_alive_s, self._writer = keep_alive_s, writer
        self._request_info.is_stream = writer is not None
        self._has_begun = False
        self._beginning = asyncio.Lock()
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._written_at = self._now()
        self._listening_since = math.inf  # infinite while the client, not the model server, causes the delay

    async def run(self, send: Send) -> None:
        self._check_silence(send)
        try:
            await super().run(send)
        finally:
            for each in (self._timer, self._pinging):
                if each is not None:
                    each.cancel()

    async def exchange(self, send: Send) -> None:
        try:
            async with self._timeout:
                self._listening_since = self._now()
                await self.relay(send)
        except TimeoutError as error:
            raise self._upstream.build_silence_error() from error

    async def relay(self, send: Send) -> None:
        """Do the work of `exchange`. It is cancelled if the model server is silent for too long."""
        raise NotImplementedError

    async def write(self, send: Send, body: bytes, *, more: bool = True) -> None:
        if not self._has_begun:
            async with self._beginning:
                await self._begin(send)
        if self._request_info.first_s is None:
            self._request_info.mark_first_piece()
        self._listening_since = math.inf
        await send({"type": "http.response.body", "body": body, "more_body": more})
        self._written_at = self._listening_since = self._now()

    async def fail(self, send: Send, status: int, error: JsonObject, retry_after: str | None = None) -> None:
        if not self._has_begun:
            await super().fail(send, status, error, retry_after)
        elif self._writer:  # without a writer, the missing end of the body reports the error
            await self.write(send, self.encode_error_event(self._writer, with_status(error, status)), more=False)

    def encode_error_event(self, writer: AnswerWriter, error: JsonObject) -> bytes:
        return writer.write([error])

    def _check_silence(self, send: Send) -> None:
        """Send a keepalive if one is due, and cancel the request if the model server is silent.

        A single timer does both, because starting a timer for each chunk would be slower.
        """
        now, patience_s = self._now(), self._upstream.patience_s
        if now - self._listening_since >= patience_s:
            self._timeout.reschedule(now)
            return
        due = min(self._listening_since, now) + patience_s
        if self._writer:
            next_ping = self._written_at + self._keep_alive_s
            if next_ping <= now:
                if self._pinging is None or self._pinging.done():  # otherwise, the client reads nothing
                    self._pinging = asyncio.create_task(self._ping(send))
                next_ping = now + self._keep_alive_s
            due = min(due, next_ping)
        self._timer = self._loop.call_at(due, self._check_silence, send)

    async def _ping(self, send: Send) -> None:
        async with self._beginning:
            if self._writer:
                await self._begin(send)
                await send({"type": "http.response.body", "body": self._writer.ping, "more_body": True})
                self._written_at = self._now()

    async def _begin(self, send: Send) -> None:
        if not self._has_begun and self._writer:
            defaults = {"content-type": self._writer.content_type, "cache-control": "no-cache"}
            await send_start(send, 200, defaults | self._headers)
            self._has_begun = True


class _Translated(ProxiedResponse):
    """A translated response. It sends follow-up requests until the answer is complete."""

    _exchange: StreamedExchange | BufferedExchange

    def _start(self, exchange: StreamedExchange | BufferedExchange) -> None:
        self._exchange, self._headers = exchange, exchange.request.headers
        self._request_info.set_translation(exchange.request)

    async def converse(self, send: Send) -> bool:
        """Send the request and its follow-up requests. Return False if the client got an error."""
        body: JsonObject | None = self._exchange.request.body
        while body is not None:
            try:
                response = await self.ask(body)
            except TemplatePromptError as error:
                if await self._send_previous(send):
                    return True
                rejected, body = body, self._exchange.switch_to_text()
                if body is None:
                    message = f"the model's chat template rejects this conversation: {error}"
                    await self.fail(send, 400, build_error_object(message, "invalid_request_error"))
                    return False
                self._upstream.detected.log_prompt_fallback(error, rejected)
                continue
            try:
                if response.status == 200:
                    body = await self.take(send, response)
                    continue
                content = await self._upstream.read_body(response)
            finally:
                response.close()
            if await self._send_previous(send):
                return True
            body = self._upstream.detected.find_alternative(self._exchange, response.status, content)
            if body is None:
                when = response.headers.get("Retry-After")
                status = response.status if response.status >= 400 else 502  # a 204 would hide the error
                await self.fail(send, status, relay_error(response.status, content), when)
                return False
        return True

    async def ask(self, body: JsonObject) -> aiohttp.ClientResponse:
        return await self._upstream.ask(CHAT, body)

    async def take(self, send: Send, response: aiohttp.ClientResponse) -> JsonObject | None:
        """Read the model server's response. Return the body of the follow-up request, or None if there is none."""
        raise NotImplementedError

    async def deliver(self, send: Send, answer: Any) -> None:
        """Send an answer of the exchange to the client."""
        raise NotImplementedError

    async def _send_previous(self, send: Send) -> bool:
        """If a follow-up request was rejected, send the answer before it. Return whether an answer was sent."""
        if (previous := self._exchange.give_up()) is None:
            return False
        await self.deliver(send, previous)
        return True

    def on_disconnect(self, why: str = "") -> None:
        self._exchange.cancel(why)


class TranslatedStream(_Translated, StreamingProxy):
    """Translates a streamed answer while it arrives, and streams it to the client."""

    def __init__(self, upstream: ModelServer, keep_alive_s: float, streamed: StreamedExchange) -> None:
        super().__init__(upstream, keep_alive_s, streamed.writer)
        self._start(streamed)
        self._streamed = streamed
        self._unsent = b""

    async def relay(self, send: Send) -> None:
        if await self.converse(send):
            last = await self._upstream.work.run(self._streamed.waiting, self._streamed.close)
            error = self._streamed.early_error
            if error is not None and not self._has_begun:  # a status, because clients retry no error in a stream
                await self.fail(send, find_error_status(error), error)
                return
            await self.write(send, self._unsent + last, more=False)

    async def ask(self, body: JsonObject) -> aiohttp.ClientResponse:
        counts = self._streamed.request.observation.counts_tokens
        return await self._upstream.ask(CHAT, with_usage(body) if counts else body, has_own_timeout=True)

    async def deliver(self, send: Send, answer: bytes) -> None:
        await self.write(send, answer)

    async def take(self, send: Send, response: aiohttp.ClientResponse) -> JsonObject | None:
        streamed, remover = self._streamed, self._upstream.create_key_redactor()
        out = b""
        while not streamed.is_done:
            if out:
                await self.write(send, out)
                out = b""
            try:
                piece = await response.content.readany()
            except aiohttp.ClientError:
                break  # `StreamedExchange.close` reports the error
            if not piece:
                break
            text, size = remover.feed(piece), streamed.waiting + len(piece)
            if size <= QUICK_BYTES:
                out = streamed.feed(text)
            else:
                self._listening_since = math.inf  # the translation must not count as the model server's silence
                out = await self._upstream.work.run(size, partial(streamed.feed, text))
            if not out:  # otherwise it is written at once
                self._listening_since = self._now()
        out += streamed.feed(rest) if (rest := remover.close()) else b""
        body = streamed.build_next_body()
        if body is None:
            self._unsent = out  # sent together with the end of the stream, because each call of send is slow
        elif out:
            await self.write(send, out)
        return body

    def encode_error_event(self, _writer: AnswerWriter, error: JsonObject) -> bytes:
        return self._streamed.fail(error)


class TranslatedResponse(_Translated):
    """Translates a buffered answer, and sends it to the client as one JSON object."""

    def __init__(self, upstream: ModelServer, completed: BufferedExchange, writer: AnswerWriter) -> None:
        super().__init__(upstream)
        self._start(completed)
        self._completed, self._writer = completed, writer

    async def exchange(self, send: Send) -> None:
        await self.converse(send)

    async def deliver(self, send: Send, answer: JsonObject) -> None:
        await self._answer(send, 200, answer)

    async def take(self, send: Send, response: aiohttp.ClientResponse) -> JsonObject | None:
        content = await self._upstream.read_body(response)
        response.close()
        answer = await self._upstream.work.run(len(content), partial(self._completed.feed, content))
        if not isinstance(answer, tuple):
            return answer
        await self._answer(send, *answer)
        return None

    async def _answer(self, send: Send, status: int, completion: JsonObject) -> None:
        if status != 200:
            self.on_disconnect(get_error_text(completion))
        answer = self._writer.build_response(completion) if status == 200 else self._as_error(completion, status)
        await send_json(send, status, answer, self._headers | build_guard_headers(completion))


def respond(
    upstream: ModelServer, request: TranslatedRequest, keep_alive_s: float, writer: AnswerWriter | None = None
) -> ProxiedResponse:
    """Return the response to a chat completion request, streamed if the client requested a stream. ``writer`` encodes
    it in the client's API; the default is OpenAI's."""
    created, writer = int(time.time()), writer or OpenAIWriter()
    if request.client.stream:
        return TranslatedStream(upstream, keep_alive_s, StreamedExchange(request, created, writer))
    return TranslatedResponse(upstream, BufferedExchange(request, created), writer)
