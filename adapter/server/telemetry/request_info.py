"""Collect data about the current request, for logs, metrics and traces."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import get_error_type
from adapter.protocols.request_stats import MAX_NAME, RequestStats
from adapter.protocols.translated_request import TranslatedRequest

_PATHS = {
    "chat": "/v1/chat/completions /chat/completions /v1/messages /v1/responses /responses /api/chat",
    "text_completion": "/v1/completions /completions /completion /infill /api/generate",
    "embeddings": "/v1/embeddings /embeddings /api/embed /api/embeddings",
}
OPERATIONS = {path: operation for operation, paths in _PATHS.items() for path in paths.split()}
"""OpenTelemetry's ``gen_ai.operation.name`` for each path."""


@dataclass(slots=True)
class RequestInfo:
    """Data about one request, for logs, metrics and traces."""

    id: str = ""
    """The request id that the client, the log and the model server see."""
    began: float = field(default_factory=time.monotonic)
    method: str = ""
    path: str = ""
    route: str = "none"
    """Pattern of the route, or "none"."""
    status: int = 0
    """HTTP status; 0 until the response begins."""
    first_s: float | None = None
    """Seconds until the first data of the response, without keepalives; None before that."""
    seconds: float = 0.0
    """Seconds until the end of the response."""
    model: str = ""
    """The model name in the request."""
    is_stream: bool = False
    format: str = ""
    sent: JsonObject = field(default_factory=dict)
    stats: RequestStats = field(default_factory=RequestStats)
    dropped: list[str] = field(default_factory=list)
    retries: int = 0
    error: str = ""
    """Type of an error, including errors within a response with status 200."""
    is_whole: bool = False
    """True if the response was sent completely."""
    upstream_headers: dict[str, str] = field(default_factory=dict)
    """Additional headers for the model server."""
    is_observed: bool = False
    """True if there are observers."""

    @property
    def operation(self) -> str:
        """OpenTelemetry's name for the kind of model request, such as ``chat``, or "" if it does not use a model."""
        return OPERATIONS.get(self.path, "") if self.method == "POST" else ""

    def mark_first_piece(self) -> None:
        """Record the time of the first data in the response, not counting keepalives."""
        if self.first_s is None:
            self.first_s = time.monotonic() - self.began

    def set_model(self, body: JsonObject) -> None:
        self.model = str(body.get("model") or "")[:MAX_NAME]

    def set_translation(self, request: TranslatedRequest) -> None:
        """Record the body, the format and the statistics of the translated request."""
        self.sent, self.format, self.stats = request.body, request.parsing.format, request.stats

    def record_error(self, error: Json) -> None:
        """Record the type of an error in OpenAI's format."""
        self.error = get_error_type(error)[:MAX_NAME]


class RequestObserver(Protocol):
    """Receives the data of each request at its start and end, for example to log it."""

    def on_start(self, request: RequestInfo, headers: Mapping[str, str], /) -> None:
        """Called when a request has arrived. Only its ``headers`` are known at this time."""
        ...

    def on_end(self, request: RequestInfo) -> None:
        """Called when a request has ended."""
        ...


_CURRENT: ContextVar[RequestInfo | None] = ContextVar("request", default=None)


def get_current_request() -> RequestInfo:
    """Return the request that is being handled. Outside of a request, return a placeholder that is not observed."""
    return _CURRENT.get() or RequestInfo()


def set_current_request(request: RequestInfo) -> None:
    """Set the current request for this task and for tasks that it starts."""
    _CURRENT.set(request)
