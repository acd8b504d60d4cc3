"""Data about one request for logs, metrics and traces, available during the request from `current_request`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import error_type
from adapter.protocols.request_stats import MAX_NAME, RequestStats
from adapter.protocols.translated_request import TranslatedRequest

_PATHS = {
    "chat": "/v1/chat/completions /chat/completions /v1/messages /v1/responses /responses /api/chat",
    "text_completion": "/v1/completions /completions /completion /infill /api/generate",
    "embeddings": "/v1/embeddings /embeddings /api/embed /api/embeddings",
}
OPERATIONS = {path: operation for operation, paths in _PATHS.items() for path in paths.split()}
"""OpenTelemetry's ``gen_ai.operation.name`` by path."""


@dataclass(slots=True)
class RequestInfo:
    """``id``: shared by the client, the log and the model server. ``route``: the route's pattern, or "none".
    ``status``: 0 until the response begins. Times are in seconds since ``began``.

    ``model``: as the client names it. ``error``: a type, also for an error within a 200 response. ``is_whole``: the
    response was sent to its end. ``upstream_headers``: headers for the model server. ``is_observed``: there are
    observers.
    """

    id: str = ""
    began: float = field(default_factory=time.monotonic)
    method: str = ""
    path: str = ""
    route: str = "none"
    status: int = 0
    first_s: float | None = None
    seconds: float = 0.0
    model: str = ""
    is_stream: bool = False
    format: str = ""
    sent: JsonObject = field(default_factory=dict)
    stats: RequestStats = field(default_factory=RequestStats)
    dropped: list[str] = field(default_factory=list)
    retries: int = 0
    error: str = ""
    is_whole: bool = False
    upstream_headers: dict[str, str] = field(default_factory=dict)
    is_observed: bool = False

    @property
    def operation(self) -> str:
        """The operation, or "" if the request does not make the model work."""
        return OPERATIONS.get(self.path, "") if self.method == "POST" else ""

    def mark_first_piece(self) -> None:
        """Record the time of the first piece of the response. Keepalives do not count."""
        if self.first_s is None:
            self.first_s = time.monotonic() - self.began

    def set_model(self, body: JsonObject) -> None:
        self.model = str(body.get("model") or "")[:MAX_NAME]

    def set_translation(self, request: TranslatedRequest) -> None:
        """Take the statistics and the format from the translated request."""
        self.sent, self.format, self.stats = request.body, request.parsing.format, request.stats

    def record_error(self, error: Json) -> None:
        """Record an error in OpenAI's shape."""
        self.error = error_type(error)[:MAX_NAME]


class RequestObserver(Protocol):
    def on_start(self, request: RequestInfo, headers: Mapping[str, str], /) -> None:
        """Called when a request has arrived; only its ``headers`` are known."""
        ...

    def on_end(self, request: RequestInfo) -> None:
        """Called when the request is complete."""
        ...


_CURRENT: ContextVar[RequestInfo | None] = ContextVar("request", default=None)


def current_request() -> RequestInfo:
    """Return the request being served, or an unobserved one outside of requests."""
    return _CURRENT.get() or RequestInfo()


def set_current_request(request: RequestInfo) -> None:
    """Make ``request`` the current one, in this task and those that it starts."""
    _CURRENT.set(request)
