"""An OpenAI client whose model gains tool calls: the same calls, the same types, no server between.

The client stays the SDK's own class. Only its transport is ours: a chat request with
tools is translated on its way out, the answer on its way back, and everything else
passes untouched. So streams, helpers, raw responses and retries work as ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from adapter.constraint import Constraint
from adapter.endpoints import Endpoint, recognise
from adapter.errors import UsageError
from adapter.profiles import check, setups
from adapter.transport import constraint_fields
from adapter.wire.errors import refusal
from adapter.wire.exchange import Streamed, translated_body
from adapter.wire.request import Options, Request, checked, has_tools, translate
from adapter.wire.sse import as_json

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    Client = TypeVar("Client", OpenAI, AsyncOpenAI)
else:
    Client = TypeVar("Client")

_log = logging.getLogger("adapter")


def wrap(
    client: Client,
    *,
    format: str | None = None,
    style: str = "trained",
    policy: str = "safe",
    stream_arguments: bool = False,
    constraint: Constraint | None = None,
    profile: str = "none",
) -> Client:
    """A copy of an ``OpenAI`` or ``AsyncOpenAI`` client whose chat completions take tools, whatever the server can.

    ``format``: how the model writes calls; None goes by the model's name in each request. ``style``: how the prompt
    describes the tools (see `system_prompt`). ``policy``: which text may become a call (see `Parser`).
    ``stream_arguments``: hand on a call's arguments while they are written; else each call comes whole when it is
    closed. ``constraint``: how far the model is held to valid calls (see `adapter.constraint`).
    ``profile``: what `adapter probe` found to be best, where the others say nothing: ``"auto"`` for that of the model
    that a request names, or a profile's name or file.
    The copy shares the connections of ``client``, which stays as it is.
    Raises UsageError for an unknown format, style, policy or profile, and for what is no such client.
    """
    from openai import AsyncOpenAI, OpenAI

    if not isinstance(client, OpenAI | AsyncOpenAI):
        raise UsageError(f"wrap() takes an OpenAI or AsyncOpenAI client, got {type(client).__name__}")
    options = Options(
        format=format, style=style, policy=policy, stream_arguments=stream_arguments, constraint=constraint
    )
    options = checked(options)
    check(profile)
    server = _Server(str(client.base_url).rstrip("/"), options, profile)
    if isinstance(client, AsyncOpenAI):
        http = _library_of(client._client)
        return client.copy(http_client=http.AsyncClient(transport=_AsyncTransport(http, client._client, server)))
    http = _library_of(client._client)
    return client.copy(http_client=http.Client(transport=_Transport(http, client._client, server)))


def _library_of(client: object) -> Any:
    """httpx2 with openai 3, httpx with openai 2 or where the user brought such a client."""
    names = (kind.__module__.partition(".")[0] for kind in type(client).__mro__)
    return sys.modules[next(name for name in names if name in ("httpx2", "httpx"))]


class _Server:
    """What is behind the client. Asked once, before the first request that may need a constraint."""

    def __init__(self, base_url: str, options: Options, profile: str) -> None:
        self._base_url, self._options, self._profile = base_url, options, profile
        self._is_known = options.constraint == "off" and profile == "none"

    def options(self) -> Options:
        if not self._is_known:
            if kind := recognise(self._base_url):
                # Unbounded strings: a value that ends at a limit would look whole. The token limit ends runaways.
                self._options = replace(self._options, enforce=partial(constraint_fields, kind, max_string=None))
                setup_of, notes = setups(self._profile, Endpoint(self._base_url, kind))
                self._options = replace(self._options, setup_of=setup_of)
                for note in notes:
                    _log.info(note)
            self._is_known = True
        return self._options

    async def options_soon(self) -> Options:
        return self._options if self._is_known else await asyncio.to_thread(self.options)


class _Transport:
    """Sends through the user's own HTTP client, with its proxies, certificates and connections."""

    def __init__(self, http: Any, client: Any, server: _Server) -> None:
        self._http, self._client, self._server = http, client, server

    def handle_request(self, sent: Any) -> Any:
        passage = _Passage(self._http, sent, self._server.options())
        if passage.refused:
            return passage.refused
        response = self._client.send(passage.sent, stream=True)
        if passage.request is None or response.status_code != 200:
            return passage.untouched(response, response.iter_raw())
        if passage.request.stream:
            return passage.stream(response, self._pieces(response, passage.request))
        return passage.whole(response, response.read())

    def _pieces(self, response: Any, request: Request) -> Iterator[bytes]:
        streamed = Streamed(request, int(time.time()))
        try:
            for piece in response.iter_bytes():
                yield streamed.feed(piece)
                if streamed.is_done:
                    break
        except (self._http.NetworkError, self._http.RemoteProtocolError):
            pass  # the end of the stream says what that means
        yield streamed.close()

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The connections are those of the client that was wrapped: it closes them."""


class _AsyncTransport:
    """As `_Transport`."""

    def __init__(self, http: Any, client: Any, server: _Server) -> None:
        self._http, self._client, self._server = http, client, server

    async def handle_async_request(self, sent: Any) -> Any:
        passage = _Passage(self._http, sent, await self._server.options_soon())
        if passage.refused:
            return passage.refused
        response = await self._client.send(passage.sent, stream=True)
        if passage.request is None or response.status_code != 200:
            return passage.untouched(response, response.aiter_raw())
        if passage.request.stream:
            return passage.stream(response, self._pieces(response, passage.request))
        return passage.whole(response, await response.aread())

    async def _pieces(self, response: Any, request: Request) -> AsyncIterator[bytes]:
        streamed = Streamed(request, int(time.time()))
        try:
            async for piece in response.aiter_bytes():
                yield streamed.feed(piece)
                if streamed.is_done:
                    break
        except (self._http.NetworkError, self._http.RemoteProtocolError):
            pass  # the end of the stream says what that means
        yield streamed.close()

    async def __aenter__(self) -> _AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """The connections are those of the client that was wrapped: it closes them."""


class _Passage:
    """One HTTP request on its way out and back: ``request`` is None where nothing is translated."""

    def __init__(self, http: Any, sent: Any, options: Options) -> None:
        self.request: Request | None = None
        self.refused: Any = None
        self.sent = sent
        self._http = http
        if not (sent.method == "POST" and sent.url.path.endswith("/chat/completions")):
            return
        try:
            body = json.loads(sent.content)
            self.request = translate(body, options) if has_tools(body) else None
        except UsageError as error:
            self.refused = http.Response(400, json=refusal(error), request=sent)
        if self.request is not None:
            headers = [(name, value) for name, value in sent.headers.multi_items() if name != "content-length"]
            content = as_json(self.request.body)
            self.sent = http.Request(
                sent.method, sent.url, headers=headers, content=content, extensions=sent.extensions
            )

    def untouched(self, response: Any, pieces: Iterator[bytes] | AsyncIterator[bytes]) -> Any:
        return self._answered(response, response.headers, pieces)

    def stream(self, response: Any, pieces: Iterator[bytes] | AsyncIterator[bytes]) -> Any:
        return self._answered(response, _own_headers(response), pieces)

    def whole(self, response: Any, body: bytes) -> Any:
        assert self.request is not None
        status, completion = translated_body(body, self.request)
        return self._http.Response(status, headers=_own_headers(response), json=completion, request=self.sent)

    def _answered(self, response: Any, headers: Any, pieces: Any) -> Any:
        return self._http.Response(
            response.status_code,
            headers=headers,
            stream=_byte_stream(self._http, response, pieces),
            extensions={key: value for key, value in response.extensions.items() if key != "network_stream"},
        )


def _own_headers(response: Any) -> dict[str, str]:
    """Those that still hold for a translated body."""
    gone = ("content-length", "content-encoding", "transfer-encoding")
    return {name: value for name, value in response.headers.items() if name not in gone}


def _byte_stream(http: Any, response: Any, pieces: Any) -> Any:
    """``pieces`` as the HTTP library wants them; closing it closes ``response``, which stops the model."""
    if isinstance(pieces, AsyncIterator):

        async def aclose(_: object) -> None:
            await response.aclose()

        members: dict[str, Any] = {"__aiter__": lambda _: pieces, "aclose": aclose}
        return type("_AsyncStream", (http.AsyncByteStream,), members)()
    return type(
        "_Stream", (http.SyncByteStream,), {"__iter__": lambda _: pieces, "close": lambda _: response.close()}
    )()
