"""`adapter serve` as a deployment on Ray: replicas in front of model servers, a conversation always at the same ones.

::

    serve run adapter.integrations.ray_serve:app upstream=http://127.0.0.1:8080
    serve deploy config.yaml                        # import_path: adapter.integrations.ray_serve:app, args: see `RayServeConfig`

Two deployments, which Ray scales and restarts: `Ingress` takes a request, sees which conversation it is of, and asks a
`ServerReplica`, which is the ASGI application of `adapter.server`. Which replica that is Ray decides, by its consistent hash of
the conversation (`ConsistentHashRouter`, as of Ray 2.60); which of several model servers, rendezvous hashing in
the replica, so that a model server's prompt cache holds also when replicas come and go. A conversation is what the
header ``x-session-id`` or the body's ``prompt_cache_key`` says, or else the model and the user's first words.
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
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from ray import serve
from ray.exceptions import RayError
from ray.serve.config import RequestRouterConfig
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Scope

from adapter.backends.endpoint_discovery import api_url
from adapter.backends.template_files import load_chat_template
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.core.errors import UsageError
from adapter.core.events import Json
from adapter.core.validation import explain
from adapter.grammars.constraint_mode import parse_constraint_mode
from adapter.integrations.asgi_host import Head, call_app, run_lifespan
from adapter.protocols.guarded_exchange import RetryPolicy
from adapter.protocols.openai_errors import RequestError, error_object, refusal
from adapter.protocols.translation_options import (
    ConstraintSettings,
    PromptSettings,
    TranslationOptions,
    validate_options,
)
from adapter.server.app import ServerSettings, create_app, is_loopback_host
from adapter.server.request_body import MAX_BODY_BYTES, read_content

SESSION = "x-session-id"
"""The header that Ray itself goes by, unless ``RAY_SERVE_SESSION_ID_HEADER_KEY`` names another."""
REPLICA = "x-adapter-replica"
"""The header of an answer that says which replica made it."""
LOST = "the replica that was answering has ended, and with it this answer; ask again"

_log = logging.getLogger(__name__)


class RayServeConfig(BaseModel):
    """The arguments of the application, by the names of `adapter serve`'s options. ``upstream``: one base URL, or
    several servers of the same model, as a list or with commas between. ``host``: as which clients know the cluster:
    with another than this machine's they need a key, ``api_key`` or ``ADAPTER_API_KEY``."""

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
    def _as_list(cls, given: Json) -> Json:
        return [each.strip() for each in given.split(",")] if isinstance(given, str) else given

    def settings(self, upstream: str) -> ServerSettings:
        """Of the server in front of one of the model servers. Raises UsageError for what does not exist."""
        options = TranslationOptions(
            prompt=PromptSettings(
                format=None if self.format == "auto" else self.format,
                style=self.style,
                mode=self.prompt,
                max_tools=self.max_tools,
            ),
            constraints=ConstraintSettings(
                mode=parse_constraint_mode(None if self.constraint == "auto" else self.constraint)
            ),
            policy=self.policy,
            stream_arguments=self.stream_arguments,
            guide=self.guide,
            retry_policy=RetryPolicy(parse_guardrails(self.guardrails), self.retries, clock=monotonic),
        )
        return ServerSettings(
            api_url(upstream),
            self.host,
            keep_alive_s=self.keep_alive,
            patience_s=self.patience,
            api_key=self.api_key or os.environ.get("ADAPTER_API_KEY"),
            options=validate_options(options),
            profile=self.profile,
            max_streams=self.max_streams,
            max_waiting=self.max_waiting,
            template=load_chat_template(self.template) if self.template else None,
        )


def app(args: Mapping[str, Json]) -> serve.Application:
    """The application; ``args`` are those of `RayServeConfig`. Raises UsageError for others."""
    try:
        config = RayServeConfig.model_validate(dict(args))
    except ValidationError as error:
        raise UsageError(f"{explain(error)}; adapter.integrations.ray_serve.RayServeConfig has {_NAMES}") from error
    made = config.settings(config.upstream[0])
    if not is_loopback_host(config.host) and made.api_key is None:
        raise UsageError(f"host {config.host!r} is reached by others: set api_key, or ADAPTER_API_KEY")
    proxy = ServerReplica.bind(config.model_dump(mode="json"))  # type: ignore[attr-defined]  # of a deployment
    return Ingress.bind(proxy)  # type: ignore[attr-defined]


_NAMES = ", ".join(RayServeConfig.model_fields)

_SCALED: dict[str, Any] = {"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 64}
"""What a configuration file may say otherwise, for each of the two."""


@serve.deployment(
    max_ongoing_requests=512,
    autoscaling_config=_SCALED,
    graceful_shutdown_timeout_s=600,
    request_router_config=RequestRouterConfig(
        request_router_class="ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
    ),
)
class ServerReplica:
    """Our server, one for each model server. Ray sends it all requests of a conversation, and other work beside."""

    async def __init__(self, config: Mapping[str, Json]) -> None:  # type: ignore[misc]  # Ray awaits it
        given = RayServeConfig.model_validate(dict(config))
        self._alive = AsyncExitStack()
        self._apps: dict[str, ASGIApp] = {}
        for upstream in given.upstream:
            made = create_app(given.settings(upstream))
            await self._alive.enter_async_context(run_lifespan(made))
            self._apps[upstream] = made
        self._name = serve.get_replica_context().replica_id.unique_id.encode()

    async def answer(self, scope: Scope, body: bytes, conversation: str) -> AsyncIterator[Head | bytes]:
        """Status and headers, then the body in pieces."""
        async with aclosing(call_app(self._apps[_nearest(conversation, self._apps)], scope, body)) as pieces:
            async for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece
                else:
                    status, headers = piece
                    yield status, [*headers, (REPLICA.encode(), self._name)]


@serve.deployment(max_ongoing_requests=512, autoscaling_config=_SCALED, graceful_shutdown_timeout_s=600)
class Ingress:
    """Takes requests, and asks the replica of each one's conversation."""

    def __init__(self, proxy: Any) -> None:
        self._proxy = proxy.options(method_name="answer", stream=True)

    async def __call__(self, http: Request) -> Response:
        try:
            body = await read_content(http)
        except RequestError as error:
            return JSONResponse(refusal(error), error.status)
        except ClientDisconnect:
            return Response(status_code=499)
        conversation = conversation_key(http.headers, body)
        scope = {key: http.scope[key] for key in _SCOPE}
        for is_last in (False, True):
            pieces = aiter(self._proxy.options(session_id=conversation).remote(scope, body, conversation))
            try:
                status, headers = await anext(pieces)
                break
            except RayError as error:  # nothing has been said yet: another replica answers as well
                _log.warning("a replica ended before it answered: %s", error)
                if is_last:
                    return JSONResponse(error_object(LOST, "upstream_error"), 503, {"retry-after": "1"})
        answer = StreamingResponse(_whole(pieces, _is_stream(headers)), status)
        answer.raw_headers = list(headers)
        return answer


_SCOPE = (
    "method", "path", "raw_path", "query_string", "headers", "root_path", "scheme", "http_version", "client", "server",
)  # fmt: skip


async def _whole(pieces: AsyncIterator[bytes], is_stream: bool) -> AsyncIterator[bytes]:
    """The body; where the replica ends in the middle, a stream says so, and all else is visibly broken off."""
    try:
        async for piece in pieces:
            yield piece
    except RayError as error:
        _log.warning("a replica ended in the middle of an answer: %s", error)
        if not is_stream:
            raise
        yield b"\n\ndata: " + json.dumps(error_object(LOST, "upstream_error")).encode() + b"\n\n"


def _is_stream(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


def conversation_key(headers: Mapping[str, str], body: bytes) -> str:
    """What tells a conversation from others; "" for a request that is of none, a list of models say."""
    if told := headers.get(SESSION):
        return told
    try:
        asked = json.loads(body) if len(body) <= MAX_BODY_BYTES else None
    except (ValueError, RecursionError):
        return ""
    if not isinstance(asked, dict):
        return ""
    if isinstance(told := asked.get("prompt_cache_key"), str) and told:
        return told
    words = _first_words(asked.get("messages") or asked.get("input") or asked.get("prompt"))
    return blake2b(json.dumps([asked.get("model"), words]).encode(), digest_size=16).hexdigest() if words else ""


def _first_words(given: Json) -> Json:
    """What the user says first: it stays while a conversation grows, and what a system message tells may not."""
    if not isinstance(given, list):
        return given
    return next((each.get("content") for each in given if isinstance(each, dict) and each.get("role") == "user"), None)


def _nearest(conversation: str, upstreams: Mapping[str, object]) -> str:
    """The model server of a conversation, which another one more or less leaves to most (rendezvous hashing)."""
    return max(upstreams, key=lambda each: blake2b(f"{conversation}\0{each}".encode(), digest_size=8).digest())
