"""Parse the arguments of the Ray deployment, and choose a model server for a conversation, without importing Ray."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from adapter.backends.endpoint_discovery import build_api_url, is_loopback_host
from adapter.backends.template_files import load_chat_template
from adapter.core.errors import UsageError
from adapter.core.events import Json
from adapter.core.validation_errors import explain_validation_error
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.translation_options import SHARED_SETTINGS, build_options
from adapter.server.app import ServerSettings
from adapter.server.request_body import MAX_BODY_BYTES

SESSION = "x-session-id"
"""Ray's session header. The environment variable ``RAY_SERVE_SESSION_ID_HEADER_KEY`` changes its name."""


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


def load_config(args: Mapping[str, Json]) -> RayServeConfig:
    """Validate the arguments. Raises UsageError if they are invalid."""
    try:
        config = RayServeConfig.model_validate(dict(args))
    except ValidationError as error:
        raise UsageError(
            f"{explain_validation_error(error)}; the fields of adapter.integrations.ray_serve.RayServeConfig are "
            f"{', '.join(RayServeConfig.model_fields)}"
        ) from error
    settings = config.build_settings(config.upstream[0])
    if not is_loopback_host(config.host) and settings.api_key is None:
        raise UsageError(f"host {config.host!r} is reachable from other machines; set api_key or ADAPTER_API_KEY")
    return config


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


def choose_upstream(conversation: str, upstreams: Mapping[str, object]) -> str:
    """Choose the model server for a conversation by rendezvous hashing: if a server is added or removed, few
    conversations move."""
    return max(upstreams, key=lambda item: blake2b(f"{conversation}\0{item}".encode(), digest_size=8).digest())
