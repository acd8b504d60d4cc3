"""The server's routes: what is ours is translated, all else is the model server's."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from adapter.backends.endpoint_discovery import Endpoint, get_json, without_password
from adapter.backends.template_files import TemplateWorker
from adapter.core.callbacks import require_sync
from adapter.core.errors import TransportError, UsageError
from adapter.core.text.redaction import Redactor
from adapter.prompting.chat_template import ChatTemplate
from adapter.protocols.exchange import BufferedExchange, OpenAIWriter, StreamedExchange
from adapter.protocols.openai_errors import RequestError, error_object, refusal
from adapter.protocols.translate import needs_translation, passthrough_request, translate_chat_request
from adapter.protocols.translation_options import TranslationOptions
from adapter.server import routes_anthropic, routes_conversations, routes_ollama, routes_responses
from adapter.server.access_control import AccessControl
from adapter.server.concurrency_limit import MAX_STREAMS, MAX_WAITING, ConcurrencyLimit
from adapter.server.error_formats import error_format_for
from adapter.server.graceful_shutdown import DRAIN_S, GracefulShutdown
from adapter.server.model_server import ModelServer
from adapter.server.passthrough import PassedThrough
from adapter.server.passthrough_rules import METHOD_NOT_ALLOWED, check_passing, without_keys
from adapter.server.request_body import read_content, read_json_body, with_memory_budget
from adapter.server.response_store import ResponseStore
from adapter.server.streaming_responses import TranslatedResponse, TranslatedStream, identity
from adapter.server.telemetry.logs import RequestLogger, log_message, use_json_logs
from adapter.server.telemetry.middleware import TelemetryMiddleware
from adapter.server.telemetry.request_info import RequestObserver
from adapter.server.telemetry.setup import WORKERS_DIR, make_metrics, make_traces, require_packages
from adapter.server.upstream_connection import SILENCE_S
from adapter.server.upstream_retry import RETRY_S
from adapter.server.work_queue import COLLECTED, SWITCH_S

if TYPE_CHECKING:
    import uvicorn

    from adapter.server.live_view import LiveView
    from adapter.server.telemetry.metrics import Metrics

CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """``upstream``: base URL of the model server. ``port``: 0 takes a free one. ``api_key``: what clients must show;
    beyond this machine one is made where none is given."""

    upstream: str
    host: str = "127.0.0.1"
    port: int = 8090
    keep_alive_s: float = 5.0
    """The longest silence of ours."""
    patience_s: float = SILENCE_S
    """The longest silence of the model server."""
    api_key: str | None = None
    options: TranslationOptions = field(default_factory=TranslationOptions)
    profile: str = "none"
    max_streams: int = MAX_STREAMS
    """Requests that the model server is given at a time."""
    max_waiting: int = MAX_WAITING
    """Requests that wait for their turn; one more is refused."""
    stall_s: float = 60.0
    """How long a client may take nothing of its answer."""
    template: ChatTemplate | None = None
    """The chat template that the user names."""
    origins: tuple[str, ...] = ()
    """Of pages that may ask, ``http://localhost:3000`` say."""
    retry_s: float = RETRY_S
    """How long a model server that is loading or busy is asked again."""
    store: Path | None = None
    """The file of the answers that clients come back to; None keeps them in memory."""
    pass_admin: bool = False
    """Pass on whatever is not ours, and not only requests to the server's models."""
    workers: int = 1
    """Processes that share the address; each has ``max_streams`` and ``max_waiting`` of its own."""
    drain_s: float = DRAIN_S
    """How long answers may go on after SIGTERM."""
    metrics: bool = False
    """Answer ``/metrics``."""
    traces: bool = False
    """Send a span for each request where the ``OTEL_*`` variables say."""
    log_json: bool = False
    """Say everything in lines of JSON, and one for each request."""
    view: bool = False
    """Show exchanges on a page at ``/view/``."""
    view_key: str | None = None
    """What that page asks for where clients need no key; made up when left out."""


def _store(settings: ServerSettings) -> ResponseStore:
    if settings.workers > 1 and settings.store is None:
        return ResponseStore(max_bytes=1)  # keeps nothing: what one worker keeps the others would not find
    return ResponseStore(settings.store, Redactor(os.environ, [settings.api_key]))


UPSTREAM_CHECK_S = 1.0
"""How long the start waits for the model server, to report one that does not answer."""


def serve(settings: ServerSettings) -> None:
    """Serve until interrupted. Raises UsageError where the address cannot be had."""
    import uvicorn

    require_packages(settings.metrics, settings.traces)
    if settings.view and settings.workers > 1:
        raise UsageError(
            "each of several workers would show its own exchanges: leave out --workers, or take --record FILE, "
            "in which all of them write, and `adapter view FILE`"
        )
    if not settings.host:
        raise UsageError("--host is empty; expected a name or an address: 127.0.0.1, or 0.0.0.0 for all of a network")
    try:
        listener = socket.create_server((settings.host, settings.port), backlog=1024, family=_family(settings.host))
    except OSError as error:
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        choose = "--port (0: any)" if is_port else "--host (127.0.0.1: this machine alone, 0.0.0.0: all of a network)"
        said = f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
        raise UsageError(f"{said}. Choose another {choose}.") from error
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    own = f"http://{host}:{listener.getsockname()[1]}/v1"
    if settings.log_json:
        use_json_logs()
    log_message(f"serving {own}, from {without_password(settings.upstream)}")
    if get_json(f"{settings.upstream}/models", UPSTREAM_CHECK_S) is None:
        log_message(
            f"warning: no HTTP server answers at {without_password(settings.upstream)}; requests fail until one does. "
            "Start it, or choose another --upstream"
        )
    if settings.api_key is None and not is_loopback_host(settings.host):
        settings = replace(settings, api_key=secrets.token_urlsafe(24))
        log_message(f"others can reach this address; clients need this key: {settings.api_key}")
    if settings.view:
        settings = replace(settings, view_key=settings.view_key or secrets.token_urlsafe(16))
        log_message(f"to see: {own.removesuffix('/v1')}{_view_of(settings)}")
    with listener:
        if settings.workers > 1:
            _serve_with_workers(settings, listener)
        else:
            uvicorn.Server(uvicorn_config(settings)).run(sockets=[listener])


def _view_of(settings: ServerSettings) -> str:
    """The path of the page; with its key where that is none of the clients'."""
    return "/view/" if settings.api_key else f"/view/?key={settings.view_key}"


def _serve_with_workers(settings: ServerSettings, listener: socket.socket) -> None:
    from uvicorn.supervisors import Multiprocess

    if settings.store is None:
        log_message(
            "answers of /v1/responses are not kept, for each worker would have its own: --store FILE keeps them"
        )
    _store(settings).close()  # its tables are made once, and what is wrong with the file is said here
    with TemporaryDirectory(prefix="adapter-metrics-") as folder:
        os.environ.setdefault("MALLOC_ARENA_MAX", "1")  # as the command does for itself
        if settings.metrics:
            os.environ[WORKERS_DIR] = folder
        Multiprocess(uvicorn_config(settings), sockets=[listener]).run()


def uvicorn_config(settings: ServerSettings) -> uvicorn.Config:
    from uvicorn.config import LOGGING_CONFIG

    from adapter.server.http_protocol import BoundedConfig

    return BoundedConfig(
        partial(_worker, settings),
        factory=True,
        workers=settings.workers,
        stall_s=settings.stall_s,
        log_level="warning",
        log_config=None if settings.log_json else LOGGING_CONFIG,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )


def _worker(settings: ServerSettings) -> ASGIApp:
    """`application`, in the process that serves it."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()  # a collection of all that is loaded keeps everybody waiting, and finds nothing
    gc.set_threshold(*COLLECTED)
    if settings.log_json:
        use_json_logs()
    return create_app(settings)


def is_loopback_host(host: str) -> bool:
    """Whether only this machine reaches the address."""
    return Endpoint(f"http://[{host}]" if ":" in host else f"http://{host}").is_local


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def create_app(settings: ServerSettings, *observers: RequestObserver) -> ASGIApp:
    """The server as an ASGI application. ``observers``: of requests, besides those that ``settings`` asks for."""
    for each in observers:
        require_sync(each.begun, "the observer")
        require_sync(each.ended, "the observer")
    metrics = make_metrics(settings.metrics)
    traces = make_traces(settings.traces, settings.upstream)
    observers = (
        *observers,
        *(each for each in (metrics, traces) if each),
        *([RequestLogger()] if settings.log_json else []),
    )
    places = ConcurrencyLimit(settings.max_streams, settings.max_waiting, *([metrics.places] if metrics else []))
    viewing = _viewing(settings, lambda: drain.has_begun)
    observation = replace(
        settings.options.observation,
        counts_tokens=bool(observers or viewing),
        listen=viewing.live.listen if viewing else None,
    )
    options = replace(settings.options, observation=observation)
    template = TemplateWorker(settings.template) if settings.template else None
    upstream = ModelServer(
        settings.upstream,
        options,
        settings.patience_s,
        settings.profile,
        places,
        template,
        retry_s=settings.retry_s,
        store=_store(settings),
    )

    drain: GracefulShutdown

    @asynccontextmanager
    async def life(_: ASGIApp) -> AsyncIterator[None]:
        drain.watch()
        await upstream.open()
        saying = asyncio.create_task(asyncio.to_thread(upstream.log_prompt_mode))
        yield
        saying.cancel()
        await upstream.close()
        if traces:
            traces.close()
        if viewing:
            viewing.live.close()

    chat = with_memory_budget(upstream.work, partial(_chat, upstream, settings.keep_alive_s))
    router = Router(
        routes=[
            Route(CHAT, chat, methods=["POST"]),
            Route("/chat/completions", chat, methods=["POST"]),
            *routes_anthropic.routes(upstream, settings.keep_alive_s),
            *routes_responses.routes(upstream, settings.keep_alive_s),
            *routes_conversations.routes(upstream),
            *routes_ollama.routes(upstream, settings.keep_alive_s),
            Route("/health", partial(_health, upstream)),
            Route("/ready", partial(_ready, upstream, lambda: drain.has_begun)),
            *([Route("/metrics", partial(_metrics, metrics))] if metrics else []),
            *(viewing.routes() if viewing else []),
            Route("/{path:path}", partial(_pass, upstream, settings.pass_admin), methods=_METHODS),
        ],
        lifespan=life,
    )
    form = viewing.path if viewing else ""
    guarded = AccessControl(router, is_loopback_host(settings.host), settings.api_key, settings.origins, form)
    drain = GracefulShutdown(guarded, settings.drain_s, *([metrics.drain] if metrics else []))
    patterns = {route.endpoint: route.path for route in reversed(router.routes) if isinstance(route, Route)}
    return TelemetryMiddleware(drain, patterns, observers)


def _viewing(settings: ServerSettings, is_stopping: Callable[[], bool]) -> LiveView | None:
    if not settings.view:
        return None
    from adapter.recording.view.live_feed import LiveExchanges
    from adapter.server.live_view import LiveView

    key = settings.api_key or settings.view_key or secrets.token_urlsafe(16)
    live = LiveExchanges(Redactor(os.environ, [settings.api_key, settings.view_key]))
    return LiveView(live, without_password(settings.upstream), key, is_stopping)


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]


async def _chat(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    try:
        content, body = await read_json_body(http, upstream.work)
        if needs_translation(body):
            options = await upstream.options_for(body)
            request = await upstream.work.run(len(content), partial(translate_chat_request, body, options))
        elif await upstream.leaves_markup(body):
            request = await upstream.work.run(len(content), partial(passthrough_request, body, upstream.options))
        else:
            writer = OpenAIWriter() if body.get("stream") is True else None
            return PassedThrough(upstream, "POST", CHAT, content, http.headers, identity, keep_alive_s, writer)
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)
    if request.client.stream:
        streamed = StreamedExchange(request, int(time.time()))
        return TranslatedStream(upstream, CHAT, request, streamed, identity, keep_alive_s)
    return TranslatedResponse(upstream, CHAT, request, BufferedExchange(request))


async def _pass(upstream: ModelServer, admin: bool, http: HttpRequest) -> ASGIApp:
    query = without_keys(http.url.query)
    path = http.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    as_error = error_format_for(http.scope["path"])
    try:
        check_passing(http.method, http.scope["path"], admin=admin)
        content = await read_content(http)
    except RequestError as error:
        allowed = {"Allow": "POST"} if error.status == METHOD_NOT_ALLOWED else None
        return JSONResponse(as_error(refusal(error), error.status), error.status, allowed)
    return PassedThrough(upstream, http.method, path, content, http.headers, as_error)


async def _health(upstream: ModelServer, _: HttpRequest) -> JSONResponse:
    """200 as long as this process answers."""
    return JSONResponse(
        {"status": "ok", "upstream": upstream.endpoint.display_url, "left_out": dict(upstream.left_out.counts)}
    )


async def _metrics(metrics: Metrics, _: HttpRequest) -> Response:
    return Response(await asyncio.to_thread(metrics.text), media_type=metrics.content_type)


async def _ready(upstream: ModelServer, is_draining: Callable[[], bool], _: HttpRequest) -> JSONResponse:
    """200 only where a chat can be had here."""
    if is_draining():
        return JSONResponse({"status": "draining", **error_object("this server stops", "overloaded_error")}, 503)
    try:
        response = await upstream.send("GET", "/v1/models", b"", {})
    except TransportError as error:
        return JSONResponse({"status": "no model server", **error_object(str(error), "upstream_error")}, 503)
    response.close()
    if response.status != 200:
        message = f"the model server answers {response.status}"
        return JSONResponse({"status": "not ready", **error_object(message, "upstream_error")}, 503)
    return JSONResponse({"status": "ready", "upstream": upstream.endpoint.display_url})
