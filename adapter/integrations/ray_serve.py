"""Deploy `adapter serve` on Ray. All requests of a conversation go to the same replica and model server.

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
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any

from ray import serve
from ray.exceptions import RayError
from ray.serve.config import RequestRouterConfig
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Scope

from adapter.core.events import Json
from adapter.integrations.asgi_host import Head, call_app, run_lifespan
from adapter.integrations.ray_serve_config import RayServeConfig, build_conversation_key, choose_upstream, load_config
from adapter.protocols.openai_errors import build_error_object
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.server.app import create_app
from adapter.server.request_body import read_content

REPLICA = "x-adapter-replica"
"""Response header with the id of the replica."""
REPLICA_LOST = "the server replica ended during its answer; please retry"
"""Error message for an answer whose replica was lost."""

_log = logging.getLogger(__name__)


def app(args: Mapping[str, Json]) -> serve.Application:
    """Build the application from the arguments for `RayServeConfig`. Raises UsageError if they are invalid."""
    config = load_config(args)
    proxy = ServerReplica.bind(config.model_dump(mode="json"))  # type: ignore[attr-defined]  # of a deployment
    return Ingress.bind(proxy)  # type: ignore[attr-defined]


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
        async with aclosing(call_app(self._apps[choose_upstream(conversation, self._apps)], scope, body)) as pieces:
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
