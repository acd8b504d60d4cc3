"""Deploy `adapter serve` on Ray: replicas in front of model servers, with sticky conversations.

::

    serve run adapter.integrations.ray_serve:app upstream=http://127.0.0.1:8080
    serve deploy config.yaml    # import_path: adapter.integrations.ray_serve:app, args: see `RayServeConfig`

Ray scales and restarts two deployments: `Ingress` receives a request, determines its conversation, and calls a
`ServerReplica`, which runs the ASGI application of `adapter.server`. Ray chooses the replica by a consistent hash of
the conversation (`ConsistentHashRouter`, as of Ray 2.60). The replica chooses among several model servers by rendezvous
hashing, so that their prompt caches stay useful when replicas change. The conversation is identified by the header
``x-session-id`` or the body's ``prompt_cache_key``, else by the model and the first user message.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from ray import serve
from ray.exceptions import RayError
from ray.serve.config import RequestRouterConfig
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Scope

from adapter.backends.endpoint_discovery import build_api_url, is_loopback_host
from adapter.backends.template_files import load_chat_template
from adapter.core.errors import UsageError
from adapter.core.events import Json
from adapter.core.validation_errors import explain_validation_error
from adapter.integrations.asgi_host import Head, call_app, run_lifespan
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.openai_errors import build_error_object
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.protocols.translation_options import SHARED_SETTINGS, build_options
from adapter.server.app import ServerSettings, create_app
from adapter.server.request_body import MAX_BODY_BYTES, read_content

SESSION = "x-session-id"
"""Ray's session header. The environment variable ``RAY_SERVE_SESSION_ID_HEADER_KEY`` changes its name."""
REPLICA = "x-adapter-replica"
"""Response header with the id of the replica."""
REPLICA_LOST = "the server replica ended during its answer; please retry"

_log = logging.getLogger(__name__)


class RayServeConfig(BaseModel):
    """Arguments of the application, named like the options of `adapter serve`.

    ``upstream`` has the base URLs of model servers with the same model, as a list or separated by commas. Clients reach
    the cluster at ``host``, a name or address. Unless it is loopback, ``api_key`` or ``ADAPTER_API_KEY`` is required.
    """

    model_config = ConfigDict(extra="forbid")

    upstream: list[str] = Field(min_length=1)
    host: str = "127.0.0.1"
    api_key: str | None = None
    format: str = "auto"
    style: str | None = None
    prompt: str = "auto"
    template: Path | None = None
    policy: str = "safe"
    constraint: str = "auto"
    guide: str = "auto"
    max_tools: int | None = None
    context_budget: int | Literal["auto"] | None = None
    reasoning_budget: int | None = None
    guardrails: str = "on"
    retries: int = 2
    profile: str = "auto"
    max_streams: int = 256
    max_waiting: int = 1024
    stream_arguments: bool = False
    patience: float = 600.0
    keep_alive: float = 5.0

    @field_validator("upstream", mode="before")
    @classmethod
    def _split_upstreams(cls, value: Json) -> Json:
        return [item.strip() for item in value.split(",")] if isinstance(value, str) else value

    def build_settings(self, upstream: str) -> ServerSettings:
        """Return the settings for one model server. Raises UsageError if a setting is invalid."""
        shared = self.model_dump(include={*SHARED_SETTINGS})
        limits = RetryPolicy(clock=monotonic)
        options = build_options(**shared, context_budget=self.context_budget, limits=limits)
        return ServerSettings(
            build_api_url(upstream),
            self.host,
            keep_alive_s=self.keep_alive,
            patience_s=self.patience,
            api_key=self.api_key or os.environ.get("ADAPTER_API_KEY"),
            options=options,
            profile=self.profile,
            max_streams=self.max_streams,
            max_waiting=self.max_waiting,
            template=load_chat_template(self.template) if self.template else None,
        )


def app(args: Mapping[str, Json]) -> serve.Application:
    """Build the application from the arguments for `RayServeConfig`. Raises UsageError if they are invalid."""
    try:
        config = RayServeConfig.model_validate(dict(args))
    except ValidationError as error:
        raise UsageError(
            f"{explain_validation_error(error)}; adapter.integrations.ray_serve.RayServeConfig has {_ARGUMENT_NAMES}"
        ) from error
    settings = config.build_settings(config.upstream[0])
    if not is_loopback_host(config.host) and settings.api_key is None:
        raise UsageError(f"host {config.host!r} is reachable from other machines; set api_key or ADAPTER_API_KEY")
    proxy = ServerReplica.bind(config.model_dump(mode="json"))  # type: ignore[attr-defined]  # of a deployment
    return Ingress.bind(proxy)  # type: ignore[attr-defined]


_ARGUMENT_NAMES = ", ".join(RayServeConfig.model_fields)

_AUTOSCALING: dict[str, Any] = {"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 64}
"""Default autoscaling options for both deployments. A configuration file can override them."""


@serve.deployment(
    max_ongoing_requests=512,
    autoscaling_config=_AUTOSCALING,
    graceful_shutdown_timeout_s=600,
    request_router_config=RequestRouterConfig(
        request_router_class="ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
    ),
)
class ServerReplica:
    """A server application for each model server. Ray routes all requests of a conversation to the same replica."""

    async def __init__(self, config: Mapping[str, Json]) -> None:  # type: ignore[misc]  # Ray awaits it
        parsed = RayServeConfig.model_validate(dict(config))
        self._exit_stack = AsyncExitStack()
        self._apps: dict[str, ASGIApp] = {}
        for upstream in parsed.upstream:
            self._apps[upstream] = create_app(parsed.build_settings(upstream))
            await self._exit_stack.enter_async_context(run_lifespan(self._apps[upstream]))
        self._name = serve.get_replica_context().replica_id.unique_id.encode()

    async def answer(self, scope: Scope, body: bytes, conversation: str) -> AsyncIterator[Head | bytes]:
        """Yield the status and headers, then the body in chunks."""
        async with aclosing(call_app(self._apps[_choose_upstream(conversation, self._apps)], scope, body)) as pieces:
            async for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece
                else:
                    status, headers = piece
                    yield status, [*headers, (REPLICA.encode(), self._name)]


@serve.deployment(max_ongoing_requests=512, autoscaling_config=_AUTOSCALING, graceful_shutdown_timeout_s=600)
class Ingress:
    """Receive requests, and forward each to the replica that has its conversation."""

    def __init__(self, replica: Any) -> None:
        self._replica = replica.options(method_name="answer", stream=True)

    async def __call__(self, http: Request) -> Response:
        try:
            body = await read_content(http)
        except RequestError as error:
            return JSONResponse(build_error_body(error), error.status)
        except ClientDisconnect:
            return Response(status_code=499)
        conversation = build_conversation_key(http.headers, body)
        scope = {key: http.scope[key] for key in _SCOPE}
        for is_last in (False, True):
            pieces = aiter(self._replica.options(session_id=conversation).remote(scope, body, conversation))
            try:
                status, headers = await anext(pieces)
                break
            except RayError as error:  # nothing was sent yet, so another replica can answer
                _log.warning("a replica ended before it answered: %s", error)
                if is_last:
                    return JSONResponse(build_error_object(REPLICA_LOST, "upstream_error"), 503, {"retry-after": "1"})
        answer = StreamingResponse(_relay_body(pieces, _is_stream(headers)), status)
        answer.raw_headers = list(headers)
        return answer


_SCOPE = (
    "method", "path", "raw_path", "query_string", "headers", "root_path", "scheme", "http_version", "client", "server",
)  # fmt: skip


async def _relay_body(pieces: AsyncIterator[bytes], is_stream: bool) -> AsyncIterator[bytes]:
    """Yield the body. If the replica ends too early, an error event ends a stream, and any other body is cut off."""
    try:
        async for piece in pieces:
            yield piece
    except RayError as error:
        _log.warning("a replica ended in the middle of an answer: %s", error)
        if not is_stream:
            raise
        yield b"\n\ndata: " + json.dumps(build_error_object(REPLICA_LOST, "upstream_error")).encode() + b"\n\n"


def _is_stream(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


def build_conversation_key(headers: Mapping[str, str], body: bytes) -> str:
    """Return a key that identifies the conversation, or "" if the request belongs to none (such as listing models)."""
    if session := headers.get(SESSION):
        return session
    try:
        request_body = json.loads(body) if len(body) <= MAX_BODY_BYTES else None
    except (ValueError, RecursionError):
        return ""
    if not isinstance(request_body, dict):
        return ""
    if isinstance(session := request_body.get("prompt_cache_key"), str) and session:
        return session
    user_message = _find_first_user_message(
        request_body.get("messages") or request_body.get("input") or request_body.get("prompt")
    )
    return (
        blake2b(json.dumps([request_body.get("model"), user_message]).encode(), digest_size=16).hexdigest()
        if user_message
        else ""
    )


def _find_first_user_message(value: Json) -> Json:
    """Return the first user message. Unlike the system message, it does not change during a conversation."""
    if not isinstance(value, list):
        return value
    return next((item.get("content") for item in value if isinstance(item, dict) and item.get("role") == "user"), None)


def _choose_upstream(conversation: str, upstreams: Mapping[str, object]) -> str:
    """Choose the model server for a conversation by rendezvous hashing."""
    return max(upstreams, key=lambda item: blake2b(f"{conversation}\0{item}".encode(), digest_size=8).digest())
