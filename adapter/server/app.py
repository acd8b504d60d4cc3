"""Build the ASGI application: some routes translate requests, and the rest are passed through to the model server."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import secrets
import signal
import socket
import sys
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

from adapter.backends.endpoint_discovery import get_json, is_loopback_host, remove_password
from adapter.backends.template_files import TemplateWorker
from adapter.core.callback_checks import require_sync
from adapter.core.errors import TransportError, UsageError
from adapter.core.text.redaction import Redactor
from adapter.prompting.chat_template import ChatTemplate
from adapter.protocols.answer_translation import OpenAIWriter
from adapter.protocols.chat_request_translation import build_passthrough_request, needs_translation, remove_empty_tools
from adapter.protocols.openai_errors import build_error_object
from adapter.protocols.sse import encode_json
from adapter.protocols.translation_options import TranslationOptions
from adapter.server import routes_anthropic, routes_conversations, routes_models, routes_ollama, routes_responses
from adapter.server.access_control import AccessControl
from adapter.server.concurrency_limit import MAX_STREAMS, MAX_WAITING, ConcurrencyLimit
from adapter.server.error_responses import ErrorResponses
from adapter.server.graceful_shutdown import DRAIN_S, GracefulShutdown
from adapter.server.model_server import ModelServer
from adapter.server.passthrough import PassthroughResponse
from adapter.server.passthrough_rules import check_passthrough, normalize_path, remove_keys
from adapter.server.proxied_responses import CHAT, respond
from adapter.server.request_body import MemoryLimitedEndpoint, build_post_route, read_content, read_json_body
from adapter.server.response_store import ResponseStore
from adapter.server.telemetry.logs import RequestLogger, log_message, use_json_logs
from adapter.server.telemetry.middleware import TelemetryMiddleware
from adapter.server.telemetry.request_info import RequestObserver
from adapter.server.telemetry.setup import WORKERS_DIR, make_metrics, make_traces, require_packages
from adapter.server.translation_threads import COLLECTED, SWITCH_S
from adapter.server.upstream_connection import RETRY_S, SILENCE_S

if TYPE_CHECKING:
    import uvicorn

    from adapter.server.live_view import LiveView
    from adapter.server.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The options of `adapter serve`."""

    upstream: str
    """Base URL of the model server."""
    host: str = "127.0.0.1"
    port: int = 8090
    """The port; 0 selects a free one."""
    keep_alive_s: float = 5.0
    """Maximum time without output, in seconds. After that, the client gets a keepalive."""
    patience_s: float = SILENCE_S
    """Maximum time to wait for data from the model server, in seconds."""
    api_key: str | None = None
    """Key that clients must send. If it is None and other machines can reach the address, a key is generated."""
    options: TranslationOptions = field(default_factory=TranslationOptions)
    profile: str = "none"
    max_streams: int = MAX_STREAMS
    """Maximum number of concurrent requests to the model server."""
    max_waiting: int = MAX_WAITING
    """Maximum number of queued requests. Further requests are rejected."""
    stall_s: float = 60.0
    """Maximum time, in seconds, that a client may read nothing. After that, it is disconnected."""
    template: ChatTemplate | None = None
    """Chat template to use instead of the model's template."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may send requests, for example ``http://localhost:3000``."""
    trusted_hosts: tuple[str, ...] = ()
    """Additional host names that requests to a server on this machine may use."""
    retry_s: float = RETRY_S
    """Maximum time, in seconds, to retry requests while the model server is loading or busy."""
    store: Path | None = None
    """File for stored responses; None stores them in memory."""
    pass_admin: bool = False
    """True to pass all requests through to the model server, including administrative ones."""
    workers: int = 1
    """Number of processes that share the address. ``max_streams`` and ``max_waiting`` apply to each process."""
    drain_s: float = DRAIN_S
    """Maximum time, in seconds, that open requests may continue after SIGTERM."""
    metrics: bool = False
    """True to serve ``/metrics``."""
    traces: bool = False
    """True to send a span for each request to the endpoint in the ``OTEL_*`` variables."""
    log_json: bool = False
    """True to log JSON lines, with one line per request."""
    view: bool = False
    """True to serve the live view at ``/view/``."""
    view_key: str | None = None
    """Key for the live view if clients do not need an API key. None generates one."""


LM_STUDIO_CHAT = "/api/v0/chat/completions"
"""LM Studio's own path of the chat endpoint, which Zed uses."""


def _store(settings: ServerSettings) -> ResponseStore:
    if settings.workers > 1 and settings.store is None:
        return ResponseStore(max_bytes=0)  # the other workers would not find anything
    return ResponseStore(settings.store, Redactor(os.environ, [settings.api_key]))


UPSTREAM_CHECK_S = 1.0
"""Maximum time, in seconds, to wait for the model server at startup, before warning that it does not answer."""


def serve(settings: ServerSettings) -> None:
    """Run the server until it is interrupted. Raises UsageError if the address is in use or cannot be bound."""
    import uvicorn

    require_packages(settings.metrics, settings.traces)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again after the shutdown
    if settings.view and settings.workers > 1:
        raise UsageError(
            "--view cannot be combined with several workers, because each would show only its own exchanges: leave out "
            "--workers, or record with --record FILE and run `adapter view FILE`"
        )
    if not settings.host:
        raise UsageError(
            "--host is empty: expected a host name or address, such as 127.0.0.1, or 0.0.0.0 for all interfaces"
        )
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.create_server((settings.host, settings.port), backlog=1024, family=family)
    except OSError as error:
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        choose = (
            "--port (0 picks a free one)" if is_port else "--host (127.0.0.1: this machine only; 0.0.0.0: all networks)"
        )
        message = f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
        raise UsageError(f"{message}. Choose another {choose}.") from error
    _store(settings).close()  # create its tables once, and report an unusable file now
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    own = f"http://{host}:{listener.getsockname()[1]}/v1"
    if settings.log_json:
        use_json_logs()
    log_message(f"serving {own}, from {remove_password(settings.upstream)}")
    if get_json(f"{settings.upstream}/models", timeout_s=UPSTREAM_CHECK_S) is None:
        log_message(
            f"warning: no HTTP server answers at {remove_password(settings.upstream)}, so requests will fail. "
            "Start the model server, or choose another --upstream"
        )
    if settings.api_key is None and not is_loopback_host(settings.host):
        settings = replace(settings, api_key=secrets.token_urlsafe(24))
        log_message(f"this address is reachable from other machines; clients need this API key: {settings.api_key}")
    if settings.view:
        settings = replace(settings, view_key=settings.view_key or secrets.token_urlsafe(16))
        log_message(f"live view: {own.removesuffix('/v1')}{_build_view_path(settings)}")
    with listener:
        if settings.workers > 1:
            _serve_with_workers(settings, listener)
        else:
            uvicorn.Server(build_uvicorn_config(settings)).run(sockets=[listener])


def _build_view_path(settings: ServerSettings) -> str:
    """Return the path of the live view, with its key unless clients need an API key, which then also opens the view."""
    return "/view/" if settings.api_key else f"/view/?key={settings.view_key}"


def _serve_with_workers(settings: ServerSettings, listener: socket.socket) -> None:
    from uvicorn.supervisors import Multiprocess

    if settings.store is None:
        log_message("responses are not stored, because workers share no memory; pass --store FILE to store them")
    with TemporaryDirectory(prefix="adapter-metrics-") as folder:
        os.environ.setdefault("MALLOC_ARENA_MAX", "1")  # as `adapter.cli` does for its own process
        if settings.metrics:
            os.environ[WORKERS_DIR] = folder
        Multiprocess(build_uvicorn_config(settings), sockets=[listener]).run()


def build_uvicorn_config(settings: ServerSettings) -> uvicorn.Config:
    from uvicorn.config import LOGGING_CONFIG

    from adapter.server.http_limits import BoundedConfig

    return BoundedConfig(
        partial(_create_worker, settings),
        factory=True,
        ws="none",  # otherwise an installed library for WebSockets would be loaded
        workers=settings.workers,
        stall_s=settings.stall_s,
        log_level="warning",
        log_config=None if settings.log_json else LOGGING_CONFIG,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )


def _create_worker(settings: ServerSettings) -> ASGIApp:
    """Configure a worker process, and build its application."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()  # a collection that visits all loaded modules would delay all requests and free nothing
    gc.set_threshold(*COLLECTED)
    if settings.log_json:
        use_json_logs()
    return create_app(settings)


def create_app(settings: ServerSettings, *observers: RequestObserver) -> ASGIApp:
    """Build the ASGI application. ``observers`` are called in addition to those that ``settings`` enable."""
    for each in observers:
        require_sync(each.on_start, "the observer")
        require_sync(each.on_end, "the observer")
    metrics = make_metrics(settings.metrics)
    traces = make_traces(settings.traces, settings.upstream)
    observers = (
        *observers,
        *(each for each in (metrics, traces) if each),
        *([RequestLogger()] if settings.log_json else []),
    )
    limit = ConcurrencyLimit(settings.max_streams, settings.max_waiting, *([metrics.set_queue] if metrics else []))
    viewing = _make_live_view(settings, lambda: drain.has_begun)
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
        limit,
        template,
        retry_s=settings.retry_s,
        store=_store(settings),
    )

    drain: GracefulShutdown

    @asynccontextmanager
    async def manage_lifespan(_: ASGIApp) -> AsyncIterator[None]:
        drain.install()
        await upstream.open()
        startup_log = asyncio.create_task(asyncio.to_thread(upstream.detected.log_prompt_mode))
        yield
        startup_log.cancel()
        await upstream.close()
        if traces:
            traces.close()
        if viewing:
            viewing.live.close()

    chat = partial(_answer_chat, upstream, settings.keep_alive_s)
    pass_on = partial(_pass, upstream, settings.pass_admin)
    router = Router(
        routes=[
            *(build_post_route(path, upstream.work, chat) for path in (CHAT, "/chat/completions", LM_STUDIO_CHAT)),
            *routes_anthropic.list_routes(upstream, settings.keep_alive_s),
            *routes_responses.list_routes(upstream, settings.keep_alive_s),
            *routes_conversations.list_routes(upstream),
            *routes_ollama.list_routes(upstream, settings.keep_alive_s),
            *routes_models.list_routes(upstream, pass_on),
            Route("/health", partial(_answer_health, upstream)),
            Route("/ready", partial(_answer_ready, upstream, lambda: drain.has_begun)),
            *([Route("/metrics", partial(_answer_metrics, metrics))] if metrics else []),
            *(viewing.list_routes() if viewing else []),
            Route("/{path:path}", MemoryLimitedEndpoint(upstream.work, pass_on)),
        ],
        lifespan=manage_lifespan,
    )
    form = viewing.path if viewing else ""
    guarded = AccessControl(
        ErrorResponses(router),
        is_loopback_host(settings.host),
        settings.api_key,
        settings.origins,
        form,
        settings.trusted_hosts,
    )
    drain = GracefulShutdown(guarded, settings.drain_s, *([metrics.drain] if metrics else []))
    patterns = {route.endpoint: route.path for route in reversed(router.routes) if isinstance(route, Route)}
    return TelemetryMiddleware(drain, patterns, observers)


def _make_live_view(settings: ServerSettings, is_stopping: Callable[[], bool]) -> LiveView | None:
    if not settings.view:
        return None
    from adapter.recording.view.live_exchanges import LiveExchanges
    from adapter.server.live_view import LiveView

    key = settings.api_key or settings.view_key or secrets.token_urlsafe(16)
    live = LiveExchanges(Redactor(os.environ, [settings.api_key, settings.view_key]))
    return LiveView(live, remove_password(settings.upstream), key, is_stopping)


async def _answer_chat(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    content, given = await read_json_body(http, upstream.work)
    if (body := remove_empty_tools(given)) is not given:
        content = encode_json(body)
    if needs_translation(body, upstream.options):
        options = await upstream.find_options(body)
        request = await upstream.translate(body, options, len(content))
    elif await upstream.leaves_markup(body):
        found = (await upstream.find_server_info()).options
        options = replace(upstream.options, budgets=found.budgets, kind=found.kind, rejected=found.rejected)
        request = await upstream.work.run(len(content), partial(build_passthrough_request, body, options))
    else:
        writer = OpenAIWriter() if body.get("stream") is True else None
        content, shortened = await upstream.fit(content, body)
        return PassthroughResponse(
            upstream, "POST", CHAT, content, http.headers, keep_alive_s, writer, shortened=shortened
        )
    return respond(upstream, request, keep_alive_s)


async def _pass(upstream: ModelServer, admin: bool, http: HttpRequest) -> ASGIApp:
    query = remove_keys(http.url.query)
    path, raw_path = http.scope["path"], http.scope["raw_path"].decode("latin-1")
    *routes, _ = http.scope["router"].routes
    served = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    check_passthrough(http.method, path, served, admin=admin)
    target = (raw_path if admin else normalize_path(raw_path)) + (f"?{query}" if query else "")
    content = await read_content(http)
    return PassthroughResponse(upstream, http.method, target, content, http.headers)


async def _answer_health(upstream: ModelServer, _: HttpRequest) -> JSONResponse:
    """Return 200 as long as this process runs."""
    return JSONResponse(
        {"status": "ok", "upstream": upstream.endpoint.display_url, "left_out": dict(upstream.dropped.counts)}
    )


async def _answer_metrics(metrics: Metrics, _: HttpRequest) -> Response:
    return Response(await asyncio.to_thread(metrics.render_text), media_type=metrics.content_type)


async def _answer_ready(upstream: ModelServer, is_draining: Callable[[], bool], _: HttpRequest) -> JSONResponse:
    """Return 200 if the model server answers and no shutdown has begun."""
    if is_draining():
        return JSONResponse(
            {"status": "draining", **build_error_object("this server is shutting down", "overloaded_error")}, 503
        )
    try:
        response = await upstream.send("GET", "/v1/models", b"", {})
    except TransportError as error:
        return JSONResponse({"status": "no model server", **build_error_object(str(error), "upstream_error")}, 503)
    response.close()
    if response.status != 200:
        message = f"the model server returned {response.status}"
        return JSONResponse({"status": "not ready", **build_error_object(message, "upstream_error")}, 503)
    return JSONResponse({"status": "ready", "upstream": upstream.endpoint.display_url})
