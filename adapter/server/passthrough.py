"""Pass the model server's answers through unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

import aiohttp
from starlette.types import Send

from adapter.protocols.answer_translation import AnswerWriter
from adapter.protocols.openai_errors import relay_error
from adapter.protocols.token_budgets import build_shortened_header
from adapter.server.asgi_messages import send_start
from adapter.server.model_server import ModelServer
from adapter.server.passthrough_rules import is_private
from adapter.server.proxied_responses import ProxiedResponse, StreamingProxy

HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "content-length", "host",
    }
)  # fmt: skip
"""Headers that a proxy does not forward (RFC 9110, 7.6.1), and headers set by this server."""

WORK = (
    "/completions", "/completion", "/infill", "/embeddings", "/embedding", "/embed", "/rerank", "/chat", "/generate",
)  # fmt: skip
"""Path endings of requests that use the model. Other requests, such as for model lists, are not queued."""

END_BYTES = 4_096
"""Number of bytes at the end of an answer that are searched for token usage."""


class PassthroughResponse(StreamingProxy):
    """Sends the model server's answer unchanged, except that its API key is redacted.

    ``writer`` encodes the keepalives before the answer. ``instead`` gets the status and body of an error, and returns
    another response to send, or None to pass the error through. ``shortened`` is the value of the header that counts
    the cuts in the conversation, or "".
    """

    def __init__(
        self,
        upstream: ModelServer,
        method: str,
        path: str,
        content: bytes,
        headers: Mapping[str, str],
        keep_alive_s: float = math.inf,
        writer: AnswerWriter | None = None,
        instead: Callable[[int, bytes], ProxiedResponse | None] | None = None,
        shortened: str = "",
    ) -> None:
        super().__init__(upstream, keep_alive_s, writer)
        self._method, self._path, self._content = method, path, content
        passed = {name: value for name, value in headers.items() if name not in HOP_BY_HOP}
        self._request_headers = {name: value for name, value in passed.items() if not is_private(name)}
        self._headers = build_shortened_header(shortened)
        self._is_work = method == "POST" and path.partition("?")[0].endswith(WORK)
        if upstream.has_key:
            self._request_headers["accept-encoding"] = "identity"  # the key cannot be redacted in a compressed body
        self._find_instead = instead
        self._instead: ProxiedResponse | None = None

    async def run(self, send: Send) -> None:
        await super().run(send)
        if self._instead is not None:
            if isinstance(self._instead, StreamingProxy):
                self._instead._has_begun = self._has_begun
            await self._instead.run(send)

    def on_disconnect(self, why: str = "") -> None:
        if self._instead is not None:
            self._instead.on_disconnect(why)

    def acquire_slot(self) -> AbstractAsyncContextManager[None]:
        return super().acquire_slot() if self._is_work else nullcontext()

    async def relay(self, send: Send) -> None:
        response = await self._upstream.send(
            self._method, self._path, self._content, self._request_headers, has_own_timeout=True, retries=self._is_work
        )
        try:
            if response.status >= 400:
                await self._pass_error(send, response.status, response)
                return
            await self._begin_as(send, response)
            remover = self._upstream.create_key_redactor()
            end = b""
            while piece := await response.content.readany():
                if self._request_info.is_observed and self._is_work:
                    end = (end + piece)[-END_BYTES:]
                await self.write(send, remover.feed(piece))
            self._request_info.stats.count_from_bytes(end)
            await self.write(send, remover.close(), more=False)
        except aiohttp.ClientError:
            pass  # the client sees the missing end of the body
        finally:
            response.close()

    async def _pass_error(self, send: Send, status: int, response: aiohttp.ClientResponse) -> None:
        content = await self._upstream.read_body(response)
        self._instead = self._find_instead(status, content) if self._find_instead else None
        if self._instead is not None:
            return
        if self._has_begun:
            await self.fail(send, status, relay_error(status, content))
        else:
            await self._begin_as(send, response)
            await self.write(send, content, more=False)

    async def _begin_as(self, send: Send, response: aiohttp.ClientResponse) -> None:
        """Send the status and headers of the model server's response."""
        async with self._beginning:
            self._writer = None
            if not self._has_begun:
                # this server decides on CORS, not the model server (llama.cpp allows every origin)
                headers = {
                    name.lower(): value
                    for name, value in response.headers.items()
                    if name.lower() not in HOP_BY_HOP and not name.lower().startswith("access-control-")
                }
                await send_start(send, response.status, headers | self._headers)
                self._has_begun = True
