"""The server's routes: what is ours is translated, all else is the model server's."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.endpoints import Endpoint, without_password
from adapter.errors import TransportError, UsageError
from adapter.events import JsonObject
from adapter.server import anthropic, ollama
from adapter.server.guard import Guard
from adapter.server.relay import PassedThrough, StreamedAnswer, WholeAnswer
from adapter.server.upstream import Upstream
from adapter.wire.errors import error_object, refusal
from adapter.wire.exchange import Streamed, translated_body
from adapter.wire.request import Options, has_tools, read_body, translate

CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Settings:
    """``upstream``: base URL of the model server. ``port``: 0 takes a free one. ``keep_alive_s``: longest silence."""

    upstream: str
    host: str = "127.0.0.1"
    port: int = 8090
    keep_alive_s: float = 5.0
    options: Options = field(default_factory=Options)
    profile: str = "none"


def serve(settings: Settings) -> None:
    """Serve until interrupted. Raises UsageError where the address cannot be had."""
    import uvicorn

    try:
        listener = socket.create_server((settings.host, settings.port), backlog=1024, family=_family(settings.host))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}. Choose another --port (0: any)."
        ) from error
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    own = f"http://{host}:{listener.getsockname()[1]}/v1"
    print(f"serving {own}, from {without_password(settings.upstream)}", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        application(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def application(settings: Settings) -> ASGIApp:
    """The server as an ASGI application."""
    upstream = Upstream(settings.upstream, settings.options, settings.profile)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await upstream.open()
        yield
        await upstream.close()

    chat = partial(_chat, upstream, settings.keep_alive_s)
    return Starlette(
        routes=[
            Route(CHAT, chat, methods=["POST"]),
            Route("/chat/completions", chat, methods=["POST"]),
            *anthropic.routes(upstream, settings.keep_alive_s),
            *ollama.routes(upstream, settings.keep_alive_s),
            Route("/health", partial(_health, upstream)),
            Route("/{path:path}", partial(_pass, upstream), methods=_METHODS),
        ],
        middleware=[Middleware(Guard, is_loopback=Endpoint(f"http://{settings.host}").is_local)],
        lifespan=life,
    )


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]


async def _chat(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    content = await http.body()
    try:
        body = read_body(content)
        if not has_tools(body):
            return PassedThrough(upstream, "POST", CHAT, content, http.headers)
        request = translate(body, (await upstream.known()).options)
    except UsageError as error:
        return JSONResponse(refusal(error), 400)
    if request.stream:
        streamed = Streamed(request, int(time.time()))
        return StreamedAnswer(upstream, CHAT, request, streamed, _as_it_is, keep_alive_s)
    return WholeAnswer(upstream, CHAT, request, partial(translated_body, request=request), _as_it_is)


def _as_it_is(error: JsonObject, _status: int) -> JsonObject:
    return error


async def _pass(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    path = http.scope["raw_path"].decode("latin-1") + (f"?{http.url.query}" if http.url.query else "")
    return PassedThrough(upstream, http.method, path, await http.body(), http.headers)


async def _health(upstream: Upstream, _: HttpRequest) -> JSONResponse:
    """Ours, and the model server's: 200 only where a chat can be had."""
    try:
        response = await upstream.send("GET", "/v1/models", b"", {})
    except TransportError as error:
        return JSONResponse({"status": "no model server", **error_object(str(error), "upstream_error")}, 503)
    response.close()
    if response.status != 200:
        message = f"the model server answers {response.status}"
        return JSONResponse({"status": "not ready", **error_object(message, "upstream_error")}, 503)
    return JSONResponse({"status": "ok", "upstream": upstream.endpoint.shown})
